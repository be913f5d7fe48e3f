"""What a file is known by."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

_BLOCK: Final = 1 << 20

Doing: TypeAlias = Callable[[Callable[[], bytes]], bytes]
"""Whoever touches the disk: gives what the work gives, or raises OSError."""


def _at_once(work: Callable[[], bytes]) -> bytes:
    return work()


def sha256(path: Path, do: Doing = _at_once) -> str:
    """Hash a file's content; gives 64 hexadecimal digits. OSError where it cannot be read, and what `do` raises.

    `do` reads each megabyte, perhaps in another thread, with a time-out.
    """
    digest = hashlib.sha256()
    read = 0
    while block := do(partial(_block, path, read)):
        digest.update(block)
        read += len(block)
    return digest.hexdigest()


def _block(path: Path, start: int) -> bytes:
    """Read from there. A file that stayed open would be closed by nobody where this hangs and is left behind."""
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        return file.read(_BLOCK)

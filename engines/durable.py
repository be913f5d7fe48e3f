"""Files that are whole after a power cut."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_flushed(path: Path, content: bytes) -> None:
    """Write a new file through to the disk."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Bring renames and removals in `folder` to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, new or in place of another, so that at any moment it is the whole old or the whole new one.

    One writer at a time. OSError where it cannot; what was there is then still there.
    """
    part = path.with_name(path.name + ".part")
    try:
        part.unlink(missing_ok=True)
        write_flushed(part, content)
        part.replace(path)
        flush_folder(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise

"""Files that are whole after a power cut."""

from __future__ import annotations

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

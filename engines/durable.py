"""Files that are whole after a power cut."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PART: Final = ".part"
"""The end of a file's name until it is whole."""

_TRIES: Final = 2
"""More than the last one: who writes the same file may find this one's part before it is locked, and delete it."""


def write_flushed(path: Path, content: bytes) -> None:
    """Write a new file through to the disk."""
    with path.open("xb") as file:
        _hand_over(file.fileno(), path.parent)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def make_folder(folder: Path, *, exist_ok: bool = True) -> None:
    """Make a folder, and those above it. OSError where that fails."""
    missing = [made for made in (folder, *folder.parents) if not made.exists()]
    folder.mkdir(parents=True, exist_ok=exist_ok)
    for made in reversed(missing):
        descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _hand_over(descriptor, made.parent)
        finally:
            os.close(descriptor)


def copy_flushed(source: Path, target: Path) -> None:
    """Copy a file into a new one, through to the disk."""
    with source.open("rb") as given, target.open("xb") as file:
        _hand_over(file.fileno(), target.parent)
        shutil.copyfileobj(given, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())


def _hand_over(descriptor: int, folder: Path) -> None:
    """Give what root has made to whom the folder belongs.

    The service could neither read nor replace what `sudo speakd voice add` leaves in its folders under a strict umask.
    """
    owner = folder.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        with contextlib.suppress(OSError):  # a file system without owners, or one that root of here may not change
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def flush_file(path: Path) -> None:
    """Bring what a file holds to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Bring renames and removals in `folder` to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Wait until no other writer that asks for it is at work in `folder`. Ends with the process at the latest."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks is for one writer at a time
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, new or in place of another, so that at any moment it is the whole old or the whole new one.

    Several may write it at once, of which one is the last. OSError where it cannot; what was there is then still there.
    """
    _clear_abandoned(path)
    for _ in range(_TRIES):
        with contextlib.suppress(FileNotFoundError):
            _write(path, content)
            return
    _write(path, content)


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}{PART}")
    try:
        with part.open("xb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # for as long as it is open: see is_abandoned
            _hand_over(file.fileno(), path.parent)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        flush_folder(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def is_abandoned(part: Path) -> bool:
    """Whether nobody writes a half-written file any more: its writer's lock on it ends with the process."""
    try:
        with part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return False
    return True


def _clear_abandoned(path: Path) -> None:
    """Delete what earlier writers of this file left when they were killed."""
    with contextlib.suppress(OSError):
        for part in path.parent.iterdir():
            if part.name.startswith(f"{path.name}.") and part.suffix == PART and is_abandoned(part):
                part.unlink(missing_ok=True)

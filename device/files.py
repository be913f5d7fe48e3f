"""The files that speech is written to."""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from device.errors import EncoderError, SinkError


@contextmanager
def whole_output(path: Path) -> Iterator[BinaryIO]:
    """Give what is to become the file `path`: it takes its place once all is done, and is gone where that fails.

    What cannot be replaced and stay what it is, such as a pipe, a link or somebody else's file, is written to itself.
    SinkError with what to do about it where that fails.
    """
    if not _may_be_replaced(path):
        with open_output(path) as file:
            yield file
        return
    part = path.with_name(f".speakd-{uuid.uuid4().hex}")
    try:
        with output_errors(path), part.open("xb") as file:
            yield file
        with output_errors(path):
            if path.exists():
                shutil.copymode(path, part)  # whoever could read the older one may read this
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _may_be_replaced(path: Path) -> bool:
    try:
        if not os.access(path.parent, os.W_OK | os.X_OK, effective_ids=True):
            return False
        known = path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.S_ISREG(known.st_mode) and known.st_uid == os.geteuid() and known.st_nlink == 1 and not path.is_mount()


def open_output(path: Path) -> BinaryIO:
    """Open `path` for writing, emptied; SinkError with what to do about it where that fails."""
    try:
        return path.open("wb")
    except FileNotFoundError as error:
        raise SinkError(str(path), "its directory does not exist", f"create it: mkdir -p {path.parent}") from error
    except IsADirectoryError as error:
        raise SinkError(str(path), "is a directory", "give the name of a file") from error
    except OSError as error:
        raise SinkError(str(path), f"cannot be written: {error.strerror}", "choose another path") from error


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system or the encoder refuses into a SinkError about `path`."""
    try:
        yield
    except OSError as error:
        raise SinkError(str(path), f"cannot be written: {error.strerror or error}") from error
    except EncoderError as error:
        raise SinkError(str(path), str(error)) from error

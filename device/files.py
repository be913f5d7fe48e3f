"""The files that speech is written to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from device.errors import EncoderError, SinkError


@contextmanager
def whole_output(path: Path) -> Iterator[BinaryIO]:
    """Give what is to become the file `path`: it takes its place once all is done, and is gone where that fails.

    What is no file, such as a pipe, is written to itself. SinkError with what to do about it where that fails.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not path.is_file():
        with open_output(path) as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open_output(path, part) as file:
            yield file
        with output_errors(path):
            if path.exists():
                shutil.copymode(path, part)  # whoever could read the older one may read this
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def open_output(path: Path, part: Path | None = None) -> BinaryIO:
    """Open `path`, or what is to become it, for writing, emptied; SinkError with what to do where that fails."""
    try:
        return (part or path).open("wb")
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

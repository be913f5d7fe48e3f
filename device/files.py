"""The files that speech is written to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from device.errors import EncoderError, SinkError


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

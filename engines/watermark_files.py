"""The watermark on the disk: its two graphs and the licence that goes with every copy of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from engines.digest import sha256
from engines.durable import make_folder, write_whole
from engines.errors import WatermarkError
from engines.runtime.ort import OrtEngine
from engines.watermark import Marker

REVISION: Final = 1
"""Counts up with every change by which the same weights give other graphs."""

MARKER_FILE: Final = "marker.onnx"
DETECTOR_FILE: Final = "detector.onnx"
LICENCE_FILE: Final = "LICENSE.perth"
INFO_FILE: Final = "watermark.json"


class _Info(BaseModel):
    """What is known of the files; written last, so that they are whole once it is there."""

    model_config = ConfigDict(frozen=True)

    revision: int
    files: dict[str, str]
    """Name -> SHA-256."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """The graph that marks, loaded once for all threads."""

    engine: OrtEngine
    digest: str
    """Another mark has another one."""

    def marker(self) -> Marker:
        """Give one that marks, for one thread."""
        return Marker(self.engine)


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put the files there, in place of older ones. WatermarkError where `folder` takes none."""
    info = _Info(revision=REVISION, files={name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
    try:
        make_folder(folder)
        (folder / INFO_FILE).unlink(missing_ok=True)
        for name, data in files.items():
            write_whole(folder / name, data)
        write_whole(folder / INFO_FILE, info.model_dump_json(indent=2).encode())
    except OSError as error:
        raise WatermarkError(f"the watermark cannot be written to {folder}: {error.strerror}") from error


def open_watermark(folder: Path) -> Watermark:
    """Load the graph that marks. WatermarkError where it is not there as it was written."""
    digest = check(folder, MARKER_FILE)
    # One thread: half a second of speech takes it 6 ms, and renderers use a core each anyway.
    return Watermark(OrtEngine(folder / MARKER_FILE, threads=1), digest)


def open_detector(folder: Path) -> OrtEngine:
    """Load the graph that finds the mark, for `engines.watermark_detector`. WatermarkError as above."""
    check(folder, DETECTOR_FILE)
    return OrtEngine(folder / DETECTOR_FILE)


def check(folder: Path, name: str) -> str:
    """Compare a file with what was written, give its SHA-256. WatermarkError says what to do."""
    try:
        info = _Info.model_validate_json((folder / INFO_FILE).read_bytes())
        found = sha256(folder / name)
    except FileNotFoundError as error:
        raise WatermarkError(f"there is no watermark in {folder}: install it by `speakd watermark add`") from error
    except (OSError, ValidationError) as error:
        raise WatermarkError(f"the watermark in {folder} cannot be read ({error}): {_AGAIN}") from error
    if info.revision != REVISION:
        raise WatermarkError(f"the watermark in {folder} is of another version of speakd: {_AGAIN}")
    if info.files.get(name) != found:
        raise WatermarkError(f"the watermark in {folder} has changed since it was installed ({name}): {_AGAIN}")
    return found


_AGAIN: Final = "install it again by `speakd watermark add`"

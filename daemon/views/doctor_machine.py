"""What the doctor looks at in the machine: versions, board, temperatures."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Final

from daemon.views.commands_run import output_of
from daemon.views.finding import Finding
from power.sensors import Sensors

_PACKAGES: Final = (
    "numpy",
    "onnxruntime",
    "paho-mqtt",
    "piper-tts",
    "pyalsaaudio",
    "opuslib-next",
    "pycuda",
    "tensorrt",
)
_HOT_C: Final = 95.0
"""Boards slow down between 95 and 100 °C; the governor acts long before."""
_PLAUSIBLE_C: Final = (-40.0, 150.0)


def versions() -> list[Finding]:
    """Tell our version and those of what we stand on."""
    known = [f"{name} {version}" for name in ("speakd", *_PACKAGES) if (version := _version(name))]
    return [Finding("versions", "ok", ", ".join([*known, f"Python {platform.python_version()}"]))]


def machine(root: Path = Path("/")) -> list[Finding]:
    """Tell the system, and on a Jetson the board, its L4T, JetPack, CUDA and driver."""
    release = _text(root / "etc/os-release")
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', release, re.MULTILINE)
    system = f"{name[1] if name else platform.system()}, kernel {platform.release()}, {platform.machine()}"
    findings = [Finding("system", "ok", system)]
    model = _text(root / "proc/device-tree/model").strip("\0\n ")
    if model:
        findings.append(Finding("board", "ok", model))
    l4t = re.search(r"R(\d+) \(release\), REVISION: ([\d.]+)", _text(root / "etc/nv_tegra_release"))
    if l4t:
        jetpack = output_of(["dpkg-query", "-W", "-f=${Version}", "nvidia-jetpack"]).strip()
        text = f"L4T {l4t[1]}.{l4t[2]}, JetPack {jetpack or 'package nvidia-jetpack is not installed'}"
        findings.append(Finding("JetPack", "ok", text))
    driver = re.search(r"Kernel Module\s+(?:for \S+\s+)?([\d.]+)", _text(root / "proc/driver/nvidia/version"))
    cuda = re.search(r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([\d.]+)"', _text(root / "usr/local/cuda/version.json"))
    if driver or cuda or l4t:
        text = f"toolkit {cuda[1] if cuda else 'none found'}, driver {driver[1] if driver else 'of the board'}"
        findings.append(Finding("CUDA", "ok", text))
    return findings


def temperatures(root: Path = Path("/")) -> list[Finding]:
    """Tell how hot the machine is, as far as its sensors can be believed."""
    sensors = Sensors(root, jtop=False)
    try:
        zones = sensors.read().temperatures
    finally:
        sensors.close()
    degrees = {zone: value / 1000 for zone, value in zones.items()}
    if not degrees:
        return [Finding("temperatures", "note", "this machine has no thermal zones that can be read")]
    text = ", ".join(f"{name} {value:.0f} °C" for name, value in degrees.items())
    if max(degrees.values()) >= _HOT_C:
        return [
            Finding("temperatures", "fault", text, "give the device air, check its fan, or choose a lower power mode")
        ]
    return [Finding("temperatures", "ok", text)]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _text(file: Path) -> str:
    """Return a file's text, or "" where there is none or it may not be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

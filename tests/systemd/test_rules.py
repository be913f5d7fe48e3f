"""The udev rules: each line as strictly as udev reads it, and what a real udev does by them to made-up cards."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

import pytest

RULES: Final = Path(__file__).parents[2] / "systemd/90-speakd.rules"

MATCHES: Final = {"ACTION", "KERNEL", "SUBSYSTEM", "TEST"}
LABELS: Final = {"GOTO", "LABEL"}
PAIR: Final = re.compile(r'([A-Z]+)(?:\{([^}"]+)\})?(==|!=|=)"([^"]*)"')

PROGRAMS: Final = "/usr/sbin:/usr/bin:/sbin:/bin"

USB: Final = "devices/pci0000:00/usb1/1-2"
HDA: Final = "module/snd_hda_intel"

NAMESPACE: Final = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]

_MOUNTED: Final = """
set -e
mount --bind "$1" /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/udev/rules.d
cp "$2" /run/udev/rules.d/
shift 2
for event; do udevadm test --action="${event%%:*}" "/sys/${event#*:}"; done
"""


def udev(sysfs: Path, *events: str) -> str:
    """Have a real udev see events, such as "add:module/x", in a made-up /sys; gives what it said."""
    done = subprocess.run(
        [*NAMESPACE, "sh", "-c", _MOUNTED, "sh", str(sysfs), str(RULES), *events],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "SYSTEMD_DEVICE_VERIFY_SYSFS": "0", "PATH": PROGRAMS},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout + done.stderr


def obstacle() -> str:
    """Say why udev cannot be tried here; empty where it can."""
    if shutil.which("udevadm", path=PROGRAMS) is None:
        return "udevadm is missing: apt-get install udev"
    tried = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", "/run"], check=False, capture_output=True)
    return "" if tried.returncode == 0 else f"nothing can be mounted here: {tried.stderr.decode().strip()}"


needs_udev = pytest.mark.skipif(bool(obstacle()), reason=obstacle())


def interface(number: int, kind: int, part: int) -> bytes:
    """Give a USB interface's descriptor."""
    return struct.pack("9B", 9, 4, number, 0, 0, kind, part, 0, 0)


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Give a /sys with a USB device that may sleep and the driver of a PC's own sound."""
    for name, text in {
        f"{USB}/uevent": "DEVTYPE=usb_device\n",
        f"{USB}/idVendor": "0d8c\n",
        f"{USB}/idProduct": "0014\n",
        f"{USB}/power/control": "auto\n",
        f"{USB}/1-2:1.0/uevent": "DEVTYPE=usb_interface\n",
        f"{HDA}/uevent": "",
        f"{HDA}/parameters/power_save": "1\n",
        f"{HDA}/parameters/power_save_controller": "Y\n",
        "bus/usb/drivers_probe": "",
        "class/none": "",
        "kernel/none": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for device in (f"{USB}", f"{USB}/1-2:1.0"):
        (tmp_path / device / "subsystem").symlink_to(os.path.relpath(tmp_path / "bus/usb", tmp_path / device))
    describe(tmp_path, (1, 1), (1, 2))
    return tmp_path


def describe(sysfs: Path, *interfaces: tuple[int, int]) -> None:
    """Let the USB device have these interfaces: class and subclass."""
    head = bytes([18, 1, 0, 2, 0, 0, 0, 64]) + bytes(10) + bytes([9, 2]) + bytes(7)
    parts = (interface(number, *one) for number, one in enumerate(interfaces))
    (sysfs / USB / "descriptors").write_bytes(head + b"".join(parts))


@needs_udev
def test_udev_understands_every_rule(sysfs: Path) -> None:
    said = [line for line in udev(sysfs, f"add:{HDA}").splitlines() if RULES.name in line]
    assert said
    assert [line for line in said if "Reading rules file" not in line and " writing " not in line] == []


@needs_udev
def test_a_usb_card_stays_awake(sysfs: Path) -> None:
    udev(sysfs, f"add:{USB}")
    assert (sysfs / USB / "power/control").read_text().startswith("on")


@needs_udev
def test_a_usb_card_with_a_camera_is_woken_again_after_the_cameras_driver(sysfs: Path) -> None:
    """That driver lets it sleep, after the device was seen first: what udev does then comes too early to last."""
    describe(sysfs, (14, 1), (14, 2), (1, 1), (1, 2))
    said = udev(sysfs, f"add:{USB}", f"bind:{USB}/1-2:1.0")
    assert said.count("power/control' writing 'on'") == 2


@needs_udev
def test_other_usb_devices_may_sleep(sysfs: Path) -> None:
    describe(sysfs, (3, 1), (8, 6))
    udev(sysfs, f"add:{USB}", f"bind:{USB}/1-2:1.0", f"remove:{USB}")
    assert (sysfs / USB / "power/control").read_text() == "auto\n"


@needs_udev
def test_a_pcs_own_sound_stays_awake(sysfs: Path) -> None:
    udev(sysfs, f"add:{HDA}")
    assert (sysfs / HDA / "parameters/power_save").read_text().startswith("0")
    assert (sysfs / HDA / "parameters/power_save_controller").read_text().startswith("N")


def test_every_line_is_a_rule() -> None:
    """Also where no udev can be tried. One of systemd 254 or newer judges itself, too."""
    labels, targets = set(), set()
    for line in RULES.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pairs = [PAIR.fullmatch(part.strip()) for part in line.split(", ")]
        assert all(pairs), line
        for pair in pairs:
            assert pair is not None
            key, attribute, operator, value = pair.groups()
            if key in LABELS:
                assert (attribute, operator) == (None, "="), line
                (labels if key == "LABEL" else targets).add(value)
            elif key in MATCHES:
                assert attribute is None, line
                assert operator in {"==", "!="}, line
            else:
                assert key in {"ENV", "ATTR", "IMPORT"}, line
                assert attribute, line
    assert targets <= labels
    udevadm = shutil.which("udevadm", path=PROGRAMS)
    if udevadm is not None:
        asked = subprocess.run([udevadm, "verify", str(RULES)], check=False, capture_output=True, text=True)
        assert asked.returncode == 0 or "Unknown command" in asked.stderr, asked.stderr + asked.stdout

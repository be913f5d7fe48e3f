from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SYSTEMD = Path(__file__).parents[2] / "systemd"
MOST_EXPOSED = 2.5


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    assert program is not None, "systemd-analyze is not installed: apt-get install systemd"
    return subprocess.run([program, *arguments], check=False, capture_output=True, text=True, timeout=60)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Give a folder with the units, for a virtual environment that exists."""
    for name in ("speakd-power.service", "speakd-power.socket"):
        text = (SYSTEMD / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(
            text.replace("/opt/speakd/current/venv/bin/python", sys.executable), encoding="utf-8"
        )
    return tmp_path


def test_systemd_finds_nothing_wrong(units: Path) -> None:
    done = analyze("verify", "--man=no", units / "speakd-power.service", units / "speakd-power.socket")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_hardly_anything_is_left_to_root(units: Path) -> None:
    done = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}", units / "speakd-power.service")
    assert done.returncode == 0, done.stdout[-200:]


def test_the_unit_starts_the_program_that_there_is() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys have capitals
    unit.read_string((SYSTEMD / "speakd-power.service").read_text(encoding="utf-8"))
    command = unit["Service"]["ExecStart"].split()
    assert command[1:3] == ["-m", "power.helper"]
    helped = subprocess.run([sys.executable, *command[1:3], "--help"], capture_output=True, check=True, text=True)
    for option in command[3:]:
        assert not option.startswith("--") or option in helped.stdout

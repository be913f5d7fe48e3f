"""The units, by systemd's own judgement."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

SYSTEMD: Final = Path(__file__).parents[2] / "systemd"
UNITS: Final = sorted(SYSTEMD.glob("*.service"))

LIMIT: Final = 25
"""Tenths: what `systemd-analyze security` may say at most, of 100."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a root file system as install.sh leaves it, as far as the units look."""
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    for unit in [*SYSTEMD.glob("*.service"), *SYSTEMD.glob("*.socket")]:
        shutil.copy(unit, units)
    shutil.copytree("/usr/lib/systemd/system", tmp_path / "usr/lib/systemd/system", symlinks=True)
    for program in ("opt/speakd/current/venv/bin/speakd", "opt/speakd/current/venv/bin/python", "bin/sh"):
        path = tmp_path / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong(root: Path, unit: Path) -> None:
    done = analyze("verify", f"--root={root}", unit.name)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_little_is_open_to_whoever_takes_it_over(unit: Path) -> None:
    done = analyze("security", "--offline=true", "--no-pager", f"--threshold={LIMIT}", str(unit))
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if not line.startswith("✓"))


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze."""
    program = shutil.which("systemd-analyze")
    assert program, "systemd-analyze is missing: apt-get install systemd"
    return subprocess.run([program, *arguments], check=False, capture_output=True, text=True)

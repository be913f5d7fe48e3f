from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

SYSTEMD = Path(__file__).parents[2] / "systemd"


def test_the_unit_starts_the_program_that_there_is() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys have capitals
    unit.read_string((SYSTEMD / "speakd-power.service").read_text(encoding="utf-8"))
    command = unit["Service"]["ExecStart"].split()
    assert command[1:3] == ["-m", "power.helper"]
    helped = subprocess.run([sys.executable, *command[1:3], "--help"], capture_output=True, check=True, text=True)
    for option in command[3:]:
        assert not option.startswith("--") or option in helped.stdout

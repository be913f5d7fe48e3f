"""Other programs that are asked for facts, each for a few seconds at most."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Final

_PATIENCE_S: Final = 10.0
"""journalctl reads slowly from SD cards; whoever takes longer hangs."""


def output_of(command: Sequence[str]) -> str:
    """Return what a program prints; "" where it is not there, fails or hangs."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""

"""Waiting for what has nobody to tell of it: files, logs, other processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

_LONGEST_S: Final = 30.0
_POLL_S: Final = 0.01


def wait_until(
    condition: Callable[[], object], problem: Callable[[], str] | str, timeout_s: float = _LONGEST_S
) -> None:
    """Wait until it holds; AssertionError with the problem where it does not in time."""
    deadline = time.monotonic() + timeout_s
    never = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, problem if isinstance(problem, str) else problem()
        never.wait(_POLL_S)

"""Whether the machine was suspended: all that waits here waits by a clock that stands still meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_LEAST_S: Final = 1.0
"""Shorter than this nothing is told: no board suspends and wakes so soon."""

_CLOSE_S: Final = 0.01
"""Within which two clocks must be read to be compared; a process that is put aside in between asks again later."""


class Suspension:
    """Compares the clock that stands still with the one that does not. For one thread."""

    def __init__(
        self, running: Callable[[], float] = time.monotonic, all_along: Callable[[], float] | None = None
    ) -> None:
        """Begin now. `running`: the seconds without those of suspensions; `all_along`: with them."""
        self._running = running
        self._all_along = all_along or _boottime
        before = self._running()  # read first, so that a process put aside in between does not seem to sleep later
        self._asleep = self._all_along() - before

    def slept_s(self) -> float:
        """Give for how long it was suspended since this was asked last; 0 where it was not."""
        before = self._running()
        all_along = self._all_along()
        if self._running() - before > _CLOSE_S:
            return 0.0
        slept = all_along - before - self._asleep
        if abs(slept) < _LEAST_S:
            return 0.0
        self._asleep += slept
        return max(0.0, slept)


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)

"""How much was written in the last day, from a counter that only grows. No clock, no I/O."""

from __future__ import annotations

from collections import deque
from typing import Final

_DAY_S: Final = 86400.0

_STEP_S: Final = 900.0
"""Between two of the counts that are kept: a day has 96 of them."""

_LEAST_S: Final = 3600.0
"""From less than an hour no day is told: what a start writes would count for many times what it is."""


class WriteMeter:
    """For one thread. Times are of `time.monotonic`, counts are bytes since `started_at`."""

    def __init__(self, started_at: float) -> None:
        self._kept = deque([(started_at, 0)])
        self._last = (started_at, 0)

    def add(self, total: int, now: float) -> None:
        """Take the count at this moment; one that is smaller than the one before counts as that."""
        self._last = (now, max(total, self._last[1]))
        if now - self._kept[-1][0] >= _STEP_S:
            self._kept.append(self._last)
        while len(self._kept) > 1 and self._kept[1][0] <= now - _DAY_S:
            self._kept.popleft()

    @property
    def total(self) -> int:
        """The largest count so far."""
        return self._last[1]

    @property
    def day(self) -> int:
        """Bytes of the last 24 hours, up to a quarter of an hour more; since the start where that is less long ago."""
        return self._last[1] - self._kept[0][1]

    @property
    def per_day(self) -> float | None:
        """Bytes per day at the pace of that time; None within the first hour."""
        span_s = self._last[0] - self._kept[0][0]
        return self.day * _DAY_S / span_s if span_s >= _LEAST_S else None

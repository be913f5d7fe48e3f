"""Durations in fixed buckets: percentiles within a known error, and no samples kept."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from typing import Final

_STEPS: Final = (10, 11, 12, 13, 15, 16, 18, 20, 22, 25, 27, 30, 33, 36, 39, 43, 47, 50, 56, 62, 68, 75, 82, 91)
"""Of each decade: IEC 60063's E24, but for 25 and 50, so that the limits of the usual alerts are bounds themselves."""

BOUNDS_MS: Final = tuple(step * 10.0**decade for decade in range(-2, 4) for step in _STEPS)
"""Upper bounds, milliseconds: 0.1 ms to 91 s. What is longer counts as the last one."""

LARGEST_ERROR: Final = 15 / 13 - 1
"""Of a percentile between the bounds, as a share of it: the widest bucket's width."""

_SLICES: Final = 12


class Rolling:
    """What came in the last hour, and all since the start. For one thread; time is the caller's, seconds."""

    def __init__(self, window_s: float = 3600.0) -> None:
        """`window_s` is forgotten in twelve steps."""
        self.total: Final = [0] * len(BOUNDS_MS)
        """How many since the start, by bucket."""
        self.sum_ms = 0.0
        self._slice_s = window_s / _SLICES
        self._slices: deque[tuple[int, dict[int, int]]] = deque()
        self._recent = [0] * len(BOUNDS_MS)
        self._count = 0

    def add(self, value_ms: float, now: float) -> None:
        """Count one."""
        self._forget(now)
        bucket = min(bisect_left(BOUNDS_MS, value_ms), len(BOUNDS_MS) - 1)
        number = int(now // self._slice_s)
        if not self._slices or self._slices[-1][0] < number:
            self._slices.append((number, {}))
        counts = self._slices[-1][1]
        counts[bucket] = counts.get(bucket, 0) + 1
        self._recent[bucket] += 1
        self._count += 1
        self.total[bucket] += 1
        self.sum_ms += max(0.0, value_ms)

    def count(self, now: float) -> int:
        """Give how many came in the last hour."""
        self._forget(now)
        return self._count

    def percentiles(self, shares: Iterable[float], now: float) -> list[float] | None:
        """Give the values that these shares (0 to 1) of the last hour's do not exceed; None where none came.

        Between two bounds it is taken to lie in proportion: off by at most `LARGEST_ERROR`.
        """
        self._forget(now)
        return [self._value(share * self._count) for share in shares] if self._count else None

    def _value(self, rank: float) -> float:
        below = 0
        for bucket, count in enumerate(self._recent):
            if count and below + count >= rank:
                lower = BOUNDS_MS[bucket - 1] if bucket else 0.0
                return lower + (BOUNDS_MS[bucket] - lower) * max(0.0, rank - below) / count
            below += count
        return BOUNDS_MS[-1]

    def _forget(self, now: float) -> None:
        oldest = int(now // self._slice_s) - _SLICES
        while self._slices and self._slices[0][0] <= oldest:
            for bucket, count in self._slices.popleft()[1].items():
                self._recent[bucket] -= count
                self._count -= count


class Ratio:
    """Two sums of the last hour, one to the other. For one thread."""

    def __init__(self, window_s: float = 3600.0) -> None:
        self._slice_s = window_s / _SLICES
        self._slices: deque[list[float]] = deque(maxlen=_SLICES)

    def add(self, dividend: float, divisor: float, now: float) -> None:
        """Add to both sums."""
        number = now // self._slice_s
        if not self._slices or self._slices[-1][0] < number:
            self._slices.append([number, 0.0, 0.0])
        self._slices[-1][1] += dividend
        self._slices[-1][2] += divisor

    def value(self, now: float) -> float | None:
        """Give the quotient; None where there is nothing to divide by."""
        oldest = now // self._slice_s - _SLICES
        recent = [one for one in self._slices if one[0] > oldest]
        divisor = sum(one[2] for one in recent)
        return sum(one[1] for one in recent) / divisor if divisor else None

"""How many commands a sender may give."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_MOST_SENDERS: Final = 1000
"""Remembered at once; whoever was silent for longest is forgotten, and begins anew with a full allowance."""


class RateLimiter:
    """A token bucket per sender: `per_s` commands a second in the long run, `burst` at once. For one thread."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_s = per_s
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # sender -> tokens, at

    def allows(self, sender: str, now: float) -> bool:
        """Count one command of `sender` at `now`, in seconds; False where that is one too many."""
        tokens, at = self._buckets.pop(sender, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + max(0.0, now - at) * self._per_s)
        allowed = tokens >= 1
        self._buckets[sender] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _MOST_SENDERS:
            self._buckets.popitem(last=False)
        return allowed

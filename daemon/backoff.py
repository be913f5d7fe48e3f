"""How long to wait before the next attempt to connect."""

from __future__ import annotations

import random
from typing import Final

STEADY_S: Final = 10.0
"""A connection that lasts longer was a good one. A shorter one counts as an attempt that failed: two devices with one
client id, which throw each other out, then do it ever more rarely."""

_MANY_SHORT_LIVED: Final = 3
"""Connections that did not last, in a row, after which somebody else with our client id is the likely reason: mosquitto
2.0 and MQTT 3.1.1 hang up without saying why."""

MOST_DOUBLINGS: Final = 12
"""Of a wait between attempts: from 1 s beyond the hour that `reconnect_max_s` can be."""


class Backoff:
    """Twice as long after each failure, and never as long as another device does. For one thread; times in seconds."""

    def __init__(self, least_s: int, most_s: int) -> None:
        self._least_s = least_s
        self._most_s = most_s
        self._connected_at: float | None = None
        self._failures = 0
        self._short_lived = 0

    @property
    def is_robbed(self) -> bool:
        """Tell whether connections come about and are lost again and again."""
        return self._short_lived >= _MANY_SHORT_LIVED

    def connected(self, now: float) -> None:
        """Take note of a connection."""
        self._connected_at = now

    def wait_s(self, now: float) -> float:
        """Give the wait after an attempt that failed, or a connection that was lost."""
        connected_at, self._connected_at = self._connected_at, None
        if connected_at is not None:
            if now - connected_at > STEADY_S:
                self._failures = self._short_lived = 0
            else:
                self._short_lived += 1
        longest_s = self._least_s << min(self._failures, MOST_DOUBLINGS)
        self._failures += 1
        return min(longest_s, self._most_s) * random.uniform(0.5, 1)  # noqa: S311  no secret

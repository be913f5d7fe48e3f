"""Whether all threads move: only then is systemd's watchdog fed, so that a hung one ends in a restart."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Final

from daemon.notify import Notifier

_LOG = logging.getLogger(__name__)

_SIGNS: Final = 4
"""Signs of life within systemd's limit: one may be late on a busy machine, and so may the next."""


class Pulse:
    """When a thread last moved. It writes, any other reads; each value is written whole."""

    def __init__(self) -> None:
        self._beat_at = time.monotonic()
        self._resting = False

    def beat(self) -> None:
        """Say that work goes on."""
        self._beat_at = time.monotonic()

    def rest(self) -> None:
        """Say that there is nothing to do: the next `beat` may be years away."""
        self._resting = True

    def wake(self) -> None:
        """Say that work begins."""
        self._beat_at = time.monotonic()
        self._resting = False

    def still_s(self, now: float) -> float:
        """Give for how long it has not moved though it should have; 0 while it rests."""
        return 0.0 if self._resting else max(0.0, now - self._beat_at)


class Health:
    """Feeds the watchdog. For the main thread, whose own movement is that it calls `check`."""

    def __init__(self, notifier: Notifier, parts: Mapping[str, Callable[[float], float]], *, limit_s: float) -> None:
        """`parts`: name -> for how long, at a moment of `time.monotonic`, it has not moved though it should have.

        `limit_s`: after so long it counts as hung. That must be longer than whatever a part may rightly take.
        """
        self._notifier = notifier
        self._parts = parts
        self._limit_s = limit_s
        self._interval_s = math.inf if notifier.watchdog_s is None else notifier.watchdog_s / _SIGNS
        self._hung: tuple[str, ...] = ()
        self.due: float = 0.0 if math.isfinite(self._interval_s) else math.inf
        """The moment of `time.monotonic` for the next `check`; infinite where nobody watches."""

    def check(self, now: float) -> tuple[str, ...]:
        """Feed the watchdog if all parts have moved; gives the names of those that have not."""
        if now < self.due:
            return self._hung
        self.due = now + self._interval_s
        hung = tuple(name for name, still_s in self._parts.items() if still_s(now) > self._limit_s)
        if hung:
            if hung != self._hung:
                names = " and ".join(hung)
                _LOG.error("%s has not moved for more than %.0f s; the watchdog is fed no more", names, self._limit_s)
                self._notifier.status(f"hung: {names}")
        else:
            self._notifier.alive()
        self._hung = hung
        return hung

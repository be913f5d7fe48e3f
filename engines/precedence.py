"""Who computes first: what is heard next, before what only has to be done some time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Precedence:
    """Lets patient threads wait while an urgent one computes. Thread-safe.

    Patient ones ask before each run of an engine, so an urgent one that begins finds at most the runs under way.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._urgent = 0
        self._closed = False

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """Hold patient threads back meanwhile."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Let patient threads go on while an urgent one waits for something else; within `urgent` only."""
        self._count(-1)
        try:
            yield
        finally:
            self._count(1)

    def wait_turn(self) -> None:
        """Return once nobody urgent computes, or at once after `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._urgent)

    def close(self) -> None:
        """Hold nobody back any more. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _count(self, change: int) -> None:
        with self._changed:
            self._urgent += change
            if not self._urgent:
                self._changed.notify_all()

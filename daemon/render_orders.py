"""What is to be rendered, and how that waits for a render thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from daemon.errors import RenderQueueFullError, StoppedError
from daemon.job import Job
from daemon.saying import Saying
from device.format import Samples


@dataclass(frozen=True, slots=True)
class RenderOrder(Saying):
    """What to render, how, and who takes the samples. A seed counts before the owner's."""

    take: Callable[[Samples], None]
    """Called in a render thread with all samples in order, at 48 kHz; the memory is valid during the call only.

    A SpeechError, DeviceError, DaemonError or OSError that it raises ends the order, and stands in `RenderEnded`.
    """
    live: bool = True
    """Whether somebody listens to it as it is made. What is not live waits while rendering is paused."""


class RenderQueue:
    """Orders in the order in which they came; while paused, only those that are live are given out. Thread-safe."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._orders: list[RenderOrder] = []
        self._changed = threading.Condition()
        self._paused = False
        self._closed = False

    def put(self, order: RenderOrder) -> None:
        """Add one. RenderQueueFullError where too many wait, StoppedError once closed."""
        with self._changed:
            if self._closed:
                raise StoppedError
            if len(self._orders) >= self._capacity:
                raise RenderQueueFullError(self._capacity)
            self._orders.append(order)
            self._changed.notify_all()

    def take(self, timeout_s: float | None) -> RenderOrder | None:
        """Wait for the next one; None once closed. TimeoutError where none came for so long."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._closed or self._next() is not None, timeout_s):
                raise TimeoutError
            return self._pop()

    def take_while_paused(self, timeout_s: float) -> RenderOrder | None:
        """Wait for so long, or until it is paused no more, or for one that is live, which is given."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._paused or self._next() is not None, timeout_s)
            return self._pop() if self._paused else None

    def remove(self, job: Job) -> bool:
        """Take one back; False where it does not wait any more."""
        with self._changed:
            found = [order for order in self._orders if order.job is job]
            self._orders = [order for order in self._orders if order.job is not job]
            return bool(found)

    @property
    def paused(self) -> bool:
        """Tell whether what is not live waits."""
        return self._paused

    def pause(self, *, paused: bool) -> None:
        """Have what is not live wait, or go on."""
        with self._changed:
            self._paused = paused
            self._changed.notify_all()

    def close(self) -> list[RenderOrder]:
        """Give out no more; gives those that still waited. Idempotent."""
        with self._changed:
            self._closed = True
            left, self._orders = self._orders, []
            self._changed.notify_all()
            return left

    def _next(self) -> RenderOrder | None:
        return next((order for order in self._orders if order.live or not self._paused), None)

    def _pop(self) -> RenderOrder | None:
        order = self._next()
        if order is not None:
            self._orders.remove(order)
        return order

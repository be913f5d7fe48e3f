"""Telemetry on its way to the broker: what comes while that is away waits, the oldest is given up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from daemon.telemetry_messages import Telemetry

_KEPT: Final = 40
"""Messages: ten minutes at the default interval, some 60 kB. Whoever was away for longer wants the present."""


class Backlog:
    """For the main thread."""

    def __init__(self, send: Callable[[str], int | None]) -> None:
        """`send` gives how many bytes went out, or None while there is no connection."""
        self._send = send
        self._waiting: deque[str] = deque()
        self.lost = 0
        """How many were given up."""

    def publish(self, figures: Telemetry) -> int:
        """Send it, now or when the broker is back; gives its bytes."""
        payload = figures.to_json()
        sent = self._send(payload)
        if sent is not None:
            return sent
        self._waiting.append(payload)
        if len(self._waiting) > _KEPT:
            self._waiting.popleft()
            self.lost += 1
        return len(payload)

    def flush(self) -> None:
        """Send what waits, the oldest first: the broker is back."""
        while self._waiting and self._send(self._waiting[0]) is not None:
            self._waiting.popleft()

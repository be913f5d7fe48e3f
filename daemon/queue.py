"""Which command speaks next."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count

from daemon.commands import Speak
from daemon.errors import PayloadError


@dataclass(frozen=True, slots=True, order=True)
class Waiting:
    """An accepted command and when it came in."""

    sort_key: tuple[int, int]
    command: Speak = field(compare=False)
    received_at: float = field(compare=False)


class SpeakQueue:
    """Commands by priority, then by arrival; bounded. For one thread."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._heap: list[Waiting] = []
        self._arrivals = count()

    def __len__(self) -> int:
        """Give how many wait."""
        return len(self._heap)

    def put(self, command: Speak, received_at: float) -> int:
        """Add a command; gives how many will speak before it. PayloadError `queue_full` where there is no room."""
        if len(self._heap) >= self._capacity:
            raise PayloadError("queue_full", f"{self._capacity} commands are waiting already", command.id)
        waiting = Waiting((command.priority.rank, next(self._arrivals)), command, received_at)
        heapq.heappush(self._heap, waiting)
        return self._ahead_of(waiting)

    def pop(self) -> Waiting | None:
        """Take the next to speak, if any."""
        return heapq.heappop(self._heap) if self._heap else None

    def place(self, command_id: str) -> int | None:
        """Give how many will speak before the waiting command of this id; None where there is none."""
        found = next((w for w in self._heap if w.command.id == command_id), None)
        return None if found is None else self._ahead_of(found)

    def _ahead_of(self, waiting: Waiting) -> int:
        return sum(other < waiting for other in self._heap)

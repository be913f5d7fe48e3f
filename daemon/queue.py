"""Which command speaks next."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from daemon.commands import Priority, Speak
from daemon.errors import PayloadError
from daemon.inbox import NOBODY, Origin
from device.format import Samples


@dataclass(frozen=True, slots=True)
class Waiting:
    """An accepted command, when it came in, and how far it has got."""

    command: Speak
    received_at: float
    arrival: int = 0
    """Counts up: who came first among equals."""
    origin: Origin = NOBODY
    deadline: float = math.inf
    """When it expires, in seconds of `time.monotonic`."""
    begun: bool = False
    """Whether some of it has been heard: it was interrupted, and no longer expires."""
    resume_at: int = 0
    """The frame from which it goes on."""
    sentences: tuple[int, ...] = ()
    """First frames of the sentences up to there."""
    clip: Samples | None = field(default=None, compare=False)
    """See `SpeakReceived`."""
    take: Callable[[Samples], None] | None = field(default=None, compare=False)
    extra_s: float = 0.0
    """Seconds that it lasts beside its text: of its chimes, or of its clip."""

    @property
    def id(self) -> str:
        """The command's id."""
        return self.command.id

    @property
    def sort_key(self) -> tuple[int, int]:
        """Who has the smallest one goes first."""
        return self.command.priority.rank, self.arrival

    @property
    def size(self) -> int:
        """Bytes that its text takes."""
        return len(self.command.written.encode("utf-8", "surrogatepass"))

    def aged(self, by_s: float) -> Waiting:
        """Give it as if it had come so much earlier."""
        return replace(self, received_at=self.received_at - by_s, deadline=self.deadline - by_s)

    def repeating(self, sentences: int) -> Waiting:
        """Give one that goes on so many sentences earlier; 1: at the beginning of the one where it stopped."""
        return replace(self, resume_at=(*self.sentences[-sentences:], 0)[0]) if sentences else self


class SpeakQueue:
    """Commands by priority, then by arrival; bounded by count and by bytes. For one thread."""

    def __init__(self, capacity: int, capacity_bytes: int) -> None:
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes
        self._waiting: list[Waiting] = []

    def __len__(self) -> int:
        """Give how many wait."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        """Give those that wait, in the order in which they will speak."""
        return iter(tuple(self._waiting))

    @property
    def next_deadline(self) -> float:
        """When the first of them expires; infinite where none does."""
        return min((w.deadline for w in self._waiting if not w.begun), default=math.inf)

    def check_room(self, command: Speak) -> None:
        """PayloadError `queue_full` where there is no room for one more."""
        if len(self._waiting) >= self._capacity:
            raise PayloadError("queue_full", f"{self._capacity} commands are waiting already", command.id)
        if sum(w.size for w in self._waiting) + Waiting(command, 0).size > self._capacity_bytes:
            raise PayloadError("queue_full", f"{self._capacity_bytes} bytes of text are waiting already", command.id)

    def put(self, waiting: Waiting) -> None:
        """Add a command, or put one back that was interrupted: for that there is always room."""
        bisect.insort(self._waiting, waiting, key=lambda w: w.sort_key)

    def age(self, by_s: float) -> None:
        """Make all that wait older than the clock says, which stood still for so long."""
        self._waiting = [w.aged(by_s) for w in self._waiting]

    def pop(self, *, critical_only: bool = False) -> Waiting | None:
        """Take the next to speak, if any."""
        if not self._waiting or (critical_only and self._waiting[0].command.priority is not Priority.CRITICAL):
            return None
        return self._waiting.pop(0)

    def take(self, wanted: Callable[[Waiting], bool]) -> list[Waiting]:
        """Take out all that are `wanted`, in order."""
        taken = [w for w in self._waiting if wanted(w)]
        self._waiting = [w for w in self._waiting if not wanted(w)]
        return taken

    def take_expired(self, now: float) -> list[Waiting]:
        """Take out those whose time is over and of which nothing was heard."""
        if now < self.next_deadline:
            return []
        return self.take(lambda w: w.deadline <= now and not w.begun)

    def ahead_of(self, waiting: Waiting) -> list[Waiting]:
        """Give those that will speak before `waiting`."""
        return [w for w in self._waiting if w.sort_key < waiting.sort_key]

"""Commands that need no loudspeaker: several at once, into a file or a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from daemon.errors import PayloadError, StoppedError
from daemon.events import Cancelled, Finished, Started, milliseconds, utc_of
from daemon.inbox import RenderEnded, RenderStarted
from daemon.job import Job
from daemon.ledger import Ledger
from daemon.queue import Waiting


@dataclass(slots=True)
class _Rendering:
    waiting: Waiting
    job: Job
    location: str
    cancelled_by: str = ""
    settled: bool = False
    """Whether it can expire no more: it was begun, or has."""
    expired: bool = False


class Renders:
    """Owns what is being rendered, or waits for it, in the order of arrival. Pure, as `Playback` is."""

    def __init__(
        self,
        ledger: Ledger,
        capacity: int,
        render: Callable[[Waiting], tuple[Job, str]],
        drop: Callable[[Job], bool],
    ) -> None:
        """`render` queues one for the render threads, and says where its sound will be found.

        `drop` has one end at once that no thread has begun; False where one has.
        """
        self._drop = drop
        self._ledger = ledger
        self._capacity = capacity
        self._render = render
        self._active: dict[str, _Rendering] = {}

    def __len__(self) -> int:
        """Give how many there are."""
        return len(self._active)

    def __iter__(self) -> Iterator[Waiting]:
        """Give them in order."""
        return iter([rendering.waiting for rendering in self._active.values()])

    @property
    def live(self) -> int:
        """Give how many somebody listens to while they are made."""
        return sum(is_live(rendering.waiting) for rendering in self._active.values())

    @property
    def next_deadline(self) -> float:
        """When the first of those that may still wait expires; infinite where none does."""
        return min((r.waiting.deadline for r in self._active.values() if not r.settled), default=math.inf)

    def expire(self, now: float) -> None:
        """Have those end whose time is over and that were not begun."""
        for rendering in self._active.values():
            if rendering.waiting.deadline <= now and not rendering.settled:
                rendering.settled = True
                rendering.expired = self._drop(rendering.job)
                if rendering.expired:
                    rendering.job.stopped.set()

    def slept(self, for_s: float) -> None:
        """Take note that the clock stood still: who waits has waited for that long too."""
        for rendering in self._active.values():
            rendering.waiting = rendering.waiting.aged(for_s)

    def check(self, waiting: Waiting) -> None:
        """PayloadError `queue_full` where there is no room for one more."""
        if len(self._active) >= self._capacity:
            raise PayloadError("queue_full", f"{self._capacity} commands are being rendered already", waiting.id)

    def submit(self, waiting: Waiting) -> None:
        """Take an accepted command in."""
        self._ledger.begin(waiting)
        self._active[waiting.id] = _Rendering(waiting, *self._render(waiting))

    def started(self, message: RenderStarted) -> None:
        """Take note that the first samples are there."""
        rendering = self._active.get(message.id)
        if rendering is not None:
            waiting = rendering.waiting
            rendering.settled = True
            ttfa_ms = milliseconds(message.at - waiting.received_at)
            rendering.location = message.location or rendering.location
            started = Started(
                id=waiting.id,
                time=utc_of(message.at),
                ttfa_ms=ttfa_ms,
                output=rendering.location,
                fallback=message.fallback or None,
            )
            self._ledger.tell(started, waiting.origin)

    def ended(self, message: RenderEnded) -> None:
        """Take note that one is done with."""
        rendering = self._active.pop(message.id, None)
        if rendering is None:
            return
        waiting, at = rendering.waiting, utc_of(message.at)
        if message.error is not None:
            self._ledger.fail(waiting, message.error)
        elif rendering.cancelled_by:
            self._ledger.end(waiting, Cancelled(id=waiting.id, time=at, by=rendering.cancelled_by))
        elif rendering.expired:
            self._ledger.expire(waiting, message.at)
        else:
            finished = Finished(
                id=waiting.id,
                time=at,
                audio_s=round(message.audio_s, 3),
                total_ms=milliseconds(message.at - waiting.received_at),
                location=message.location or rendering.location,
                fallback=message.fallback or None,
                reason=None if message.audio_s else "nothing to say",
                warnings=message.warnings or None,
            )
            self._ledger.end(waiting, finished)

    def cancel(self, wanted: Callable[[Waiting], bool], by: str) -> list[str]:
        """Have those that are `wanted` end soon; gives their ids."""
        found = [r for r in self._active.values() if wanted(r.waiting)]
        for rendering in found:
            rendering.cancelled_by = rendering.cancelled_by or by
            rendering.job.stopped.set()
            self._drop(rendering.job)
        return [rendering.waiting.id for rendering in found]

    def stop(self) -> None:
        """End everything."""
        for rendering in self._active.values():
            rendering.job.stopped.set()
            self._ledger.fail(rendering.waiting, StoppedError())
        self._active.clear()


def is_live(waiting: Waiting) -> bool:
    """Tell whether somebody listens to a render while it is made."""
    return waiting.take is not None or waiting.command.output in {"stream", "rtp"}

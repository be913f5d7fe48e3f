"""What speaks, what was interrupted and what waits: who goes first, who gives way, and who goes on."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from daemon import heard
from daemon.active import Active, Cut, Reason
from daemon.commands import Priority
from daemon.errors import PayloadError, StoppedError
from daemon.events import Cancelled, Interrupted, Mark, Resumed, Started, Superseded, Synthesized, Word, utc_of
from daemon.hold import Hold
from daemon.inbox import MarkReached, PlaybackEnded, PlaybackStarted, SynthesisEnded, WordReached
from daemon.job import Job
from daemon.ledger import Ledger
from daemon.queue import SpeakQueue, Waiting
from device.errors import SinkError
from device.format import seconds

_LOG = logging.getLogger(__name__)

_FIRST_GUESS_S: Final = 0.065
"""Of speech per character: what the default voice takes for English. What was heard since corrects it."""

_LEARNING: Final = 0.1
"""Weight of the newest utterance in that average."""


class Playback:
    """Owns the queue and what speaks. Pure: time comes in, `begin` and `cut` go out and must return at once."""

    def __init__(
        self,
        queue: SpeakQueue,
        ledger: Ledger,
        *,
        output: str,
        begin: Callable[[Waiting], Job],
        cut: Callable[[Job, bool], None],
        hold: Hold | None = None,
    ) -> None:
        """`cut(job, at_once)` makes one stop: at once, or after its sentence. `hold`: what a lost output means."""
        self.queue: Final = queue
        self.paused = False
        self.rest_s = 0.0
        """Seconds of silence after an utterance before the next one, unless that is critical; see `Decision`."""
        self._rests_until = -math.inf
        self._ledger = ledger
        self._output = output
        self._begin = begin
        self._cut_job = cut
        self._current: Active | None = None
        self._ending: dict[str, Active] = {}
        """Those that fall silent while the next one begins already."""
        self._hold = hold or Hold(0.0)
        self._char_s = _FIRST_GUESS_S

    @property
    def current(self) -> Waiting | None:
        """What speaks."""
        return self._current.waiting if self._current else None

    @property
    def next_deadline(self) -> float:
        """When something is due here: one expires or has waited long enough for the output, or a rest is over."""
        held = self._hold.until if self.queue else math.inf
        idle = self._current is None and not self._ending and not self.paused and len(self.queue) > 0
        resting = idle and math.isinf(held)  # a rest that is over begins nothing while the output is lost
        return min(self.queue.next_deadline, held, self._rests_until if resting else math.inf)

    @property
    def busy(self) -> int:
        """Give for how many there is something to be computed, now or as soon as it is their turn."""
        unmade = self._current is not None and not self._current.made
        return unmade + (0 if self.paused else len(self.queue))

    @property
    def interrupted(self) -> list[Waiting]:
        """Those that will go on: they wait, or are just falling silent."""
        ending = [active.waiting for active in self._ending.values() if active.goes_on]
        return ending + [w for w in self.queue if w.begun]

    def check(self, waiting: Waiting) -> None:
        """PayloadError where there is no room for it, or, for a notification, something else speaks or waits."""
        others = [w for w in (self.current, *self.interrupted, *self.queue) if w is not None]
        if waiting.command.priority is Priority.NOTIFICATION and any(
            w.command.priority is not Priority.NOTIFICATION for w in others
        ):
            raise PayloadError("busy", "something else speaks or waits, so this notification is dropped", waiting.id)
        if not self._replaced_by(waiting):
            self.queue.check_room(waiting.command)

    def submit(self, waiting: Waiting, now: float, accepted: Callable[[], None]) -> None:
        """Take an accepted command in: whom it replaces or interrupts follows from its priority and its key.

        `accepted` is called once its place is known and before anything else is said of it.
        """
        for old in self.queue.take(self._replaces(waiting)):
            self._ledger.end(old, Superseded(id=old.id, by=waiting.id))
        self.queue.put(waiting)
        active = self._current
        if active is not None:
            mine, its = waiting.command.priority, active.waiting.command.priority
            if its is not Priority.CRITICAL:
                if self._same_key(waiting, active.waiting) or mine is its is Priority.NOTIFICATION:
                    self._cut(active, Cut("superseded", waiting.id))
                elif mine is Priority.CRITICAL:
                    self._cut(active, Cut("preempted", waiting.id))
                elif mine is Priority.IMPORTANT and its is not Priority.IMPORTANT:
                    self._cut(active, Cut("preempted", waiting.id), at_once=False)
        for ending in self._ending.values():
            if self._same_key(waiting, ending.waiting):
                self._cut(ending, Cut("superseded", waiting.id))
        accepted()
        self.next(now)

    def place(self, waiting: Waiting, now: float) -> tuple[int, float | None]:
        """Tell how many will speak before it, and in how many seconds about it will begin."""
        if self.current is not None and self.current.id == waiting.id:
            return 0, 0.0
        active = self._current
        ahead = self.queue.ahead_of(waiting)
        gives_way = active is not None and active.cut is not None
        count = len(ahead) + (active is not None and not gives_way)
        if self.paused and waiting.command.priority is not Priority.CRITICAL:
            return count, None
        total_s = sum(map(self._length_s, ahead))
        if active is not None and not gives_way:
            since = 0.0 if active.heard_at is None else now - active.heard_at
            total_s += max(0.0, self._length_s(active.waiting) - since)
        return count, round(total_s, 1)

    def _length_s(self, waiting: Waiting) -> float:
        """Estimate how long one will be heard."""
        return len(waiting.command.text) * self._char_s + waiting.extra_s

    def find(self, command_id: str) -> Waiting | None:
        """Give the one of this id that speaks, waits, or falls silent."""
        ending = [active.waiting for active in self._ending.values()]
        return next((w for w in (self.current, *ending, *self.queue) if w and w.id == command_id), None)

    def cancel(self, wanted: Callable[[Waiting], bool], by: str, now: float) -> list[str]:
        """End those that are `wanted`; gives their ids. What speaks has ended once it is silent."""
        ids = []
        for waiting in self.queue.take(wanted):
            self._ledger.end(waiting, Cancelled(id=waiting.id, by=by))
            ids.append(waiting.id)
        for active in (self._current, *self._ending.values()):
            if active is not None and wanted(active.waiting):
                self._cut(active, Cut("cancelled", by))
                ids.append(active.waiting.id)
        self.next(now)
        return ids

    def skip(self, by: str, now: float) -> list[str]:
        """End what speaks, or else what would go on next; after one that is just falling silent, the next one."""
        target = self.current or next(iter(self.interrupted), None)
        if target is None and self._ending and not self.paused:
            target = next(iter(self.queue), None)
        return [] if target is None else self.cancel(lambda w: w.id == target.id, by, now)

    def pause(self, by: str) -> list[str]:
        """Fall silent. What is critical goes on."""
        self.paused = True
        active = self._current
        if active is None or active.waiting.command.priority is Priority.CRITICAL:
            return []
        self._cut(active, Cut("paused", by))
        return [active.waiting.id]

    def resume(self, repeat_sentences: int, now: float) -> list[str]:
        """Go on, from the word or from the beginning of a sentence."""
        self.paused = False
        for waiting in self.queue.take(lambda w: w.begun):
            self.queue.put(waiting.repeating(repeat_sentences))
        for active in self._ending.values():
            active.repeat_sentences = repeat_sentences
        ids = [waiting.id for waiting in self.interrupted]
        self.next(now)
        return ids

    def output_is(self, problem: str, now: float) -> None:
        """Take note that the output is lost, or (empty) there again, and speech with it."""
        self._hold.output_is(problem, now)
        self.next(now)

    def expire(self, now: float) -> None:
        """End those whose time is over."""
        for waiting in self.queue.take_expired(now):
            self._ledger.expire(waiting, now)

    def slept(self, for_s: float, now: float) -> None:
        """Take note that the clock stood still: who waits has waited for that long too."""
        self.queue.age(for_s)
        self.expire(now)

    def wake(self, now: float) -> None:
        """Do what has become due: end those whose time is over, and go on after a rest."""
        self.expire(now)
        self.next(now)

    def started(self, message: PlaybackStarted) -> None:
        """Take note that the first frame is on its way."""
        active = self._ending.get(message.id, self._current)  # it may have been cut just before
        if active is None or active.waiting.id != message.id:
            return
        active.heard_at = message.at
        self._tell(active.waiting, heard.begun(active, message.at, self._output))
        self._tell_synthesized(active)

    def reached(self, message: WordReached | MarkReached) -> None:
        """Tell a word or a mark."""
        active = self._current
        if active is not None and active.waiting.id == message.id:
            self._tell(active.waiting, heard.reached(active, message))

    def synthesized(self, message: SynthesisEnded) -> None:
        """Take note that all samples exist."""
        active = self._current
        if active is not None and active.waiting.id == message.id:
            active.synthesis = message
            active.made = True
            self._tell_synthesized(active)

    def ended(self, message: PlaybackEnded, now: float) -> None:
        """Take note that one is silent: it is over, or was cut."""
        active = self._ending.pop(message.id, None)
        if active is None:
            active = self._current
            if active is None or active.waiting.id != message.id:
                return
            self._current = None
        self._rests_until = now + self.rest_s
        waiting = active.waiting
        if self._waits_for_output(active, message, now):
            self._put_back(active, message.cut_at or 0, utc_of(message.at), "lost", None)
        elif message.error is not None:
            self._ledger.fail(waiting, message.error)
        elif message.cut_at is None or active.cut is None:
            self._hold.heard()
            self._finish(active, message)
        else:
            self._settle(active, active.cut, message)
        self.expire(now)
        self.next(now)

    def next(self, now: float) -> None:
        """Begin the next one, where none speaks. Only what is critical waits for no silence and no rest."""
        if self._hold.holds(now) or self._current is not None:
            return
        self.expire(now)
        waiting = self.queue.pop(critical_only=self.paused or bool(self._ending) or now < self._rests_until)
        if waiting is not None:
            self._current = Active(waiting, self._begin(waiting))
            if not waiting.begun:
                # After `begin`: the disk works while the engine does. A crash in between comes before any sound.
                self._ledger.begin(waiting)

    def stop(self) -> None:
        """End everything."""
        active = [self._current, *self._ending.values()]
        self._current = None
        self._ending.clear()
        for waiting in [a.waiting for a in active if a is not None] + self.queue.take(lambda _: True):
            self._ledger.fail(waiting, StoppedError())

    def _cut(self, active: Active, cut: Cut, *, at_once: bool = True) -> None:
        """Make one stop. What ends it outweighs what would let it go on, and the first of a kind stands."""
        if active.cut is None or (not active.cut.ends and (cut.ends or (at_once and not active.stopping))):
            active.cut = cut
        if not active.stopping:
            active.stopping = at_once
            self._cut_job(active.job, at_once)
        if at_once and active is self._current:
            self._current = None
            self._ending[active.waiting.id] = active

    def _finish(self, active: Active, message: PlaybackEnded) -> None:
        waiting = active.waiting
        if message.audio_s and waiting.command.text:
            length = max(0.0, message.audio_s - waiting.extra_s) / len(waiting.command.text)
            self._char_s += _LEARNING * (length - self._char_s)
        self._ledger.end(waiting, heard.finished(active, message))

    def _settle(self, active: Active, cut: Cut, message: PlaybackEnded) -> None:
        """Decide what becomes of one that was cut."""
        waiting, at = active.waiting, utc_of(message.at)
        if cut.why == "cancelled":
            self._ledger.end(waiting, Cancelled(id=waiting.id, time=at, by=cut.by))
        elif not active.goes_on:
            self._ledger.end(waiting, Superseded(id=waiting.id, time=at, by=cut.by))
        else:
            self._put_back(active, message.cut_at or 0, at, "paused" if cut.why == "paused" else "preempted", cut.by)

    def _put_back(self, active: Active, resume_at: int, at: datetime, reason: Reason, by: str | None) -> None:
        """Let one that was cut wait to go on."""
        waiting = active.waiting
        begun = waiting.begun or active.heard
        sentences = tuple(start for start in active.job.sentences if start <= resume_at)
        again = replace(waiting, begun=begun, resume_at=resume_at, sentences=sentences)
        self.queue.put(again.repeating(active.repeat_sentences))
        if active.heard:
            at_s = round(seconds(resume_at), 3)
            self._tell(waiting, Interrupted(id=waiting.id, time=at, reason=reason, by=by, at_s=at_s))

    def _waits_for_output(self, active: Active, message: PlaybackEnded, now: float) -> bool:
        """Tell whether one that lost its loudspeaker goes on later. What was cut for good meanwhile does not."""
        if not isinstance(message.error, SinkError) or message.cut_at is None:
            return False
        if active.cut is not None and (active.cut.ends or not active.waiting.command.resumes):
            return False
        return self._hold.may_wait(now, heard=message.audio_s > seconds(active.waiting.resume_at))

    def _replaces(self, new: Waiting) -> Callable[[Waiting], bool]:
        """Tell whom among those that wait a new command replaces: the same key, and of its kind the newest wins."""
        newest_wins = new.command.priority in {Priority.NOTIFICATION, Priority.PROGRESS}

        def replaced(old: Waiting) -> bool:
            return self._same_key(new, old) or (newest_wins and old.command.priority is new.command.priority)

        return replaced

    def _replaced_by(self, new: Waiting) -> bool:
        return any(map(self._replaces(new), self.queue))

    @staticmethod
    def _same_key(one: Waiting, other: Waiting) -> bool:
        return one.command.supersede is not None and one.command.supersede == other.command.supersede

    def _tell_synthesized(self, active: Active) -> None:
        """Tell it after `Started`, whichever came first: a short text is synthesized before it is heard."""
        done = active.synthesis
        if done is None or not active.heard:
            return
        active.synthesis = None
        self._tell(active.waiting, heard.synthesized(active, done))

    def _tell(self, waiting: Waiting, event: Started | Resumed | Word | Mark | Synthesized | Interrupted) -> None:
        self._ledger.tell(event, waiting.origin)

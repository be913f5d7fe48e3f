"""The player thread: chunks from the engine to the sink, in order, and the truth about what was heard.

It keeps only a little sound ahead of the loudspeaker, so that what is stopped is silent soon: it fades out within the
next few milliseconds, and what follows is silence or the next utterance.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import numpy as np

from daemon.fader import FADE, Fader
from daemon.inbox import Inbox, MarkReached, PlaybackEnded, PlaybackStarted, RealtimeAnswer, WordReached
from daemon.job import Job
from daemon.lead import Lead
from daemon.level import Level
from daemon.loudspeaker import Loudspeaker, Manners
from daemon.worker import Worker
from device.errors import SinkError
from device.format import PERIOD, RATE, Samples, seconds
from device.limiter import AHEAD, NOTHING
from device.memory import AudioChunk
from device.realtime import raise_priority
from device.sink import Sink

_PIECE: Final = PERIOD
"""Frames handed over at a time: so often is it looked for a stop. Smaller ones would be no whole Opus frames."""

_UNHEARD: Final = RATE // 10
"""Frames, 100 ms, that may have been lost beyond `pending` with a card that goes away: a sound server or a radio link
has some of its own. So speech goes on from a word before them: better twice than not at all."""

_TRAIL: Final = RATE // 5
"""Frames of silence, 200 ms, that follow what was cut: the next utterance joins without the card being stopped."""


@dataclass(frozen=True, slots=True)
class _End:
    job: Job
    error: Exception | None
    complete: bool
    """Whether all samples were queued."""


class _Care(Enum):
    WAKE = "wake"
    LEVEL = "level"
    SLEPT = "slept"


_Item: TypeAlias = "tuple[Job, AudioChunk] | _End | _Care | None"


class Player(Worker):
    """Owns the sink. `play` and `end` may be called by any one thread, all else by any."""

    def __init__(
        self,
        sink: Sink,
        post: Callable[[Inbox], None],
        *,
        lead_s: float = 0.04,
        manners: Manners | None = None,
        level: Level | None = None,
    ) -> None:
        """`lead_s`: how much sound is kept ahead of what is heard; the rest: how the sink is treated, and how loud."""
        super().__init__("player", post)
        self._sink = sink
        self._speaker = Loudspeaker(sink, post, manners)
        self._clicks = manners is not None and manners.clicks
        self._level = level or Level()
        self._items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._lead = Lead(sink, lead_s, self._stopping)
        self._fader = Fader(_PIECE)
        self._silence: Samples = np.zeros(_PIECE, np.float32)
        self._trail = 0
        self._reset()

    def play(self, job: Job, chunk: AudioChunk) -> None:
        """Queue a chunk; the player releases it."""
        self._items.put((job, chunk))

    def end(self, job: Job, error: Exception | None = None, *, complete: bool = True) -> None:
        """Say that no more chunks of `job` come: those that came are all (`complete`), or what cut it short."""
        self._items.put(_End(job, error, complete))

    def wake(self) -> None:
        """Say that an utterance is being computed: a sink that sleeps is opened and woken up meanwhile."""
        self._items.put(_Care.WAKE)

    def slept(self) -> None:
        """Say that the machine was suspended: a loudspeaker that needs waking needs it again."""
        self._items.put(_Care.SLEPT)

    def set_volume(self, volume: float, *, muted: bool = False) -> None:
        """Have all that is heard from now on at this volume, see `daemon.level`; its peaks are limited."""
        self._level.set(volume, muted=muted)
        self._items.put(_Care.LEVEL)

    def stop(self) -> None:
        """Fall silent at once, with a fade, and end the thread. Idempotent."""
        self._stopping.set()
        self._items.put(None)

    def work(self) -> None:
        """Play what comes until stopped."""
        self._post(RealtimeAnswer("priority", raise_priority()))
        with contextlib.suppress(SinkError):
            self._speaker.open()  # before the first command, so that the first sound need not wait for it
        while (item := self._next()) is not None:
            if isinstance(item, _End):
                self._finish(item)
            elif isinstance(item, _Care):
                self._care(item)
            else:
                self._play(*item)
        with contextlib.suppress(SinkError):
            if self._began:
                self._sink.drain()  # a few milliseconds, the fade among them
        self._speaker.close()

    def _reset(self) -> None:
        """Make ready for the next utterance."""
        self._began = False
        self._reached = False  # whether the sink has taken any of it
        self._position = 0  # in frames from the utterance's beginning
        self._word = 0
        self._bookmark = 0
        self._ahead = 0  # frames that were handed over and not yet played, when last looked at
        self._cut = False
        self._error: SinkError | None = None

    def _next(self) -> _Item:
        """Wait for something to do, and look after the loudspeaker meanwhile.

        After a cut, and for one that was woken up, with silence going on for a while, so that nothing runs dry.
        """
        try:
            while self._trail > 0:
                with contextlib.suppress(queue.Empty):
                    return self._items.get_nowait()
                self._trail -= _PIECE
                self._lead.wait(_PIECE, self._stopping)
                self._sink.write(self._silence)
                if self._trail <= 0:
                    self._sink.drain()
                self._speaker.heard()
        except SinkError as error:
            self._trail = 0
            self._speaker.lose(error)
        while True:
            idle = not self._began  # else an engine that is slow would have it closed in the middle of speech
            with contextlib.suppress(queue.Empty):
                self.pulse.rest()
                item = self._items.get(timeout=self._speaker.care_in_s() if idle else None)
                self.pulse.wake()
                return item
            self.pulse.wake()
            self._speaker.tend()

    def _care(self, what: _Care) -> None:
        if self._level.changed:
            (self._level.follow if self._began else self._level.settle)()
        if what is _Care.SLEPT:
            self._speaker.slept()
        if what is _Care.WAKE and not self._began:
            with contextlib.suppress(SinkError):  # who speaks will meet it again
                self._speaker.open()
                self._wake_up()

    def _wake_up(self) -> None:
        """Play the silence that a loudspeaker needs before it lets anything be heard."""
        frames = round(self._speaker.sleeps_for_s() * RATE)
        if not frames:
            return
        try:
            while frames > 0 and not self._stopping.is_set():
                self._lead.wait(_PIECE, self._stopping)
                self._sink.write(self._silence)
                self.pulse.beat()
                frames -= _PIECE
        except SinkError as error:
            self._speaker.lose(error)
            raise
        self._speaker.heard()
        self._trail = _TRAIL

    def _play(self, job: Job, chunk: AudioChunk) -> None:
        try:
            if self._cut or job.stopped.is_set() or self._stopping.is_set():
                self._cut = True
                return
            if not self._began:
                self._begin(job)
                self._glide(float(chunk.samples[0]) * self._fader.gain)
            self._write(job, chunk.samples)
        except SinkError as error:
            self._give_up(job, error)
        finally:
            chunk.release()

    def _begin(self, job: Job) -> None:
        self._speaker.open()
        self._wake_up()
        self._trail = 0
        self._lead.begin()
        self._level.settle()
        self._began = True
        self._fader.reset()
        self._position = job.start
        self._word = bisect_left(job.words, job.start)
        self._bookmark = bisect_left(job.bookmarks, (job.start, ""))
        # In the middle of speech a sudden beginning would click.
        self._fader.gain = 0.0 if job.start else self._level.gain
        self._post(PlaybackStarted(job.id, time.monotonic(), job.watermarked))

    def _write(self, job: Job, samples: Samples) -> None:
        """Write a chunk piece by piece, up to where it is stopped."""
        start = 0
        while start < samples.size:
            if job.yielding.is_set() and self._position > job.start and self._position in job.sentences:
                self._cut = True
                job.stopped.set()
                return
            # What goes on in the middle is soon as loud as it was.
            longest = FADE if self._position == job.start > 0 else _PIECE
            end = min(start + longest, samples.size, start + self._to_next_sentence(job))
            self._lead.wait(end - start, job.stopped)
            self.pulse.beat()
            self._ahead = self._lead.adapt(self._position - job.start)
            if job.stopped.is_set() or self._stopping.is_set():
                self._cut = True
                self._hand_over(samples[start : min(end, start + FADE)], gain=0.0)
                return
            if self._level.changed:
                self._level.follow()
            self._hand_over(samples[start:end], self._level.gain, samples[end : end + AHEAD])
            start = end
            if job.marks:
                self._tell_words(job)
            self._tell_bookmarks(job, self._position)

    def _to_next_sentence(self, job: Job) -> int:
        """Give the frames from here to where a sentence begins, so that a piece never reaches into it."""
        following = bisect_right(job.sentences, self._position)
        return job.sentences[following] - self._position if following < len(job.sentences) else _PIECE

    def _hand_over(self, samples: Samples, gain: float, ahead: Samples = NOTHING) -> None:
        """Write at most `_PIECE` frames with a gain that moves to `gain`; `ahead`: what of the same chunk follows."""
        self._write_or_reopen(self._fader.apply(samples, gain, ahead))
        self._position += samples.size
        self._ahead += samples.size
        self._lead.ease(samples.size)

    def _write_or_reopen(self, samples: Samples) -> None:
        """Write; an utterance's first frames once more, to a sink opened anew, where the one of before is dead.

        A sound server that was started again while nothing was said is noticed no sooner.
        """
        try:
            self._sink.write(samples)
        except SinkError as error:
            if self._reached:
                raise
            self._speaker.lose(error)
            self._speaker.open()
            self._wake_up()
            self._trail = 0
            self._sink.write(samples)
        self._reached = True

    def _glide(self, to: float) -> None:
        """Add a ramp from the sample of before to one that would be a jump; as a rule there is none."""
        ramp = self._fader.ramp(to) if self._clicks else None
        if ramp is not None:
            self._write_or_reopen(ramp)

    def _tell_words(self, job: Job) -> None:
        """Tell each word whose first frame was handed over, with the time at which it will be heard."""
        while self._word < len(job.words) and job.words[self._word] < self._position:
            behind = self._position - job.words[self._word]
            at = time.monotonic() + seconds(max(0, self._sink.pending - behind))
            self._post(WordReached(job.id, self._word, at))
            self._word += 1

    def _tell_bookmarks(self, job: Job, end: int) -> None:
        """Tell each mark before `end`, likewise."""
        while self._bookmark < len(job.bookmarks) and job.bookmarks[self._bookmark][0] < end:
            frame, name = job.bookmarks[self._bookmark]
            ahead = self._sink.pending - (self._position - frame)
            self._post(MarkReached(job.id, name, frame, time.monotonic() + seconds(max(0, ahead))))
            self._bookmark += 1

    def _finish(self, end: _End) -> None:
        job = end.job
        if self._stopping.is_set():
            return  # whoever stops us has told what becomes of the command
        if not self._began:
            self._position = job.start
        cut = self._cut or not end.complete
        at = time.monotonic()
        try:
            if self._began and self._error is None:
                self._glide(0.0)
                if cut and (pending := self._sink.pending):
                    self._trail = _TRAIL
                    at += seconds(pending)
                else:
                    self._sink.drain()
                    at = time.monotonic()
                    self._speaker.heard()
        except SinkError as error:
            self._give_up(job, error)
        if not cut and (end.error or self._error) is None:
            self._tell_bookmarks(job, self._position + 1)  # those behind the last word
        self._post(self._ended(job, at, end.error, cut=cut))
        self._reset()

    def _ended(self, job: Job, at: float, error: Exception | None, *, cut: bool) -> PlaybackEnded:
        """Say how it ended, and from where it may go on after it was stopped, or the loudspeaker lost."""
        unheard = 0
        if self._error is not None:
            self._position = max(job.start, self._position - self._ahead)
            unheard = _UNHEARD
        cut_at = None
        if error is None and (cut or self._error is not None):
            cut_at = job.resume_at(self._position - unheard)
        return PlaybackEnded(job.id, at, seconds(self._position), error or self._error, cut_at)

    def _give_up(self, job: Job, error: SinkError) -> None:
        """End this utterance; the next one opens the sink anew."""
        self._error = error
        job.stopped.set()
        self._trail = 0
        self._fader.last = 0.0
        self._speaker.lose(error)

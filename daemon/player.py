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
from typing import Final

import numpy as np

from daemon.inbox import AudioState, Inbox, MarkReached, PlaybackEnded, PlaybackStarted, RealtimeAnswer, WordReached
from daemon.job import Job
from daemon.worker import Worker
from device.errors import SinkError
from device.format import PERIOD, RATE, Samples, seconds
from device.memory import AudioChunk
from device.realtime import raise_priority
from device.sink import Sink

_PIECE: Final = PERIOD
"""Frames handed over at a time: so often is it looked for a stop. Smaller ones would be no whole Opus frames."""

_FADE: Final = RATE // 200
"""Frames of a fade-out, 5 ms: the shortest in which speech ends without a click."""

_LATE: Final = PERIOD // 2
"""Frames that are left ahead, 10 ms, when a wake-up came too late; with the least lead 20 ms should be."""

_MOST_LEAD: Final = RATE * 80 // 1000
"""Frames. On two cores with a load of nine, of which the engine was two, PulseAudio was up to 30 ms late: with 40 ms
ahead there were 30 gaps in four texts, with 60 ms one, with 80 ms none. So the lead grows where it has to."""

_EASE: Final = 2 * RATE
"""Frames of speech without trouble after which the lead shrinks again by a piece, down to what was asked for: it is
the engine that is in the way, and it is soon done."""

_STUCK_S: Final = 1.0
"""Without any of what is ahead being played the wait for room ends: the sink's own `write` then knows what is wrong."""

_TRAIL: Final = RATE // 5
"""Frames of silence, 200 ms, that follow what was cut: the next utterance joins without the card being stopped."""


@dataclass(frozen=True, slots=True)
class _End:
    job: Job
    error: Exception | None
    complete: bool
    """Whether all samples were queued."""


class Player(Worker):
    """Owns the sink. `play` and `end` may be called by any one thread, `stop` and `set_gain` by any."""

    def __init__(self, sink: Sink, post: Callable[[Inbox], None], *, lead_s: float = 0.04) -> None:
        """`lead_s`: how much sound is kept ahead of what is heard."""
        super().__init__("player", post)
        self._sink = sink
        self._lead = self._least_lead = round(lead_s * RATE)
        self._untroubled = 0  # frames written since the lead had to grow
        self._items: queue.SimpleQueue[tuple[Job, AudioChunk] | _End | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._gain = self._wanted_gain = 1.0
        self._ramp: Samples = np.arange(1, _PIECE + 1, dtype=np.float32)
        self._scaled: Samples = np.empty(_PIECE, np.float32)
        self._silence: Samples = np.zeros(_PIECE, np.float32)
        self._trail = 0
        self._paced = False
        self._reset()

    def play(self, job: Job, chunk: AudioChunk) -> None:
        """Queue a chunk; the player releases it."""
        self._items.put((job, chunk))

    def end(self, job: Job, error: Exception | None = None, *, complete: bool = True) -> None:
        """Say that no more chunks of `job` come: those that came are all (`complete`), or what cut it short."""
        self._items.put(_End(job, error, complete))

    def set_gain(self, gain: float) -> None:
        """Have all that is heard from now on at `gain` times its level, clipped at full scale."""
        self._wanted_gain = gain

    def stop(self) -> None:
        """Fall silent at once, with a fade, and end the thread. Idempotent."""
        self._stopping.set()
        self._items.put(None)

    def work(self) -> None:
        """Play what comes until stopped."""
        self._post(RealtimeAnswer("priority", raise_priority()))
        self._open()
        while (item := self._next()) is not None:
            if isinstance(item, _End):
                self._finish(item)
            else:
                self._play(*item)
        with contextlib.suppress(SinkError):
            if self._began:
                self._sink.drain()  # a few milliseconds, the fade among them
        self._sink.close()

    def _reset(self) -> None:
        """Make ready for the next utterance."""
        self._began = False
        self._position = 0  # in frames from the utterance's beginning
        self._word = 0
        self._bookmark = 0
        self._cut = False
        self._error: SinkError | None = None

    def _open(self) -> None:
        """Open the sink before the first command, so that the first sound need not wait for it."""
        try:
            self._open_sink()
        except SinkError as error:
            self._post(AudioState(str(error)))

    def _open_sink(self) -> None:
        """Open it where it is closed; a sound server's client has a thread of its own, as urgent as this one."""
        raise_priority(inherited=True)
        try:
            self._sink.open()
        finally:
            raise_priority()

    def _next(self) -> tuple[Job, AudioChunk] | _End | None:
        """Wait for something to do; after a cut with silence going on for a while, so that nothing runs dry."""
        try:
            while self._trail > 0:
                with contextlib.suppress(queue.Empty):
                    return self._items.get_nowait()
                self._trail -= _PIECE
                self._wait_for_room(_PIECE, self._stopping)
                self._sink.write(self._silence)
                if self._trail <= 0:
                    self._sink.drain()
        except SinkError as error:
            self._trail = 0
            self._sink.close()
            self._post(AudioState(str(error)))
        self.pulse.rest()
        item = self._items.get()
        self.pulse.wake()
        return item

    def _play(self, job: Job, chunk: AudioChunk) -> None:
        try:
            if self._cut or job.stopped.is_set() or self._stopping.is_set():
                self._cut = True
                return
            if not self._began:
                self._begin(job)
            self._write(job, chunk.samples)
        except SinkError as error:
            self._give_up(job, error)
        finally:
            chunk.release()

    def _begin(self, job: Job) -> None:
        self._open_sink()
        self._post(AudioState())
        self._trail = 0
        self._began = True
        self._position = job.start
        self._word = bisect_left(job.words, job.start)
        self._bookmark = bisect_left(job.bookmarks, (job.start, ""))
        # In the middle of speech a sudden beginning would click.
        self._gain = 0.0 if job.start else self._wanted_gain
        self._post(PlaybackStarted(job.id, time.monotonic()))

    def _write(self, job: Job, samples: Samples) -> None:
        """Write a chunk piece by piece, up to where it is stopped."""
        start = 0
        while start < samples.size:
            if job.yielding.is_set() and self._position > job.start and self._position in job.sentences:
                self._cut = True
                job.stopped.set()
                return
            end = min(start + _PIECE, samples.size, start + self._to_next_sentence(job))
            self._wait_for_room(end - start, job.stopped)
            self._adapt(job)
            if job.stopped.is_set() or self._stopping.is_set():
                self._cut = True
                self._hand_over(samples[start : min(end, start + _FADE)], gain=0.0)
                return
            self._hand_over(samples[start:end], self._wanted_gain)
            start = end
            if job.marks:
                self._tell_words(job)
            self._tell_bookmarks(job, self._position)

    def _to_next_sentence(self, job: Job) -> int:
        """Give the frames from here to where a sentence begins, so that a piece never reaches into it."""
        following = bisect_right(job.sentences, self._position)
        return job.sentences[following] - self._position if following < len(job.sentences) else _PIECE

    def _hand_over(self, samples: Samples, gain: float) -> None:
        """Write at most `_PIECE` frames; the memory itself where the gain is and stays 1, else a scaled copy."""
        if self._gain != 1 or gain != 1:
            samples = self._scale(samples, gain)
        self._sink.write(samples)
        self._position += samples.size
        self._untroubled += samples.size
        if self._untroubled > _EASE and self._lead > self._least_lead:
            self._untroubled = 0
            self._lead = max(self._least_lead, self._lead - _PIECE)

    def _adapt(self, job: Job) -> None:
        """Keep more ahead from now on where, in the middle of speech, we come so late that hardly any was left."""
        pending = self._sink.pending
        self._paced = self._paced or pending > 0
        if self._paced and self._position - job.start > self._lead and pending < _LATE:
            self._untroubled = 0
            self._lead = max(self._lead, min(_MOST_LEAD, self._lead + _PIECE))

    def _scale(self, samples: Samples, gain: float) -> Samples:
        """Give the samples with a gain that moves to `gain` by the last one; valid until the next call."""
        scaled = self._scaled[: samples.size]
        np.multiply(self._ramp[: samples.size], (gain - self._gain) / samples.size, out=scaled)
        np.add(scaled, self._gain, out=scaled)
        np.multiply(scaled, samples, out=scaled)
        np.clip(scaled, -1, 1, out=scaled)
        self._gain = gain
        return scaled

    def _wait_for_room(self, frames: int, stopped: threading.Event) -> None:
        """Wait until no more than the lead is ahead, or somebody stops it."""
        before, since = self._sink.pending, time.monotonic()
        while not stopped.is_set() and not self._stopping.is_set():
            self.pulse.beat()
            pending = self._sink.pending
            if pending + frames <= self._lead or time.monotonic() - since > _STUCK_S:
                return
            if pending < before:
                before, since = pending, time.monotonic()
            stopped.wait(seconds(pending + frames - self._lead))

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
                if cut and (pending := self._sink.pending):
                    self._trail = _TRAIL
                    at += seconds(pending)
                else:
                    self._sink.drain()
                    at = time.monotonic()
        except SinkError as error:
            self._give_up(job, error)
        error_heard = end.error or self._error
        if not cut and error_heard is None:
            self._tell_bookmarks(job, self._position + 1)  # those behind the last word
        cut_at = self._cut_at(job) if cut and error_heard is None else None
        self._post(PlaybackEnded(job.id, at, seconds(self._position), error_heard, cut_at))
        self._reset()

    def _cut_at(self, job: Job) -> int:
        """Give the first frame of the word in which it was stopped: from there it may go on."""
        word = bisect_right(job.words, self._position) - 1
        return max(job.start, job.words[word]) if word >= 0 else job.start

    def _give_up(self, job: Job, error: SinkError) -> None:
        """End this utterance; the next one opens the sink anew."""
        self._error = error
        job.stopped.set()
        self._trail = 0
        self._sink.close()
        self._post(AudioState(str(error)))

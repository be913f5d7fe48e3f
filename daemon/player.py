"""The player thread: chunks from the engine to the sink, in order, and the truth about what was heard."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from daemon.inbox import AudioState, Inbox, PlaybackEnded, PlaybackStarted, RealtimeAnswer
from daemon.worker import Worker
from device.errors import SinkError
from device.format import PERIOD, seconds
from device.memory import AudioChunk
from device.realtime import raise_priority
from device.sink import Sink


@dataclass(frozen=True, slots=True)
class Job:
    """An utterance on its way through engine and player."""

    id: str
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set by whoever knows that no more of it is wanted."""


@dataclass(frozen=True, slots=True)
class _End:
    job: Job
    error: Exception | None


class Player(Worker):
    """Owns the sink. `play` and `end` may be called by any one thread, `stop` by any."""

    def __init__(self, sink: Sink, post: Callable[[Inbox], None]) -> None:
        super().__init__("player", post)
        self._sink = sink
        self._items: queue.SimpleQueue[tuple[Job, AudioChunk] | _End | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._frames = 0
        self._error: SinkError | None = None

    def play(self, job: Job, chunk: AudioChunk) -> None:
        """Queue a chunk; the player releases it."""
        self._items.put((job, chunk))

    def end(self, job: Job, error: Exception | None = None) -> None:
        """Say that the last chunk of `job` was queued, and what cut its synthesis short."""
        self._items.put(_End(job, error))

    def stop(self) -> None:
        """Fall silent within a period and end the thread. Idempotent."""
        self._stopping.set()
        self._items.put(None)

    def work(self) -> None:
        """Play what comes until stopped."""
        self._post(RealtimeAnswer("priority", raise_priority()))
        self._open()
        while (item := self._items.get()) is not None:
            if isinstance(item, _End):
                self._finish(item)
            else:
                self._play(*item)
        if self._frames:  # in mid-speech: closing a sink may play out what it has taken
            with contextlib.suppress(SinkError):
                self._sink.drop()
        self._sink.close()

    def _open(self) -> None:
        """Open the sink before the first command, so that the first sound need not wait for it."""
        try:
            self._sink.open()
        except SinkError as error:
            self._post(AudioState(str(error)))

    def _play(self, job: Job, chunk: AudioChunk) -> None:
        try:
            if job.stopped.is_set() or self._stopping.is_set():
                return
            if self._frames == 0:
                self._sink.open()
                self._post(AudioState())
                self._post(PlaybackStarted(job.id, time.monotonic()))
            for start in range(0, chunk.samples.size, PERIOD):
                if self._stopping.is_set():
                    return
                period = chunk.samples[start : start + PERIOD]
                self._sink.write(period)
                self._frames += period.size
        except SinkError as error:
            self._give_up(job, error)
        finally:
            chunk.release()

    def _finish(self, end: _End) -> None:
        if self._stopping.is_set():
            return  # whoever stops us has told what becomes of the command
        try:
            if self._frames and self._error is None:
                self._sink.drain()
        except SinkError as error:
            self._give_up(end.job, error)
        frames, error_heard = self._frames, self._error
        self._frames, self._error = 0, None
        self._post(PlaybackEnded(end.job.id, time.monotonic(), seconds(frames), end.error or error_heard))

    def _give_up(self, job: Job, error: SinkError) -> None:
        """End this utterance; the next one opens the sink anew."""
        self._error = error
        job.stopped.set()
        self._sink.close()
        self._post(AudioState(str(error)))

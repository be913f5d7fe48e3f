"""A player to be tried out, and what it posts and plays."""

from __future__ import annotations

import queue
import threading
from typing import Any

import numpy as np

from daemon.fader import FADE
from daemon.inbox import Inbox, PlaybackEnded, RealtimeAnswer
from daemon.job import Job
from daemon.loudspeaker import Manners
from daemon.player import Player
from device.format import RATE, Samples
from device.memory import AudioChunk, HostBufferPool
from device.null import NullSink

TIMEOUT_S = 30.0
BUFFERS = 4

ONE = 0.25
"""The level of what `play_ones` plays, and the unit of what `Heard` has heard: no peak, not at volume 2."""


class Bench:
    """A player and what it posts."""

    def __init__(self, sink: NullSink, **settings: Any) -> None:  # noqa: ANN401
        self.pool = HostBufferPool(buffers=BUFFERS, capacity=RATE, limit_bytes=2**30)
        self.posted: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        self.player = Player(sink, self.post, **{"manners": Manners(clicks=True), **settings})

    def post(self, message: Inbox) -> None:
        if not isinstance(message, RealtimeAnswer):  # another topic, and another one in each environment
            self.posted.put(message)

    def chunk(self, frames: int) -> AudioChunk:
        buffer = self.pool.acquire(TIMEOUT_S)
        return AudioChunk(buffer, buffer.samples[:frames])

    def until_end(self) -> list[Inbox]:
        """Give what is posted up to the next end of an utterance."""
        messages: list[Inbox] = []
        while not messages or not isinstance(messages[-1], PlaybackEnded):
            messages.append(self.posted.get(timeout=TIMEOUT_S))
        return messages

    def stop(self) -> None:
        self.player.stop()
        self.player.join(TIMEOUT_S)
        assert not self.player.is_alive()


def ends(messages: list[Inbox]) -> PlaybackEnded:
    (end,) = [message for message in messages if isinstance(message, PlaybackEnded)]
    return end


class Heard(NullSink):
    """The null sink, with all that it took kept."""

    def __init__(self, *, paced: bool = True) -> None:
        super().__init__(paced=paced)
        self.samples: list[Samples] = []
        self.reached = threading.Event()
        self.until = 0

    def write(self, samples: Samples) -> None:
        self.samples.append(samples / np.float32(ONE))
        super().write(samples)
        if self.frames >= self.until:
            self.reached.set()

    @property
    def all(self) -> Samples:
        return np.concatenate(self.samples)

    @property
    def body(self) -> Samples:
        """All but the ramp that is added before ones, which begin with a jump."""
        assert np.all(np.diff(self.all[:FADE]) > 0)
        return self.all[FADE:]


def play_ones(bench: Bench, job: Job, frames: int) -> None:
    chunk = bench.chunk(frames)
    chunk.samples[:] = ONE
    bench.player.play(job, chunk)
    bench.player.end(job)

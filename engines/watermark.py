"""An inaudible mark in speech, by which a program can tell that it is synthetic.

The mark is Perth's (see `engines.perth`), computed window by window as the speech is. What a window of 64 ms is marked
with is decided by the 150 ms before and after it, so everything comes `DELAY` frames later, and the samples are the
same however the speech was cut into pieces. Beyond its ends an utterance counts as silent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from device.format import PERIOD, Samples
from device.memory import AudioChunk, Buffer
from engines.runtime.engine import Engine
from engines.tally import Tally

HOP: Final = 480
"""Frames from one window to the next."""
WINDOW: Final = 3072
BANDS: Final = 128
"""Of a window's spectrum, those that are marked: 0 to 1984 Hz."""

CHANNELS: Final = 256
WIDTH: Final = 7
LAYERS: Final = 5
"""Of the net; `WIDTH` windows are what each layer looks at."""

REACH: Final = LAYERS * (WIDTH // 2)
"""Windows before one and after it that decide what it is marked with."""

DELAY: Final = -(-(REACH * HOP + WINDOW - HOP) // PERIOD) * PERIOD
"""Frames, 220 ms, from a sample to the same one with its mark: filled up so that periods stay whole. As many before a
sample have to be known for it to be marked as it was, had all of the utterance been there."""

PENDING: Final = DELAY - REACH * HOP
"""Frames to which windows that are still to come will add."""

STATE: Final = DELAY + PENDING + 2 * BANDS * REACH + LAYERS * CHANNELS * (WIDTH - 1)
"""Numbers that the graph wants back with the next piece: sound to come, marks to come, spectra to come, layers."""

_LONGEST: Final = 50 * HOP
"""Frames of one run."""


class Marker:
    """Marks one signal after another. For one thread; allocates its memory for samples once."""

    def __init__(self, engine: Engine) -> None:
        """`engine`, which runs the graph of `engines.watermark_graph`, may be shared. EngineError where it cannot."""
        self._engine = engine
        self._given, self._made = (np.zeros(STATE + _LONGEST, np.float32) for _ in range(2))
        self.held = 0
        """Frames of what comes next that are not given out before as many more are there."""
        self._odd = np.zeros(PERIOD, np.float32)
        self.mark(np.zeros(2 * DELAY, np.float32))
        # What the layers hold in silence is not zero.
        self._silence = self._given[:STATE].copy()

    def reset(self) -> None:
        """Begin another signal."""
        self._given[:STATE] = self._silence

    def mark(self, samples: Samples) -> None:
        """Put into the place of `samples`, a multiple of `HOP`, as many marked ones: those of `DELAY` frames before."""
        for start in range(0, samples.size, _LONGEST):
            piece = samples[start : start + _LONGEST]
            end = STATE + piece.size
            self._given[STATE:end] = piece
            self._engine.run_into({"signal": self._given[:end]}, self._made[:end])
            piece[:] = self._made[STATE:end]
            self._given, self._made = self._made, self._given

    def marked(
        self,
        speak: Callable[[int], Iterator[AudioChunk]],
        tally: Tally,
        acquire: Callable[[], Buffer | None],
        start: int = 0,
    ) -> Iterator[AudioChunk]:
        """Yield the chunks of an utterance from frame `start` on, marked where they lie.

        `speak` gives them from a frame on, in whole periods but for the last; `tally` is theirs. `acquire` gives a
        buffer for what is still to come when all of them are there, or None once nobody wants it.
        """
        is_first = tally.first_s is None
        begin = max(tally.frames, (start - DELAY) // PERIOD * PERIOD)
        self.held = DELAY + max(0, start - begin)
        for chunk in self._delayed(speak(begin), tally, acquire):
            samples = chunk.samples[self.held :]
            self.held -= min(self.held, chunk.samples.size)
            if not samples.size:
                chunk.release()
                continue
            if is_first:
                tally.first_s, tally.first_at = tally.compute_s, time.monotonic()
                is_first = False
            yield AudioChunk(chunk.buffer, samples)

    def _delayed(
        self, chunks: Iterator[AudioChunk], tally: Tally, acquire: Callable[[], Buffer | None]
    ) -> Iterator[AudioChunk]:
        """Yield chunks in whose memory the marked samples of `DELAY` frames before are, and at last what remains."""
        self.reset()
        odd: int | None = None
        for chunk in chunks:
            whole = chunk.samples.size // PERIOD * PERIOD
            odd = chunk.samples.size - whole
            self._odd[:odd] = chunk.samples[whole:]
            self._mark(AudioChunk(chunk.buffer, chunk.samples[:whole]), tally)
            yield AudioChunk(chunk.buffer, chunk.samples[:whole])
        buffer = None if odd is None else acquire()
        if buffer is None or odd is None:
            return
        rest = buffer.samples[: DELAY + -(-odd // PERIOD) * PERIOD]
        rest[:odd] = self._odd[:odd]
        rest[odd:] = 0
        self._mark(AudioChunk(buffer, rest), tally)
        yield AudioChunk(buffer, rest[: DELAY + odd])

    def _mark(self, chunk: AudioChunk, tally: Tally) -> None:
        begun = time.perf_counter()
        try:
            self.mark(chunk.samples)
        except BaseException:
            chunk.release()
            raise
        took_s = time.perf_counter() - begun
        tally.compute_s += took_s
        tally.mark_s = (tally.mark_s or 0.0) + took_s

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daemon.framing import Framing
from device.format import PERIOD, RATE, Samples
from device.memory import AudioChunk, HostBufferPool
from engines.tally import Tally

OVERLAP_MS = 50
OVERLAP = RATE * OVERLAP_MS // 1000
LENGTHS = st.integers(0, 6 * PERIOD)


def sound(frames: int, seed: int) -> Samples:
    return np.random.default_rng(seed).uniform(0.1, 0.4, frames).astype(np.float32)


class Room:
    """A pool, and what was heard."""

    def __init__(self) -> None:
        self.pool = HostBufferPool(buffers=4, capacity=2 * PERIOD, limit_bytes=2**20)
        self.tally = Tally()

    def chunks(self, samples: Samples, size: int = 2 * PERIOD) -> Iterator[AudioChunk]:
        for start in range(0, samples.size, size):
            buffer = self.pool.acquire(0)
            piece = samples[start : start + size]
            self.tally.frames += piece.size
            buffer.samples[: piece.size] = piece
            yield AudioChunk(buffer, buffer.samples[: piece.size])

    def framed(self, framing: Framing, said: Samples, size: int = 2 * PERIOD, start: int = 0) -> Samples:
        """What is heard from frame `start` on, of speech that passes over what lies before it."""
        self.tally = Tally(frames=min(start, framing.lead))

        def speech() -> Iterator[AudioChunk]:
            skipped = min(max(0, start - framing.lead), said.size)
            self.tally.frames += skipped
            yield from self.chunks(said[skipped:], size)

        return self.heard(framing.around(speech(), self.chunks, self.tally, start))

    def heard(self, chunks: Iterator[AudioChunk]) -> Samples:
        parts = [np.empty(0, np.float32)]
        for chunk in chunks:
            parts.append(chunk.samples.copy())
            chunk.release()
        return np.concatenate(parts)


def mixed(before: Samples, speech: Samples, after: Samples) -> Samples:
    """What should be heard, added up on a blank tape."""
    framing = Framing.of(before, after, overlap_ms=OVERLAP_MS)
    tape = np.zeros(before.size + speech.size + after.size + 8 * PERIOD, np.float32)
    tape[: before.size] += before
    tape[framing.lead : framing.lead + speech.size] += speech
    end = max(framing.lead + speech.size, before.size)
    start = end - (min(framing.overlap, speech.size) if framing.lead + speech.size == end else 0)
    tape[start : start + after.size] += after
    return tape[: max(end, start + after.size)]


@given(LENGTHS, LENGTHS, LENGTHS, st.integers(1, 2 * PERIOD))
def test_each_sound_is_heard_whole_and_in_its_place(before: int, speech: int, after: int, size: int) -> None:
    room = Room()
    first, said, last = sound(before, 1), sound(speech, 2), sound(after, 3)
    framing = Framing.of(first, last, overlap_ms=OVERLAP_MS)
    heard = room.framed(framing, said, size)
    assert room.tally.frames == heard.size
    if 3 * size >= OVERLAP + PERIOD:
        np.testing.assert_allclose(heard, mixed(first, said, last), atol=1e-6)
    assert heard.sum() == np.float32(0) or abs(heard.sum() - first.sum() - said.sum() - last.sum()) < 0.1
    assert room.pool.free == room.pool.size


@given(LENGTHS, LENGTHS, LENGTHS, st.floats(0, 1))
def test_what_goes_on_goes_on_as_it_began(before: int, speech: int, after: int, part: float) -> None:
    room = Room()
    first, said, last = sound(before, 1), sound(speech, 2), sound(after, 3)
    framing = Framing.of(first, last, overlap_ms=OVERLAP_MS)
    whole = room.framed(framing, said)
    start = round(part * whole.size)
    again = room.framed(framing, said, start=start)
    np.testing.assert_allclose(again, whole[start:], atol=1e-6)
    assert room.tally.frames == whole.size


def test_speech_begins_on_a_period_and_not_before_the_overlap() -> None:
    framing = Framing.of(sound(RATE, 1), None, overlap_ms=OVERLAP_MS)
    assert framing.lead % PERIOD == 0
    assert RATE - OVERLAP <= framing.lead < RATE - OVERLAP + PERIOD


def test_the_chime_is_as_loud_as_the_command() -> None:
    room, chime = Room(), sound(PERIOD, 1)
    framing = Framing.of(chime, None, overlap_ms=0, gain=0.5)
    np.testing.assert_allclose(room.framed(framing, chime[:0]), chime / 2)


def test_nothing_is_held_once_it_is_stopped() -> None:
    room = Room()
    framing = Framing.of(None, sound(4 * PERIOD, 1), overlap_ms=OVERLAP_MS)
    chunks = framing.around(room.chunks(sound(9 * PERIOD, 2)), room.chunks, room.tally)
    next(chunks).release()
    chunks.close()
    assert room.pool.free == room.pool.size

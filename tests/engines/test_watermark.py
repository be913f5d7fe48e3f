"""Marking speech as it streams: the same samples however it is cut, and nothing else touched. Weights are by lot."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulators.random_watermark import random_watermark

from device.format import PERIOD, RATE, Samples
from device.memory import AudioChunk, Buffer, HostBufferPool
from engines.errors import EngineError
from engines.runtime.engine import Feeds
from engines.runtime.ort import OrtEngine
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.vits import VitsVoice
from engines.watermark import DELAY, HOP
from engines.watermark_files import Watermark

SENTENCE = "the quick brown fox jumps over the lazy dog"
CAPACITY = 20 * PERIOD


def sound(frames: int, seed: int = 0) -> Samples:
    return (np.random.default_rng(seed).standard_normal(frames) * 0.1).astype(np.float32)


class Room:
    """A marker, and a pool from which what it marks comes."""

    def __init__(self) -> None:
        self.marker = random_watermark().marker()
        self.pool = HostBufferPool(buffers=2, capacity=CAPACITY, limit_bytes=2**22)
        self.sizes: list[int] = []
        self.tally = Tally()

    def chunks(self, samples: Samples, sizes: list[int]) -> Iterator[AudioChunk]:
        """Give it in chunks of so many periods, over and over; the last one has the rest."""
        at = number = 0
        while at < samples.size:
            piece = samples[at : at + sizes[number % len(sizes)] * PERIOD]
            buffer = self.pool.acquire(0)
            buffer.samples[: piece.size] = piece
            yield AudioChunk(buffer, buffer.samples[: piece.size])
            at, number = at + piece.size, number + 1

    def acquire(self) -> Buffer | None:
        return self.pool.acquire(0)

    def marked(self, samples: Samples, sizes: list[int], start: int = 0) -> Samples:
        self.sizes = []
        heard = [np.zeros(0, np.float32)]
        self.tally = Tally()
        for chunk in self.marker.marked(
            lambda begin: self.chunks(samples[begin:], sizes), self.tally, self.acquire, start
        ):
            self.sizes.append(chunk.samples.size)
            heard.append(chunk.samples.copy())
            chunk.release()
        assert self.pool.free == self.pool.size
        assert 0 not in self.sizes
        return np.concatenate(heard)


@pytest.fixture(scope="module")
def room() -> Room:
    return Room()


def whole(samples: Samples) -> Samples:
    """Mark it in one go."""
    filled = np.zeros(-(-samples.size // HOP) * HOP + DELAY, np.float32)
    filled[: samples.size] = samples
    random_watermark().marker().mark(filled)
    return filled[DELAY : DELAY + samples.size]


@settings(max_examples=15)
@given(frames=st.integers(1, 60 * PERIOD), sizes=st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_it_is_the_same_however_it_is_cut(room: Room, frames: int, sizes: list[int]) -> None:
    said = sound(frames)
    heard = room.marked(said, sizes)
    np.testing.assert_allclose(heard, whole(said), atol=1e-6)
    assert all(size % PERIOD == 0 for size in room.sizes[:-1])


@settings(max_examples=10)
@given(start=st.one_of(st.integers(0, 50 * PERIOD), st.sampled_from([0, 11 * PERIOD, 50 * PERIOD])))
def test_the_rest_of_an_utterance_is_marked_as_in_the_whole(room: Room, start: int) -> None:
    said = sound(50 * PERIOD)
    np.testing.assert_allclose(room.marked(said, [3], start), whole(said)[start:], atol=1e-6)


def test_only_what_is_below_2_khz_is_changed(room: Room) -> None:
    said = sound(2 * RATE)
    added = room.marked(said, [4]) - said
    power = np.abs(np.fft.rfft(added[RATE // 4 : -RATE // 4] * np.hanning(3 * RATE // 2))) ** 2
    edge = 2100 * power.size * 2 // RATE
    assert np.sqrt(np.mean(added**2)) > 0.01 * np.sqrt(np.mean(said**2))
    assert power[edge:].sum() < 1e-6 * power.sum()


def test_silence_stays_silent(room: Room) -> None:
    assert not room.marked(np.zeros(RATE, np.float32), [5]).any()


def test_an_utterance_knows_nothing_of_one_that_was_broken_off(room: Room) -> None:
    said, other = sound(RATE, 1), sound(RATE, 2)
    alone = room.marked(said, [5])
    broken_off = room.marker.marked(lambda _: room.chunks(other, [5]), Tally(), room.acquire)
    next(broken_off).release()
    np.testing.assert_array_equal(room.marked(said, [5]), alone)


def test_what_it_took_is_told(room: Room) -> None:
    room.marked(sound(RATE), [5])
    assert room.tally.mark_s is not None
    assert 0 < room.tally.mark_s == room.tally.compute_s
    assert room.tally.first_at is not None
    assert room.marked(sound(0), [1]).size == 0
    assert room.tally.mark_s is None


def test_a_failure_gives_every_buffer_back(room: Room) -> None:
    class Failing(OrtEngine):
        def run_into(self, feeds: Feeds, output: Samples) -> None:
            raise EngineError("marker", "failed")

    marker, marker._engine = room.marker, Failing.__new__(Failing)
    engine = random_watermark().engine
    try:
        with pytest.raises(EngineError):
            list(marker.marked(lambda _: room.chunks(sound(RATE), [5]), Tally(), room.acquire))
        assert room.pool.free == room.pool.size
    finally:
        marker._engine = engine


def test_marking_allocates_no_sample_memory(room: Room) -> None:
    said = sound(CAPACITY)
    room.marker.mark(said)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(20):
            room.marker.mark(said)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < said.nbytes / 2


@pytest.fixture
def pool() -> HostBufferPool:
    return HostBufferPool(buffers=2, capacity=CAPACITY, limit_bytes=2**22)


def spoken(
    synthesizer: Synthesizer, voice: VitsVoice, text: str, start: int = 0, tally: Tally | None = None
) -> Samples:
    parts = [np.zeros(0, np.float32)]
    for chunk in synthesizer.chunks(Utterance(text, seed=1), voice, tally or Tally(), start=start):
        parts.append(chunk.samples.copy())
        chunk.release()
    return np.concatenate(parts)


@pytest.mark.parametrize("text", ["a", SENTENCE, f"{SENTENCE}. Hello. {SENTENCE.capitalize()}."])
def test_a_voice_speaks_as_long_as_without_it(
    text: str, tiny: VitsVoice, phonemizer: Phonemizer, pool: HostBufferPool
) -> None:
    plain_tally, tally = Tally(), Tally()
    plain = spoken(Synthesizer(phonemizer, pool), tiny, text, tally=plain_tally)
    marking = Synthesizer(phonemizer, pool, watermark=random_watermark())
    marked = spoken(marking, tiny, text, tally=tally)
    np.testing.assert_allclose(marked, whole(plain), atol=1e-5)
    assert (tally.frames, tally.words, tally.sentences) == (
        plain_tally.frames,
        plain_tally.words,
        plain_tally.sentences,
    )
    assert pool.free == pool.size
    begin = plain.size * 2 // 3
    np.testing.assert_allclose(spoken(marking, tiny, text, begin), marked[begin:], atol=1e-5)


def test_nothing_to_say_is_nothing_to_mark(tiny: VitsVoice, phonemizer: Phonemizer, pool: HostBufferPool) -> None:
    assert not spoken(Synthesizer(phonemizer, pool, watermark=random_watermark()), tiny, "...").size


def test_marked_phrases_are_others_than_unmarked_ones(phonemizer: Phonemizer, pool: HostBufferPool) -> None:
    kinds = [None, random_watermark(), Watermark(random_watermark().engine, "another")]
    assert len({Synthesizer(phonemizer, pool, watermark=kind).fingerprint("en-us") for kind in kinds}) == 3


def test_who_stops_in_the_middle_waits_for_nothing(
    tiny: VitsVoice, phonemizer: Phonemizer, pool: HostBufferPool
) -> None:
    synthesizer = Synthesizer(phonemizer, pool, watermark=random_watermark())
    held: list[AudioChunk] = []
    for chunk in synthesizer.chunks(Utterance(SENTENCE * 3, seed=1), tiny, Tally(), lambda: bool(held)):
        held.append(chunk)  # noqa: PERF402  it is asked after each
    assert len(held) == 1
    held[0].release()
    assert pool.free == pool.size

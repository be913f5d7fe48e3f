from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from device.format import PERIOD, RATE, Samples
from device.limiter import AHEAD, ATTACK, CEILING_DBTP, LONGEST, Limiter


def true_peak(samples: Samples) -> float:
    """In dBTP, at eight times the rate."""
    finer = soxr.resample(np.pad(samples.astype(np.float64), 1000), RATE, 8 * RATE, quality="VHQ")
    return float(20 * np.log10(np.abs(finer).max()))


def babble(seed: int, seconds: float = 1.0, level: float = 1.0) -> Samples:
    """Noise below 8 kHz in syllables: peaks of very different heights."""
    rng = np.random.default_rng(seed)
    frames = round(seconds * RATE)
    narrow = soxr.resample(rng.standard_normal(frames // 3 + 100), 16_000, RATE)[:frames]
    syllables = np.sin(2 * np.pi * 3 * np.arange(narrow.size) / RATE) ** 4
    return (level * narrow * syllables / 3).astype(np.float32)


def pieces(samples: Samples, sizes: list[int]) -> Iterator[tuple[int, int]]:
    start, number = 0, 0
    while start < samples.size:
        end = min(start + sizes[number % len(sizes)], samples.size)
        yield start, end
        start, number = end, number + 1


SIZES = st.lists(st.integers(1, LONGEST), min_size=1, max_size=5)


@settings(max_examples=40)
@given(st.integers(0, 1000), st.floats(0.5, 8), SIZES, st.booleans())
def test_no_peak_between_the_samples_is_above_the_ceiling(
    seed: int,
    level: float,
    sizes: list[int],
    sees: bool,  # noqa: FBT001  hypothesis fills it in
) -> None:
    samples = babble(seed, 0.3, level)
    limiter = Limiter()
    for start, end in pieces(samples, sizes):
        limiter.limit(samples[start:end], samples[end : end + AHEAD] if sees else samples[:0])
    # A gain that has to fall at once rings a little.
    assert true_peak(samples) <= CEILING_DBTP + (0 if sees else 0.5)


@settings(max_examples=40)
@given(st.integers(0, 1000), SIZES)
def test_what_is_below_the_ceiling_is_not_touched(seed: int, sizes: list[int]) -> None:
    samples = babble(seed, 0.3)
    samples *= np.float32(0.87 / (10 ** (true_peak(samples) / 20)))  # 0.1 dB below
    before = samples.copy()
    limiter = Limiter()
    for start, end in pieces(samples, sizes):
        limiter.limit(samples[start:end], samples[end : end + AHEAD])
    np.testing.assert_array_equal(samples, before)


def test_only_what_is_near_a_peak_is_touched() -> None:
    samples = babble(1, level=0.3)
    spike = RATE // 2
    samples[spike : spike + 40] = np.float32(1.9) * np.hanning(40)
    before = samples.copy()
    Limiter().limit_all(samples)
    changed = np.flatnonzero(samples != before)
    assert spike - 2 * ATTACK < changed[0] < spike
    assert spike + 40 < changed[-1] < spike + RATE // 5
    before[before == 0] = 1
    gain = (samples / before)[changed]
    assert np.abs(np.diff(gain)).max() < 3 / ATTACK, "the gain has no step"


def test_a_peak_between_the_samples_counts() -> None:
    """A tone at a quarter of the rate whose samples all miss its crests by 3 dB."""
    samples = (1.2 * np.sin(np.pi / 2 * np.arange(RATE // 4) + np.pi / 4)).astype(np.float32)
    assert np.abs(samples).max() < 0.9 < 10 ** (true_peak(samples) / 20)
    Limiter().limit_all(samples)
    middle = samples[RATE // 16 : -RATE // 16]
    assert np.sqrt(2) * np.abs(middle).max() == pytest.approx(10 ** (-1.1 / 20), rel=0.01)


def test_the_gain_of_what_follows_is_known_too() -> None:
    quiet, loud = np.full(PERIOD, 0.3, np.float32), np.full(PERIOD, 0.6, np.float32)
    limiter = Limiter()
    limiter.limit(quiet, loud, 1.0)
    assert (quiet == np.float32(0.3)).all()
    limiter.limit(quiet, loud, 2.0)
    assert quiet[-1] < 0.3 * 0.9


def test_nothing_that_has_the_size_of_samples_is_allocated() -> None:
    limiter = Limiter()
    samples = babble(2, level=4.0)
    for start in range(0, 10 * PERIOD, PERIOD):
        limiter.limit(samples[start : start + PERIOD], samples[start + PERIOD :])
    taken = []
    tracemalloc.start()
    for start in range(10 * PERIOD, samples.size - PERIOD, PERIOD):
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        limiter.limit(samples[start : start + PERIOD], samples[start + PERIOD :])
        taken.append(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    # In the middle: other tests may have left threads that take something too.
    assert np.median(taken) < 4 * PERIOD


def test_another_signal_begins_at_rest() -> None:
    limiter = Limiter()
    limiter.limit_all(babble(3, level=8.0))
    limiter.reset()
    samples = np.full(PERIOD, 0.4, np.float32)
    limiter.limit(samples)
    assert (samples == np.float32(0.4)).all()

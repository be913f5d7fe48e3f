from __future__ import annotations

import math

import numpy as np
import pytest

from device.format import RATE, Samples
from engines.quality import BEST, MEAN_LIMIT_DB, Judge, Quality, distance


def speech(seconds: float = 1.0) -> Samples:
    """Harmonics under a slow envelope, with a pause in the middle."""
    time = np.arange(int(RATE * seconds)) / RATE
    sound = sum(np.sin(2 * np.pi * 140 * k * time + k) / k for k in range(1, 40))
    envelope = np.clip(np.sin(2 * np.pi * 3 * time), 0, None) * (np.abs(time - seconds / 2) > 0.1)
    return (0.1 * sound * envelope).astype(np.float32)


def noise(level: float, size: int) -> Samples:
    return (level * np.random.default_rng(1).standard_normal(size)).astype(np.float32)


def test_the_original_is_perfect() -> None:
    sound = speech()
    quality = Judge([sound], RATE).quality([sound])
    assert quality.distances_db == (0.0,)
    assert quality.score == BEST
    assert quality.snr_db == math.inf
    assert quality.passes


def test_noise_is_worse_the_louder_it_is() -> None:
    sound = speech()
    distances = [distance(sound, sound + noise(level, sound.size), RATE) for level in (1e-6, 1e-4, 1e-3, 1e-2)]
    assert distances == sorted(distances)
    assert distances[0] < 0.01
    assert distances[-1] > MEAN_LIMIT_DB


def test_what_is_not_heard_does_not_count() -> None:
    sound = speech()
    assert distance(sound, -sound, RATE) == 0, "a turned phase"
    assert distance(sound, sound * np.float32(1.02), RATE) == 0, "0.2 dB"
    time = np.arange(sound.size) / RATE
    ultrasound = (0.05 * np.hanning(time.size) * np.sin(2 * np.pi * 15_000 * time)).astype(np.float32)
    assert distance(sound, sound + ultrasound, RATE) < 0.05


def test_a_lost_band_and_a_clipped_peak_count() -> None:
    sound = speech()
    spectrum = np.fft.rfft(sound)
    spectrum[int(2000 * sound.size / RATE) :] = 0
    dull = np.fft.irfft(spectrum, sound.size).astype(np.float32)
    assert distance(sound, dull, RATE) > 3
    assert distance(sound, np.clip(sound, -0.05, 0.05), RATE) > 0.3


@pytest.mark.parametrize("rate", [16_000, 22_050, 48_000])
def test_any_rate_of_a_voice_is_judged(rate: int) -> None:
    sound = speech()
    assert distance(sound, sound, rate) == 0
    assert distance(sound, np.zeros_like(sound), rate) > 5


def test_one_bad_sentence_fails_a_voice() -> None:
    assert Quality((0.3, 0.3, 0.3, 0.3), 20).passes
    assert not Quality((0.3, 0.3, 0.3, 1.6), 20).passes
    assert not Quality((1.0, 1.0, 1.0), 20).passes


def test_no_numbers_do_not_pass() -> None:
    sound = speech()
    spoilt = sound.copy()
    spoilt[100] = np.nan
    assert not Judge([sound], RATE).quality([spoilt]).passes


def test_fewer_sounds_are_judged_by_the_first_references() -> None:
    first, second = speech(), speech(0.5)
    judge = Judge([first, second], RATE)
    assert judge.quality([first]).distances_db == (0.0,)
    assert len(judge.quality([first, second]).distances_db) == 2


def test_silence_beside_silence_is_perfect() -> None:
    silence = np.zeros(RATE, np.float32)
    assert Judge([silence], RATE).quality([silence]).passes

from __future__ import annotations

import numpy as np
import pytest
import soxr

from device.format import PERIOD
from engines.errors import GraphError
from engines.importer import resample
from engines.resampling import block_size

RATES = [8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]


@pytest.mark.parametrize("rate", RATES)
def test_blocks_fit_periods(rate: int) -> None:
    samples, frames = block_size(rate)
    assert PERIOD % frames == 0
    assert samples * 48_000 == frames * rate


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("share_of_nyquist", [0.02, 0.3, 0.85])
def test_a_tone_stays_a_tone(rate: int, share_of_nyquist: float) -> None:
    frequency = share_of_nyquist * rate / 2
    count = rate // 2
    tone = np.sin(2 * np.pi * frequency * np.arange(count) / rate).astype(np.float32)
    ideal = np.sin(2 * np.pi * frequency * np.arange(24_000) / 48_000)
    got = resample(tone, rate)[:24_000]
    inside = slice(2_000, -2_000)  # the tone begins and ends with a step that no filter can follow
    error = np.sqrt(np.mean((got[inside] - ideal[inside]) ** 2)) / np.sqrt(0.5)
    assert 20 * np.log10(error) < -85


@pytest.mark.parametrize("rate", [16_000, 22_050])
def test_noise_agrees_with_an_independent_resampler(rate: int) -> None:
    rng = np.random.default_rng(0)
    spectrum = np.fft.rfft(rng.standard_normal(rate))
    spectrum[int(0.43 * rate) :] = 0  # above 0.86 of the Nyquist frequency the two filters may differ
    noise = (np.fft.irfft(spectrum, rate) * 0.1).astype(np.float32)
    expected = soxr.resample(noise, rate, 48_000, quality="VHQ")
    got = resample(noise, rate)[: expected.size]
    inside = slice(2_000, -2_000)
    error = np.sqrt(np.mean((got[inside] - expected[inside]) ** 2)) / np.sqrt(np.mean(expected**2))
    assert 20 * np.log10(error) < -75


def test_48_khz_passes_untouched() -> None:
    noise = np.random.default_rng(0).standard_normal(3_000).astype(np.float32)
    np.testing.assert_array_equal(resample(noise, 48_000)[:3_000], noise)


def test_11_khz_is_refused() -> None:
    with pytest.raises(GraphError, match="11025 Hz"):
        block_size(11_025)

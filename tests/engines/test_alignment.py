from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.alignment import align
from engines.errors import EngineError


def prior_of(durations: list[float], channels: int = 2) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2 * channels, len(durations))).astype(np.float32)
    return np.concatenate([rows, np.array([durations], np.float32)])


def noise_of(frames: int, channels: int = 2) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((1, channels, frames)).astype(np.float32)


def test_each_id_lasts_for_its_duration_rounded_up() -> None:
    prior = prior_of([0.2, 2.0, 0.0, 2.1])
    found = align(prior, noise_of(9), 0)
    assert found.durations is not None
    assert list(found.durations) == [1, 2, 0, 3]
    np.testing.assert_array_equal(found.latents[0], prior[:2][:, [0, 1, 1, 3, 3, 3]])
    assert found.latents.flags.c_contiguous


def test_noise_is_scaled_by_each_id_and_repeated_beyond_its_end() -> None:
    prior, noise = prior_of([2.0, 3.0]), noise_of(2)
    latents = align(prior, noise, 0.5).latents[0]
    ids = [0, 0, 1, 1, 1]
    expected = prior[:2][:, ids] + 0.5 * np.exp(prior[2:4][:, ids]) * noise[0][:, [0, 1, 0, 1, 0]]
    np.testing.assert_allclose(latents, expected, rtol=1e-6)


def test_where_nothing_lasts_there_is_one_frame_of_noise_as_vits_has_it() -> None:
    noise = noise_of(4)
    found = align(prior_of([0.0, 0.0]), noise, 0.5)
    np.testing.assert_allclose(found.latents, noise[:, :, :1] / 2)


@pytest.mark.parametrize("wrong", [-3.0, 1e9])
def test_durations_beyond_reason_are_an_engine_error(wrong: float) -> None:
    with pytest.raises(EngineError, match="frames of 3 ids"):
        align(prior_of([2.0, wrong, 2.0]), noise_of(4), 1)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 3, -1])
def test_what_is_no_number_is_an_engine_error(row: int, wrong: float) -> None:
    prior = prior_of([2.0, 1.0, 2.0])
    prior[row, 1] = wrong
    with pytest.raises(EngineError, match="no numbers"):
        align(prior, noise_of(4), 1)


@given(
    durations=st.lists(st.floats(0, 50, width=32), min_size=1, max_size=40),
    frames=st.integers(1, 300),
)
def test_latents_are_as_many_as_the_durations_say(durations: list[float], frames: int) -> None:
    found = align(prior_of(durations), noise_of(frames), 1)
    assert found.durations is not None
    assert found.latents.shape == (1, 2, max(1, found.durations.sum()))
    assert (found.durations >= np.array(durations)).all()
    assert np.isfinite(found.latents).all()

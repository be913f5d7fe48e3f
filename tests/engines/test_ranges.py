from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.runtime.ranges import (
    LEVELS,
    METHODS,
    Grid,
    Method,
    Taker,
    as_scale,
    fit,
    rounded,
    to_levels,
    weight_scales,
)

RNG = np.random.default_rng(3)


def taker(spread: float = 1.0, channels: int = 16) -> Taker:
    """What follows a LeakyReLU, with channels whose ranges differ by `spread`."""
    loudness = np.geomspace(1, spread, channels)[:, None, None]
    values = RNG.standard_normal((channels, 3, 500)) * loudness
    columns = np.where(values > 0, values, 0.1 * values).astype(np.float32)
    weights = (RNG.standard_normal((8, channels, 3)) / loudness.reshape(1, -1, 1)).astype(np.float32)
    return Taker(weights, columns)


def error(one: Taker, grid: Grid) -> float:
    """Of the product, relative, with weights as they are."""
    target = one.weights.reshape(8, -1) @ one.columns.reshape(-1, 500)
    found = (one.weights / grid.gains[:, None]).reshape(8, -1) @ rounded(one.columns, grid).reshape(-1, 500)
    return float(np.square(found - target).sum() / np.square(target).sum())


def test_gains_bring_unequal_channels_near_each_other() -> None:
    one = taker(spread=30)
    grid = fit([one])
    loud = np.abs(one.columns).reshape(16, -1).max(axis=1)
    assert np.ptp(np.log(loud * grid.gains)) < 0.55 * np.ptp(np.log(loud))
    others = {method: error(one, fit([one], method)) for method in METHODS if method != "output"}
    assert all(error(one, grid) < 0.25 * other for other in others.values()), others


def test_all_who_take_a_tensor_count() -> None:
    one = taker(spread=30)
    deaf = Taker(np.zeros_like(one.weights), one.columns)
    deaf.weights[:, -1] = one.weights[:, -1]
    alone, both = fit([one]), fit([one, deaf])
    assert np.isfinite(both.gains).all()
    assert error(one, both) < 4 * error(one, alone)


@pytest.mark.parametrize("method", METHODS)
def test_the_largest_value_is_the_most_that_a_range_takes(method: Method) -> None:
    one = taker()
    grid = fit([one], method)
    assert 0 < grid.scale * LEVELS <= np.abs(one.columns * grid.gains[:, None, None]).max() * 1.001


def test_a_rare_spike_is_clipped_by_all_but_minmax() -> None:
    one = taker()
    one.columns[0, 0, 0] = 100
    ends = {method: fit([one], method).scale * LEVELS for method in METHODS}
    assert ends["minmax"] == pytest.approx(100, rel=1e-3)
    assert all(end < 95 for method, end in ends.items() if method != "minmax"), ends


def test_a_silent_tensor_and_a_silent_channel_have_a_grid() -> None:
    for columns in (np.zeros((16, 3, 500), np.float32), taker().columns * np.arange(16)[:, None, None]):
        one = Taker(taker().weights, columns.astype(np.float32))
        for method in METHODS:
            grid = fit([one], method)
            assert grid.scale > 0
            assert np.isfinite(grid.gains).all()
            assert (grid.gains > 0).all()


@given(st.floats(1e-6, 1e3), st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=50))
def test_rounding_errs_by_half_a_step_at_most(scale: float, values: list[float]) -> None:
    grid = Grid(as_scale(scale), np.ones(1, np.float32))
    columns = np.array(values, np.float32).reshape(1, -1)
    inside = np.abs(columns) <= LEVELS * grid.scale
    assert (np.abs(rounded(columns, grid) - columns)[inside] <= grid.scale * 0.501).all()
    assert rounded(np.zeros((1, 1), np.float32), grid) == 0, "padding stays exact"


@given(st.floats(0, 6e4))
def test_a_scale_is_one_that_fp16_holds(scale: float) -> None:
    held = as_scale(scale)
    assert held >= 2.0**-14
    assert float(np.float16(held)) == held


def test_weights_of_each_output_channel_have_a_scale_of_their_own() -> None:
    rows = (RNG.standard_normal((4, 16, 3)) * np.array([1, 10, 0.1, 0])[:, None, None]).astype(np.float32)
    scales = weight_scales(rows)[:, None, None]
    levels = to_levels(rows, scales)
    assert np.abs(levels).max() <= LEVELS
    assert np.abs(levels[:3]).reshape(3, -1).max(axis=1).min() > 100
    np.testing.assert_allclose(levels * scales, rows, atol=float(np.abs(rows).max()) / 90)

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from daemon.histogram import BOUNDS_MS, LARGEST_ERROR, Ratio, Rolling

DURATIONS = st.floats(min_value=0.2, max_value=50_000)


@given(st.lists(DURATIONS, min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_as_near_as_it_says(values: list[float], share: float) -> None:
    rolling = Rolling()
    for value in values:
        rolling.add(value, 0.0)
    found = rolling.percentiles([share], 0.0)
    assert found is not None
    exact = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    assert abs(found[0] - exact) <= LARGEST_ERROR * exact + 1e-9


@given(st.lists(st.tuples(DURATIONS, st.floats(0, 20_000)), max_size=100))
def test_it_holds_the_last_hour_and_forgets_the_rest(arrivals: list[tuple[float, float]]) -> None:
    rolling = Rolling()
    arrivals.sort(key=lambda arrival: arrival[1])
    now = 0.0
    for value, now in arrivals:
        rolling.add(value, now)
    sure = sum(at > now - 3300 for _, at in arrivals)
    most = sum(at > now - 3900 for _, at in arrivals)
    assert sure <= rolling.count(now) <= most
    assert sum(rolling.total) == len(arrivals)
    assert rolling.percentiles([0.5], now + 4000) is None
    assert rolling.count(now + 4000) == 0


def test_what_is_beyond_the_buckets_is_counted_all_the_same() -> None:
    rolling = Rolling()
    for value in (-1.0, 0.0, 1e9):
        rolling.add(value, 0.0)
    assert rolling.count(0.0) == 3
    assert rolling.percentiles([1.0], 0.0) == [BOUNDS_MS[-1]]


def test_the_usual_limits_are_bounds() -> None:
    assert {50.0, 100.0, 250.0, 500.0} <= set(BOUNDS_MS)
    assert list(BOUNDS_MS) == sorted(set(BOUNDS_MS))


def test_a_ratio_forgets_too() -> None:
    ratio = Ratio()
    assert ratio.value(0.0) is None
    ratio.add(3.0, 2.0, 0.0)
    ratio.add(1.0, 2.0, 1800.0)
    assert ratio.value(1800.0) == 1.0
    assert ratio.value(3700.0) == 0.5
    assert ratio.value(9000.0) is None

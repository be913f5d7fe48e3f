from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from power.zones import COLDEST, FAR_ABOVE, HOTTEST, STUCK_AFTER, Trust

SAID = st.one_of(st.text(), st.integers(-(10**6), 10**6).map(str), st.sampled_from(["-256000", "-256", "", "100000"]))


@given(st.lists(st.dictionaries(st.sampled_from(["cpu", "gpu", "tj"]), SAID), max_size=20))
def test_only_temperatures_that_silicon_bears_are_told(readings: list[dict[str, str]]) -> None:
    trust = Trust()
    for texts in readings:
        believed = trust.believed(texts)
        assert believed.keys() <= texts.keys()
        assert all(COLDEST <= value <= HOTTEST and int(texts[name]) == value for name, value in believed.items())


@given(st.lists(st.integers(20_000, 99_000), min_size=1, max_size=30))
def test_zones_of_one_chip_are_always_told(path: list[int]) -> None:
    trust = Trust()
    for value in path:
        assert trust.believed({"cpu": str(value), "gpu": str(value - 4_000)}) == {"cpu": value, "gpu": value - 4_000}


def test_below_zero_is_cold_not_missing() -> None:
    assert Trust().believed({"cpu": "-12000", "gpu": "-11500"}) == {"cpu": -12_000, "gpu": -11_500}


def test_a_zone_that_always_says_100_is_not_believed() -> None:
    trust = Trust()
    for step in range(2 * STUCK_AFTER):
        assert trust.believed({"cpu": str(45_000 + step % 3 * 100), "die": "100000"}).keys() == {"cpu"}


def test_a_zone_that_moves_is_believed_however_hot() -> None:
    trust = Trust()
    temperatures = itertools.chain([60_000], range(90_000, 99_000, 500))
    for value in temperatures:
        believed = trust.believed({"board": "30000", "cpu": str(value)})
    assert believed == {"board": 30_000, "cpu": 98_500}


def test_a_zone_that_stops_far_above_is_dropped_after_a_while() -> None:
    trust = Trust()
    trust.believed({"cpu": "45000", "gpu": "44000"})
    hot = 45_100 + FAR_ABOVE
    for step in range(STUCK_AFTER - 1):
        assert trust.believed({"cpu": str(45_000 + step % 2), "gpu": str(hot)})["gpu"] == hot
    for step in range(3):
        last = trust.believed({"cpu": str(45_000 + step % 2), "gpu": str(hot)})
    assert last.keys() == {"cpu"}


def test_one_zone_alone_is_told() -> None:
    assert Trust().believed({"acpitz": "90000"}) == {"acpitz": 90_000}

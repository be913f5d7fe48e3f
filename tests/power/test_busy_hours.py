from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from power.busy_hours import BusyHours

DAY = 740_000


def week(days: int, hour: int = 12, commands: int = 5) -> BusyHours:
    hours = BusyHours()
    for day in range(DAY, DAY + days):
        for _ in range(commands):
            hours = hours.with_command(day, hour)
    return hours


def test_what_was_usual_yesterday_is_expected_today() -> None:
    hours = week(1)
    assert not hours.usual(DAY, 12)  # nothing is known of today before it is over
    assert hours.usual(DAY + 1, 12)
    assert not hours.usual(DAY + 1, 13)


def test_a_single_command_is_no_habit() -> None:
    assert not week(5, commands=1).usual(DAY + 5, 12)


def test_a_day_off_is_forgiven_and_a_month_is_not() -> None:
    hours = week(7)
    assert hours.usual(DAY + 8, 12)
    assert not hours.usual(DAY + 20, 12)
    assert not hours.usual(DAY + 400, 12)


def test_new_habits_replace_old_ones() -> None:
    hours = week(7, hour=9)
    for day in range(DAY + 7, DAY + 14):
        for _ in range(5):
            hours = hours.with_command(day, 20)
    assert hours.usual(DAY + 14, 20)
    assert not hours.usual(DAY + 14, 9)


def test_a_clock_that_is_set_back_loses_one_day_only() -> None:
    hours = week(7).with_command(DAY - 3, 8)
    assert hours.usual(DAY - 2, 12)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 23)), max_size=50))
def test_it_is_kept_as_text(commands: list[tuple[int, int]]) -> None:
    hours = BusyHours()
    for day, hour in commands:
        hours = hours.with_command(day, hour)
    again = BusyHours.from_text(hours.to_text())
    assert again.today == hours.today
    assert again.average == pytest.approx(hours.average, abs=1e-3)


@given(st.text() | st.recursive(st.integers() | st.floats() | st.none(), st.lists).map(str))
def test_what_is_no_such_text_is_refused(text: str) -> None:
    try:
        BusyHours.from_text(text)
    except ValueError:
        return
    assert text.startswith("[")

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from power.actions import MOST_LINE_BYTES, Action, Restore, SetEmcCap, SetLimits, SetPowerMode, line_of, parse
from power.errors import ActionError

HERTZ = st.integers(0, 99_999_999_999)
DOMAINS = st.sampled_from(["gpu", "emc"]) | st.integers(0, 9999).map(lambda number: f"cpu{number}")
ACTIONS = st.one_of(
    st.builds(SetLimits, DOMAINS, HERTZ, HERTZ),
    st.builds(SetEmcCap, HERTZ),
    st.builds(SetPowerMode, st.integers(0, 999_999)),
    st.just(Restore()),
)


@given(ACTIONS)
def test_an_action_survives_its_line(action: Action) -> None:
    line = line_of(action)
    assert line.endswith(b"\n")
    assert len(line) <= MOST_LINE_BYTES
    assert parse(line[:-1]) == action


@given(st.binary(max_size=80) | st.text(alphabet="limtsgpuecd -poweraresto0123456789/.\n", max_size=60).map(str.encode))
def test_any_bytes_are_an_action_or_refused(line: bytes) -> None:
    try:
        action = parse(line)
    except ActionError:
        return
    assert parse(line_of(action)[:-1]) == action


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"limits gpu 1",
        b"limits gpu 1 2 3",
        b"limits gpu -1 2",
        b"limits ../../etc 1 2",
        b"limits cpu01 1 2",
        b"limits gpu 1 2\n",
        b"LIMITS gpu 1 2",
        b"limits gpu  1 2",
        b"limits gpu 1 999999999999",
        "limits gpu 1 ٢".encode(),
        b"power-mode 2 --force",
        b"power-mode -1",
        b"emc-cap",
        b"restore now",
        b"write /sys/x 1",
    ],
)
def test_nothing_else_is_one(line: bytes) -> None:
    with pytest.raises(ActionError):
        parse(line)

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import calibration
from engines.backends import Wanted, load_voice
from engines.pace import Pace
from engines.pack import Pack
from engines.vits import Delivery, VitsVoice
from engines.windows import Speed

MEASURED = Speed(0.002, 0.001)
FRAMES = 98
EXPECTED_S = 0.1

CAPACITY = 48_000


def pace_of(times_s: list[float]) -> Pace:
    pace = Pace()
    for time_s in times_s:
        pace.note(MEASURED, FRAMES, time_s)
    return pace


def test_without_windows_what_was_measured_holds() -> None:
    assert Pace().corrected(MEASURED) == MEASURED


@given(st.lists(st.floats(0.051, 0.19), min_size=1, max_size=30))
def test_times_that_are_about_right_change_nothing(times_s: list[float]) -> None:
    assert pace_of(times_s).corrected(MEASURED) == MEASURED


@given(st.lists(st.floats(0, 0.0059), min_size=1, max_size=30))
def test_what_nobody_notices_changes_nothing(times_s: list[float]) -> None:
    pace = Pace()
    for time_s in times_s:
        pace.note(Speed(0.0, 0.0001), 10, time_s)
    assert pace.corrected(Speed(0.0, 0.0001)) == Speed(0.0, 0.0001)


def test_one_window_shows_that_the_device_is_quicker() -> None:
    found = pace_of([0.09, 0.01, 0.1]).corrected(MEASURED)
    assert found.overhead_s == pytest.approx(0.0002)
    assert found.frame_s == pytest.approx(0.0001)


def test_only_several_windows_one_after_another_show_that_it_is_slower() -> None:
    assert pace_of([0.3] * 7).corrected(MEASURED) == MEASURED
    assert pace_of([0.3] * 8).corrected(MEASURED).frame_s == pytest.approx(0.003)
    assert pace_of([0.3] * 8 + [EXPECTED_S] + [0.3] * 7).corrected(MEASURED) == MEASURED, "the neighbour was away once"


def test_what_was_long_ago_counts_no_more() -> None:
    assert pace_of([0.01] + [EXPECTED_S] * 8).corrected(MEASURED) == MEASURED


def spoken_pieces(voice: VitsVoice, sentences: int) -> list[int]:
    """Give the frames of the first piece of each of so many sentences of about three seconds."""
    ids = calibration.probe_ids(voice)
    firsts = []
    for _ in range(sentences):
        spoken = voice.speak(ids, Delivery(), np.random.default_rng(0), capacity=CAPACITY)
        firsts.append(spoken.pieces[0].frames)
        for piece in spoken.pieces:
            piece.render(np.empty(piece.needed, np.float32))
    return firsts


def test_a_voice_that_was_measured_beside_heavy_work_soon_begins_with_little(tiny_pack: Pack) -> None:
    with closing(load_voice(tiny_pack, Wanted(threads=1))) as voice:
        rightly = spoken_pieces(voice, 2)[-1]
        voice.speed, voice.pace = Speed(0.05, 0.005), Pace()
        before, after = spoken_pieces(voice, 2)
        assert before > 2 * after
        assert after <= 2 * rightly


def test_a_voice_on_a_device_that_has_become_slow_gets_time_for_the_next_piece(tiny_pack: Pack) -> None:
    with closing(load_voice(tiny_pack, Wanted(threads=1))) as voice:
        assert voice.pace is not None
        [before] = spoken_pieces(voice, 1)
        for _ in range(8):
            voice.pace.note(voice.speed, 1, 0.1)
        [after] = spoken_pieces(voice, 1)
        assert after > 2 * before


def test_where_each_sample_is_to_be_as_the_last_time_nothing_is_learned(tiny_pack: Pack) -> None:
    with closing(load_voice(tiny_pack, Wanted(threads=1, learns=False))) as voice:
        voice.speed = Speed(0.05, 0.005)
        assert len(set(spoken_pieces(voice, 3))) == 1

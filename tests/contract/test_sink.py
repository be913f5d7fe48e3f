"""What `device.sink.Sink` promises, on every implementation there is."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from contract.rigs import Rig

from device.errors import SinkError
from device.format import RATE, seconds

ODD_LENGTHS = [4801, 1, 7, 959, 960, 961, 0, 5000]

AT_ONCE_S = 5.0
"""Far less than waiting for ever, far more than the busiest machine takes for what needs no waiting."""


class TestSink:
    def test_says_where_the_sound_goes(self, rig: Rig) -> None:
        before = rig.sink.description
        rig.sink.open()
        assert before
        assert rig.sink.description.startswith(before)

    @pytest.mark.parametrize("use", ["write", "drain", "drop"])
    @pytest.mark.parametrize("closed", [False, True])
    def test_refuses_use_while_not_open(self, rig: Rig, use: str, *, closed: bool) -> None:
        if closed:
            rig.sink.open()
            rig.sink.close()
        arguments = [rig.signal(960, 0)] if use == "write" else []
        with pytest.raises(SinkError, match="not open"):
            getattr(rig.sink, use)(*arguments)

    def test_what_is_written_comes_out_whatever_the_lengths(self, rig: Rig) -> None:
        segment = rig.signal(sum(ODD_LENGTHS), 1)
        with rig.listening():
            rig.sink.open()
            for piece in np.split(segment, np.cumsum(ODD_LENGTHS)[:-1]):
                rig.sink.write(piece)
            rig.sink.drain()
            rig.sink.close()
        rig.check([segment])

    def test_a_short_sound_comes_out_whole(self, rig: Rig) -> None:
        segment = rig.signal(RATE * 60 // 1000, 2)
        with rig.listening():
            rig.sink.open()
            rig.sink.write(segment)
            rig.sink.drain()
            rig.sink.close()
        rig.check([segment])

    def test_takes_more_after_a_drain_and_after_standing_idle(self, rig: Rig) -> None:
        segments = [rig.signal(frames, seed) for seed, frames in enumerate((4799, 2881, 9600))]
        with rig.listening():
            rig.sink.open()
            rig.sink.write(segments[0])
            rig.sink.drain()
            rig.sink.write(segments[1])
            rig.sink.drain()
            threading.Event().wait(0.4)
            rig.sink.write(segments[2])
            rig.sink.drain()
            rig.sink.close()
        rig.check(segments)

    def test_an_open_sink_opens_again_without_effect(self, rig: Rig) -> None:
        segment = rig.signal(9600, 3)
        with rig.listening():
            rig.sink.open()
            rig.sink.write(segment[:5000])
            rig.sink.open()
            rig.sink.write(segment[5000:])
            rig.sink.drain()
            rig.sink.close()
        rig.check([segment])

    def test_drains_with_nothing_to_drain(self, rig: Rig) -> None:
        rig.sink.open()
        began = time.monotonic()
        rig.sink.drain()
        rig.sink.write(rig.signal(0, 0))
        rig.sink.drain()
        rig.sink.drop()
        rig.sink.drain()
        assert time.monotonic() - began < AT_ONCE_S

    def test_drains_twice(self, rig: Rig) -> None:
        rig.sink.open()
        rig.sink.write(rig.signal(2000, 0))
        rig.sink.drain()
        began = time.monotonic()
        rig.sink.drain()
        assert time.monotonic() - began < AT_ONCE_S

    def test_a_paced_sink_drains_when_the_last_frame_has_been_played(self, rig: Rig) -> None:
        rig.sink.open()
        samples = rig.signal(RATE // 2 if rig.paced else 10 * RATE, 0)
        began = time.monotonic()
        rig.sink.write(samples)
        written = time.monotonic() - began
        rig.sink.drain()
        drained = time.monotonic() - began
        if rig.paced:
            assert written < drained
            assert seconds(len(samples)) - 0.05 < drained < seconds(len(samples)) + AT_ONCE_S
        else:
            assert drained < seconds(len(samples)) / 2

    def test_takes_more_after_a_drop(self, rig: Rig) -> None:
        first, second = rig.signal(7001, 4), rig.signal(4807, 5)
        with rig.listening():
            rig.sink.open()
            rig.sink.write(first)
            began = time.monotonic()
            rig.sink.drop()
            assert time.monotonic() - began < AT_ONCE_S
            rig.sink.write(second)
            rig.sink.drain()
            rig.sink.close()
        rig.check([second], complete=False)

    def test_tells_how_much_it_has_still_to_play(self, rig: Rig) -> None:
        assert rig.sink.pending == 0
        with rig.listening():
            rig.sink.open()
            seen = []
            for _ in range(10):  # a busy machine may come back to look only when all has been played
                rig.sink.write(rig.signal(RATE // 20, 0))
                seen.append(rig.sink.pending)
                threading.Event().wait(0.02)
                assert rig.sink.pending < RATE // 20
                rig.sink.drain()
                assert rig.sink.pending == 0
                if seen[-1] or not rig.paced:
                    break
            assert 0 < seen[-1] <= RATE // 20 if rig.paced else seen == [0]
            rig.sink.close()
        assert rig.sink.pending == 0

    def test_counts_no_gap_where_there_was_none(self, rig: Rig) -> None:
        assert rig.sink.underruns == 0
        rig.sink.open()
        for _ in range(2):
            rig.sink.write(rig.signal(2000, 0))
            rig.sink.drain()
        assert rig.sink.underruns == 0

    def test_is_well_while_it_is_open(self, rig: Rig) -> None:
        rig.sink.open()
        rig.sink.check()
        rig.sink.write(rig.signal(960, 0))
        rig.sink.check()
        rig.sink.drain()
        rig.sink.check()
        rig.sink.close()
        with pytest.raises(SinkError, match="not open"):
            rig.sink.check()

    def test_plays_in_periods_of_less_than_a_tenth_of_a_second(self, rig: Rig) -> None:
        rig.sink.open()
        assert 0 <= rig.sink.period < RATE // 10

    def test_closes_twice_and_before_it_was_opened(self, rig: Rig) -> None:
        rig.sink.close()
        rig.sink.open()
        rig.sink.close()
        rig.sink.close()

    def test_opens_again_after_close(self, rig: Rig) -> None:
        rig.sink.open()
        rig.sink.write(rig.signal(3000, 6))
        rig.sink.drain()
        rig.sink.close()
        segment = rig.signal(4801, 7)
        with rig.listening():
            rig.sink.open()
            rig.sink.write(segment)
            rig.sink.drain()
            rig.sink.close()
        rig.check([segment], complete=False)

    def test_reads_the_memory_before_write_returns_and_never_writes_it(self, rig: Rig) -> None:
        segment = rig.signal(6000, 8)
        given = segment.copy()
        with rig.listening():
            rig.sink.open()
            given.flags.writeable = False
            rig.sink.write(given)
            np.testing.assert_array_equal(given, segment)
            given.flags.writeable = True
            given.fill(1.0)
            rig.sink.drain()
            rig.sink.close()
        rig.check([segment])

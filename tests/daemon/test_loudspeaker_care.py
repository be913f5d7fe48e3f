"""Who opens, closes, wakes and finds the loudspeaker, and what becomes of speech meanwhile."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from simulators.faulty_sink import FaultySink
from simulators.player_bench import FADE, ONE, TIMEOUT_S, Bench, Heard, ends, play_ones

import daemon.loudspeaker
from daemon.inbox import AudioState, PlaybackEnded
from daemon.job import Job
from daemon.loudspeaker import Manners
from device.errors import SinkError
from device.format import PERIOD, RATE, Samples
from device.null import NullSink

KEEPS = Manners(clicks=True, keeps=True)


class TestLost:
    def test_one_that_is_not_there_at_first_is_found_without_a_command(self) -> None:
        sink = FaultySink()
        sink.fail.add("open")
        bench = Bench(sink, manners=KEEPS)
        bench.player.start()
        assert bench.posted.get(timeout=TIMEOUT_S) == AudioState("lost: faulty: open failed")
        sink.fail.clear()
        assert bench.posted.get(timeout=TIMEOUT_S) == AudioState("")
        bench.stop()

    def test_the_wait_between_attempts_grows_and_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = 100.0
        monkeypatch.setattr(daemon.loudspeaker.time, "monotonic", lambda: now)
        sink = FaultySink()
        sink.fail.add("open")
        speaker = daemon.loudspeaker.Loudspeaker(sink, lambda _: None, KEEPS)
        with pytest.raises(SinkError):
            speaker.open()
        waits = []
        for _ in range(6):
            wait = speaker.care_in_s()
            assert wait is not None
            waits.append(wait)
            now += wait
            speaker.tend()
        assert waits == [0.25, 0.5, 1, 2, 2, 2]
        assert sink.calls.count("open") == 7

    def test_one_that_is_unplugged_while_nothing_is_said_is_missed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(daemon.loudspeaker, "_CHECK_S", 0.05)
        sink = FaultySink()
        bench = Bench(sink, manners=KEEPS)
        bench.player.start()
        assert bench.posted.get(timeout=TIMEOUT_S) == AudioState("")
        sink.fail |= {"check", "open"}
        assert bench.posted.get(timeout=TIMEOUT_S) == AudioState("lost: faulty: check failed")
        assert bench.posted.get(timeout=TIMEOUT_S) == AudioState("lost: faulty: open failed")
        sink.fail.clear()
        assert bench.posted.get(timeout=TIMEOUT_S) == AudioState("")
        bench.stop()

    def test_one_that_is_dead_at_the_first_word_is_opened_anew_and_nothing_is_lost(self) -> None:
        class Restarted(Heard):
            """As a sound server that was started again: what was opened before takes nothing."""

            dead = True

            def write(self, samples: Samples) -> None:
                if self.dead:
                    raise SinkError("restarted", "no such stream")
                super().write(samples)

            def close(self) -> None:
                self.dead = False
                super().close()

        sink = Restarted(paced=False)
        bench = Bench(sink, manners=KEEPS)
        bench.player.start()
        play_ones(bench, Job("a"), 4800)
        assert ends(bench.until_end()).error is None
        assert np.all(sink.body[:4800] == 1)
        bench.stop()

    def test_speech_may_go_on_from_the_word_that_was_not_heard(self) -> None:
        class Fails(Heard):
            def write(self, samples: Samples) -> None:
                if self.frames > RATE // 2:
                    raise SinkError("fails", "gone")
                super().write(samples)

        sink = Fails()
        bench = Bench(sink, manners=KEEPS)
        bench.player.start()
        play_ones(bench, Job("a", words=[0, 4800, 14_400, 22_000, 30_000]), RATE)
        end = ends(bench.until_end())
        assert isinstance(end.error, SinkError)
        assert end.cut_at == 14_400, "a word before what may not have been heard"
        assert end.audio_s < 0.5, "what was taken and not played was not heard"
        bench.stop()


class TestSleep:
    def test_an_idle_one_is_closed_and_opened_by_the_next_command(self) -> None:
        sink = FaultySink()
        bench = Bench(sink, manners=Manners(clicks=True, keeps=True, idle_close_s=0.1))
        closed = threading.Event()
        bench.player.start()
        for _ in range(2):
            play_ones(bench, Job("a"), PERIOD)
            assert ends(bench.until_end()).error is None
            deadline = threading.Event()
            while sink.calls[-1] != "close":
                assert not deadline.wait(0.01)
        assert not closed.is_set()
        assert [call for call in sink.calls if call != "check"].count("open") == 2
        bench.stop()

    def test_one_that_waits_for_the_rest_of_an_utterance_is_not_idle(self) -> None:
        sink = FaultySink()
        bench = Bench(sink, manners=Manners(clicks=True, keeps=True, idle_close_s=0.05))
        bench.player.start()
        bench.player.play(Job("a"), bench.chunk(PERIOD))
        threading.Event().wait(0.3)  # a slow engine
        bench.player.play(Job("a"), bench.chunk(PERIOD))
        bench.player.end(Job("a"))
        assert ends(bench.until_end()).error is None
        assert sink.calls[sink.calls.index("write") :][:3] == ["write", "write", "drain"]
        bench.stop()

    def test_silence_wakes_one_that_slept_and_nobody_else(self) -> None:
        sink = Heard(paced=False)
        bench = Bench(sink, manners=Manners(clicks=True, keeps=True, wake_s=0.3, wake_after_s=60))
        bench.player.start()
        for _ in range(2):
            bench.player.wake()
            play_ones(bench, Job("a"), 4800)
            bench.until_end()
        bench.stop()
        heard = sink.all
        speech = np.flatnonzero(heard == 1)
        assert speech[0] >= 0.3 * RATE + FADE - 1
        assert not heard[: int(0.3 * RATE)].any()
        assert np.count_nonzero(heard == 1) >= 2 * 4800
        gap = int(np.diff(speech).max())
        assert gap < 0.3 * RATE, "the second one was awake"

    def test_it_is_woken_up_again_after_the_machine_slept(self) -> None:
        sink = Heard(paced=False)
        bench = Bench(sink, manners=Manners(clicks=True, keeps=True, wake_s=0.1, wake_after_s=3600))
        bench.player.start()
        for _ in range(2):
            play_ones(bench, Job("a"), 960)
            bench.until_end()
            bench.player.slept()
        bench.stop()
        speech = np.flatnonzero(sink.all == 1)
        assert int(np.diff(speech).max()) >= 0.1 * RATE

    def test_it_is_woken_up_again_after_its_time(self) -> None:
        sink = Heard(paced=False)
        bench = Bench(sink, manners=Manners(clicks=True, keeps=True, wake_s=0.1, wake_after_s=0))
        bench.player.start()
        for _ in range(2):
            play_ones(bench, Job("a"), 960)
            bench.until_end()
        bench.stop()
        speech = np.flatnonzero(sink.all == 1)
        assert int(np.diff(speech).max()) >= 0.1 * RATE

    def test_waking_up_happens_while_the_speech_is_computed(self) -> None:
        sink = Heard()
        bench = Bench(sink, manners=Manners(clicks=True, keeps=True, wake_s=0.2, wake_after_s=60))
        bench.player.start()
        sink.until = round(0.2 * RATE)
        bench.player.wake()
        assert sink.reached.wait(TIMEOUT_S), "before there is any speech"
        play_ones(bench, Job("a"), 960)
        bench.until_end()
        assert sink.underruns == 0, "and the time until it comes is filled"
        bench.stop()

    def test_a_file_is_never_closed_nor_woken(self) -> None:
        sink = FaultySink()
        bench = Bench(sink)
        bench.player.start()
        play_ones(bench, Job("a"), PERIOD)
        bench.until_end()
        assert sink.calls.count("open") == 1
        assert bench.player._speaker.care_in_s() is None
        bench.stop()


class TestEdges:
    @pytest.mark.parametrize("frames", [1, 7, 959, 4801])
    def test_what_begins_or_ends_with_a_jump_gets_a_ramp_and_loses_nothing(self, frames: int) -> None:
        sink = Heard(paced=False)
        bench = Bench(sink)
        bench.player.start()
        play_ones(bench, Job("a"), frames)
        end = ends(bench.until_end())
        bench.stop()
        assert end.audio_s == frames / RATE
        assert len(sink.all) == frames + 2 * FADE
        assert np.all(sink.all[FADE : FADE + frames] == 1)
        assert np.abs(np.diff(np.concatenate([[0], sink.all, [0]]))).max() < 0.01

    def test_a_file_is_as_long_as_the_speech(self) -> None:
        sink = Heard(paced=False)
        bench = Bench(sink, manners=None)
        bench.player.start()
        play_ones(bench, Job("a"), 4801)
        bench.until_end()
        bench.stop()
        assert np.all(sink.all == 1)
        assert sink.frames == 4801

    def test_what_begins_and_ends_quietly_is_left_alone(self) -> None:
        sink = Heard(paced=False)
        bench = Bench(sink)
        bench.player.start()
        chunk = bench.chunk(4801)
        speech = chunk.samples[:] = np.hanning(4801).astype(np.float32) / 2
        bench.player.play(Job("a"), chunk)
        bench.player.end(Job("a"))
        bench.until_end()
        bench.stop()
        np.testing.assert_array_equal(sink.all * np.float32(ONE), speech)

    def test_a_synthesis_that_breaks_off_does_not_click(self) -> None:
        sink = Heard(paced=False)
        bench = Bench(sink)
        bench.player.start()
        chunk = bench.chunk(960)
        chunk.samples[:] = 0.5
        bench.player.play(Job("a"), chunk)
        bench.player.end(Job("a"), RuntimeError("broken"), complete=False)
        bench.until_end()
        bench.stop()
        assert sink.all[-1] == 0
        assert np.abs(np.diff(sink.all)).max() < 0.01


def test_a_card_with_long_periods_has_two_of_them_ahead() -> None:
    class Coarse(Heard):
        @property
        def period(self) -> int:
            return 2048

    sink = Coarse()
    most = 0

    def write(samples: Samples) -> None:
        nonlocal most
        NullSink.write(sink, samples)
        most = max(most, sink.pending)

    sink.write = write  # type: ignore[method-assign]
    bench = Bench(sink)
    bench.player.start()
    play_ones(bench, Job("a"), RATE // 2)
    assert isinstance(bench.until_end()[-1], PlaybackEnded)
    bench.stop()
    assert 4096 - PERIOD <= most <= 4096 + FADE

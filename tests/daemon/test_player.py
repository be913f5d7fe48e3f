from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import soxr
from simulators.faulty_sink import FaultySink
from simulators.player_bench import BUFFERS, FADE, ONE, TIMEOUT_S, Bench, Heard, ends, play_ones
from simulators.waiting import wait_until

from daemon.inbox import (
    AudioState,
    Inbox,
    MarkReached,
    PlaybackEnded,
    PlaybackStarted,
    ThreadDied,
    WordReached,
)
from daemon.job import Job
from device.errors import SinkError
from device.format import PERIOD, RATE, Samples
from device.null import NullSink

LATE_S = 0.5
"""How late a busy machine may be to tell of a word; all words told with the end would be later."""


@pytest.fixture
def sink() -> FaultySink:
    return FaultySink()


@pytest.fixture
def bench(sink: FaultySink) -> Iterator[Bench]:
    bench = Bench(sink)
    yield bench
    if sink.gate is not None:
        sink.gate.set()
    if bench.player.is_alive():
        bench.stop()


def test_more_chunks_than_buffers_are_played_and_all_buffers_come_back() -> None:
    sink = NullSink(paced=False)
    bench = Bench(sink)
    bench.player.start()
    job = Job("a")
    for _ in range(3 * BUFFERS):
        bench.player.play(job, bench.chunk(3 * PERIOD))
    bench.player.play(job, bench.chunk(100))
    bench.player.end(job)
    messages = bench.until_end()
    assert [type(message) for message in messages] == [AudioState, PlaybackStarted, PlaybackEnded]
    end = ends(messages)
    assert (end.id, end.error) == ("a", None)
    assert end.audio_s == (3 * BUFFERS * 3 * PERIOD + 100) / RATE
    assert sink.frames == 3 * BUFFERS * 3 * PERIOD + 100
    assert bench.pool.free == BUFFERS
    bench.stop()


def test_the_sink_reads_the_memory_of_the_chunk_itself(
    bench: Bench, sink: FaultySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses: list[int] = []
    monkeypatch.setattr(sink, "write", lambda samples: addresses.append(samples.ctypes.data))
    bench.player.start()
    chunk = bench.chunk(2 * PERIOD)
    start = chunk.samples.ctypes.data
    bench.player.play(Job("a"), chunk)
    bench.player.end(Job("a"))
    bench.until_end()
    assert addresses == [start, start + np.dtype(np.float32).itemsize * PERIOD]


def test_the_end_is_told_once_the_last_frame_was_played(bench: Bench, sink: FaultySink) -> None:
    bench.player.start()
    bench.player.play(Job("a"), bench.chunk(PERIOD))
    bench.player.end(Job("a"))
    started, ended = bench.until_end()[1:]
    assert isinstance(started, PlaybackStarted)
    assert isinstance(ended, PlaybackEnded)
    assert started.at <= ended.at
    assert sink.calls == ["open", "write", "drain"]


def test_the_end_waits_for_the_pace_of_the_sink() -> None:
    bench = Bench(NullSink())
    bench.player.start()
    bench.player.play(Job("a"), bench.chunk(RATE // 5))
    bench.player.end(Job("a"))
    started, ended = bench.until_end()[1:]
    assert isinstance(started, PlaybackStarted)
    assert isinstance(ended, PlaybackEnded)
    assert 0.2 <= ended.at - started.at < 1
    bench.stop()


def test_an_utterance_without_a_sound_has_an_end_and_no_start(bench: Bench, sink: FaultySink) -> None:
    sink.fail.add("open")  # even where there is no loudspeaker: none is needed
    bench.player.start()
    bench.player.end(Job("a"))
    messages = bench.until_end()
    assert [type(message) for message in messages] == [AudioState, PlaybackEnded]
    assert (ends(messages).audio_s, ends(messages).error) == (0.0, None)


def test_what_cut_the_synthesis_short_is_passed_on(bench: Bench) -> None:
    bench.player.start()
    error = RuntimeError("no voice")
    bench.player.play(Job("a"), bench.chunk(PERIOD))
    bench.player.end(Job("a"), error)
    assert ends(bench.until_end()).error is error


@pytest.mark.parametrize("what", ["open", "write", "drain"])
def test_a_sink_that_fails_ends_one_utterance_and_the_next_one_plays(bench: Bench, sink: FaultySink, what: str) -> None:
    first = bench.posted
    sink.fail.add(what)
    bench.player.start()
    job = Job("a")
    for _ in range(3):
        bench.player.play(job, bench.chunk(2 * PERIOD))
    bench.player.end(job)
    messages = bench.until_end()
    assert isinstance(ends(messages).error, SinkError)
    assert AudioState(f"lost: faulty: {what} failed") in messages
    assert job.stopped.is_set()
    assert bench.pool.free == BUFFERS
    assert first.empty()

    sink.fail.clear()
    bench.player.play(Job("b"), bench.chunk(PERIOD))
    bench.player.end(Job("b"))
    messages = bench.until_end()
    assert [type(message) for message in messages] == [AudioState, PlaybackStarted, PlaybackEnded]
    assert messages[0] == AudioState()
    assert (ends(messages).error, ends(messages).audio_s) == (None, PERIOD / RATE)
    # Closed in between: a card that has come back is another one.
    assert sink.calls[-4:] == ["close", "open", "write", "drain"]


def test_a_sink_that_cannot_be_opened_at_first_is_told_and_tried_again(bench: Bench, sink: FaultySink) -> None:
    sink.fail.add("open")
    bench.player.start()
    assert bench.posted.get(timeout=TIMEOUT_S) == AudioState("lost: faulty: open failed")
    sink.fail.clear()
    bench.player.play(Job("a"), bench.chunk(PERIOD))
    bench.player.end(Job("a"))
    assert ends(bench.until_end()).error is None


def test_after_a_failure_the_rest_of_an_utterance_is_not_played(bench: Bench, sink: FaultySink) -> None:
    sink.fail.add("write")
    bench.player.start()
    job = Job("a")
    bench.player.play(job, bench.chunk(PERIOD))
    assert job.stopped.wait(TIMEOUT_S)
    sink.fail.clear()
    bench.player.play(job, bench.chunk(PERIOD))
    bench.player.end(job)
    assert isinstance(ends(bench.until_end()).error, SinkError)
    assert sink.frames == 0


def test_a_stop_is_a_short_fade_and_then_silence(bench: Bench, sink: FaultySink) -> None:
    sink.gate = threading.Event()
    bench.player.start()
    job = Job("a")
    for _ in range(2):
        bench.player.play(job, bench.chunk(RATE))
    bench.player.end(job)
    assert sink.written.acquire(timeout=TIMEOUT_S)
    bench.player.stop()
    sink.gate.set()
    bench.player.join(TIMEOUT_S)
    assert not bench.player.is_alive()
    assert sink.frames == PERIOD + FADE
    assert sink.calls[-2:] == ["drain", "close"]
    assert bench.pool.free == BUFFERS


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def loud(heard: Heard) -> Iterator[Bench]:
    """Give a player whose chunks are all ones, and that has played a third of a second of one."""
    bench = Bench(heard)
    bench.player.start()
    heard.until = RATE // 3
    yield bench
    bench.stop()


class TestCut:
    def test_fades_within_the_lead_and_may_go_on_from_the_word(self, loud: Bench, heard: Heard) -> None:
        job = Job("a", words=[0, 5000, 10_000, 40_000], sentences=[0])
        play_ones(loud, job, RATE)
        assert heard.reached.wait(TIMEOUT_S)
        job.stopped.set()
        taken = heard.frames
        end = ends(loud.until_end())
        assert end.audio_s - taken / RATE < 0.1
        assert end.cut_at == 10_000
        whole = heard.body
        length = round(end.audio_s * RATE)
        assert np.all(whole[: length - FADE] == 1)
        fade = whole[length - FADE : length]
        assert fade[-1] == 0
        assert np.abs(np.diff(fade)).max() < 0.01, "no step that would click"
        assert not whole[length:].any()

    def test_one_that_goes_on_begins_with_its_word_and_fades_in(self, loud: Bench, heard: Heard) -> None:
        heard.until = 1
        play_ones(loud, Job("a", start=10_000, words=[0, 10_000]), 4800)
        end = ends(loud.until_end())
        assert (end.audio_s, end.cut_at) == (14_800 / RATE, None)
        assert 0 < heard.all[0] < 0.01
        assert np.abs(np.diff(heard.all[:4800])).max() < 0.01
        assert np.all(heard.all[FADE - 1 : 4800] == 1), "the fade costs no more than it must"

    def test_one_that_yields_ends_with_its_sentence(self, loud: Bench, heard: Heard) -> None:
        job = Job("a", words=[0, 20_000], sentences=[0, 20_000, 30_000])
        heard.until = 1
        play_ones(loud, job, RATE)
        assert heard.reached.wait(TIMEOUT_S)
        job.yielding.set()
        end = ends(loud.until_end())
        assert (end.audio_s, end.cut_at) == (20_000 / RATE, 20_000)
        assert job.stopped.is_set(), "so that the engine ends too"

    def test_one_that_was_not_begun_is_not_heard(self, loud: Bench, heard: Heard) -> None:
        job = Job("a", start=960, words=[0])
        job.stopped.set()
        play_ones(loud, job, RATE)
        end = ends(loud.until_end())
        assert (end.audio_s, end.cut_at) == (0.02, 960)
        assert heard.frames == 0

    def test_one_that_was_heard_to_its_end_is_over(self, loud: Bench, heard: Heard) -> None:
        job = Job("a")
        heard.until = 4800
        play_ones(loud, job, 4800)
        assert heard.reached.wait(TIMEOUT_S)
        job.stopped.set()
        assert ends(loud.until_end()).cut_at is None

    def test_the_next_one_joins_without_a_gap_in_time(self, loud: Bench, heard: Heard) -> None:
        first = Job("a")
        play_ones(loud, first, RATE)
        assert heard.reached.wait(TIMEOUT_S)
        first.stopped.set()
        loud.until_end()
        play_ones(loud, Job("b"), 4800)
        loud.until_end()
        assert heard.underruns == 0

    def test_silence_after_it_ends_too(self, loud: Bench, heard: Heard) -> None:
        job = Job("a")
        play_ones(loud, job, RATE)
        assert heard.reached.wait(TIMEOUT_S)
        job.stopped.set()
        loud.until_end()
        wait_until(lambda: heard.pending == 0, "it never ends")
        threading.Event().wait(0.3)
        play_ones(loud, Job("b"), 960)
        loud.until_end()
        assert heard.underruns == 0


class TestGain:
    @pytest.mark.parametrize(("volume", "level"), [(0.5, 10**-0.5), (0.0, 0.0), (2.0, 2.0)])
    def test_moves_without_a_step(self, loud: Bench, heard: Heard, volume: float, level: float) -> None:
        play_ones(loud, Job("a"), RATE)
        assert heard.reached.wait(TIMEOUT_S)
        loud.player.set_volume(volume)
        ends(loud.until_end())
        assert heard.all[FADE + RATE - 1] == pytest.approx(level, abs=0.002)
        assert np.abs(np.diff(heard.all)).max() < 0.01

    def test_of_before_holds_for_the_first_sample(self, loud: Bench, heard: Heard) -> None:
        loud.player.set_volume(0.5)
        play_ones(loud, Job("a"), 4800)
        loud.until_end()
        np.testing.assert_allclose(heard.body[:4800], 10**-0.5, rtol=0.01)

    def test_of_nothing_is_silence(self, loud: Bench, heard: Heard) -> None:
        loud.player.set_volume(1, muted=True)
        play_ones(loud, Job("a"), 4800)
        assert ends(loud.until_end()).audio_s == 0.1
        assert not heard.all.any()


def test_peaks_are_held_below_the_ceiling_and_all_else_is_as_it_was(loud: Bench, heard: Heard) -> None:
    time = np.arange(RATE) / RATE
    speech = (0.2 * np.sin(2 * np.pi * 200 * time)).astype(np.float32)
    speech[RATE // 2 : RATE // 2 + 480] *= 4
    chunk = loud.chunk(RATE)
    chunk.samples[:] = speech
    loud.player.set_volume(2)
    loud.player.play(Job("a"), chunk)
    loud.player.end(Job("a"))
    loud.until_end()
    played = heard.all[:RATE] * np.float32(ONE)
    finer = soxr.resample(played.astype(np.float64), RATE, 4 * RATE, quality="VHQ")
    assert 20 * np.log10(np.abs(finer).max()) == pytest.approx(-1.1, abs=0.1)
    np.testing.assert_array_equal(played[: RATE // 2 - 480], 2 * speech[: RATE // 2 - 480])
    np.testing.assert_array_equal(played[-RATE // 4 :], 2 * speech[-RATE // 4 :])


def test_marks_are_told_once_each_when_they_are_heard_and_the_last_at_the_end(loud: Bench, heard: Heard) -> None:
    marks = [(0, "first"), (10_000, "b"), (10_000, "a"), (RATE, "end")]
    play_ones(loud, Job("a", bookmarks=marks), RATE)
    messages = loud.until_end()
    told = [message for message in messages if isinstance(message, MarkReached)]
    (started,) = [message for message in messages if isinstance(message, PlaybackStarted)]
    assert [(mark.frame, mark.name) for mark in told] == marks
    for mark in told:
        assert -0.01 < mark.at - started.at - mark.frame / RATE < LATE_S


def test_what_goes_on_tells_no_mark_that_was_heard(loud: Bench, heard: Heard) -> None:
    play_ones(
        loud, Job("a", start=20_000, bookmarks=[(0, "a"), (10_000, "b"), (20_000, "c"), (30_000, "d")]), RATE // 2
    )
    told = [message.name for message in loud.until_end() if isinstance(message, MarkReached)]
    assert told == ["c", "d"]


def test_words_are_told_once_each_and_not_before_they_are_heard(loud: Bench, heard: Heard) -> None:
    play_ones(loud, Job("a", marks=True, words=[0, 10_000, 10_001, 47_999]), RATE)
    messages = loud.until_end()
    words = [message for message in messages if isinstance(message, WordReached)]
    (started,) = [message for message in messages if isinstance(message, PlaybackStarted)]
    assert [word.index for word in words] == [0, 1, 2, 3]
    for word, frame in zip(words, [0, 10_000, 10_001, 47_999], strict=True):
        assert -0.01 < word.at - started.at - frame / RATE < LATE_S


def test_a_stop_after_the_end_forgets_nothing(bench: Bench, sink: FaultySink) -> None:
    # A file still holds what does not fill a packet: `speakd say --output` must not lose it.
    bench.player.start()
    bench.player.play(Job("a"), bench.chunk(PERIOD))
    bench.player.end(Job("a"))
    bench.until_end()
    bench.stop()
    assert "drop" not in sink.calls
    assert sink.calls[-1] == "close"


def test_a_stop_copes_with_a_sink_that_fails_then_too(bench: Bench, sink: FaultySink) -> None:
    bench.player.start()
    bench.player.play(Job("a"), bench.chunk(PERIOD))
    assert sink.written.acquire(timeout=TIMEOUT_S)
    sink.fail.add("drain")
    bench.stop()
    assert sink.calls[-1] == "close"
    assert not any(isinstance(message, ThreadDied) for message in drained(bench.posted))


def test_an_exception_that_nobody_expects_is_heard(
    bench: Bench, sink: FaultySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_samples: Samples) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(sink, "write", crash)
    bench.player.start()
    bench.player.play(Job("a"), bench.chunk(PERIOD))
    bench.player.join(TIMEOUT_S)
    died = drained(bench.posted)[-1]
    assert isinstance(died, ThreadDied)
    assert died.name == "player"
    assert isinstance(died.error, ZeroDivisionError)
    assert bench.pool.free == BUFFERS


def drained(posted: queue.SimpleQueue[Inbox]) -> list[Inbox]:
    messages = []
    while not posted.empty():
        messages.append(posted.get())
    return messages

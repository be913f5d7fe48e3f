"""Which command speaks when, and what is told of it."""

from __future__ import annotations

import json
import math

import pytest
from simulators.speaker_bench import CAPACITY, Bench

from daemon.clock import PLAUSIBLE_WALL, Clock
from daemon.commands import ModeSet, Pause, Priority, QueueGet, Resume
from daemon.events import (
    Accepted,
    Expired,
    Failed,
    Finished,
    Interrupted,
    Known,
    QueueState,
    Rejected,
    Started,
    Superseded,
    Synthesized,
)
from daemon.inbox import PlaybackEnded, Tick
from device.errors import PoolClosedError, SinkError
from engines.errors import (
    EngineError,
    PhonemizerDiedError,
    PhonemizerTimeoutError,
    SpeakerError,
    UnknownEspeakVoiceError,
    VoiceError,
)


@pytest.fixture
def bench() -> Bench:
    return Bench()


class TestOneCommand:
    @pytest.mark.parametrize("synthesized_first", [False, True])
    def test_tells_its_events_in_one_order_whichever_thread_was_quicker(
        self, bench: Bench, *, synthesized_first: bool
    ) -> None:
        bench.speak("a")
        steps = [bench.start, bench.synthesize]
        for step in reversed(steps) if synthesized_first else steps:
            step("a")
        bench.end("a")
        assert bench.kinds() == ["accepted", "started", "synthesized", "finished"]

    def test_figures_are_those_of_the_messages(self, bench: Bench) -> None:
        bench.speak("a", at=10.0)
        bench.start("a", at=10.0701)
        bench.synthesize("a", audio_s=2.0004)
        bench.handle(PlaybackEnded("a", 12.5, 2.0004))
        _, started, synthesized, finished = bench.events
        assert isinstance(started, Started)
        assert (started.ttfa_ms, started.output) == (70.1, "null")
        assert isinstance(synthesized, Synthesized)
        assert (synthesized.audio_s, synthesized.compute_ms, synthesized.rtf) == (2.0, 500.0, 0.25)
        assert (synthesized.voice, synthesized.backend, synthesized.precision) == ("joe", "ort", "fp32")
        assert isinstance(finished, Finished)
        assert (finished.audio_s, finished.total_ms) == (2.0, 2500.0)

    def test_with_nothing_to_say_is_finished_without_a_start(self, bench: Bench) -> None:
        bench.speak("a")
        bench.synthesize("a", audio_s=0.0)
        bench.end("a", audio_s=0.0)
        assert bench.kinds() == ["accepted", "finished"]
        finished = bench.events[-1]
        assert isinstance(finished, Finished)
        assert finished.audio_s == 0.0

    def test_without_a_sound_leaves_nothing_for_the_next(self, bench: Bench) -> None:
        bench.speak("a")
        bench.synthesize("a", audio_s=0.0)
        bench.end("a", audio_s=0.0)
        bench.speak("b")
        bench.start("b")
        assert bench.kinds("b") == ["accepted", "started"]
        assert bench.kinds("a") == ["accepted", "finished"]

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (VoiceError("x", "is missing"), "voice"),
            (UnknownEspeakVoiceError("x"), "voice"),
            (SpeakerError("x", 5, 1), "speaker"),
            (PhonemizerDiedError(-6, "s's"), "phonemizer"),
            (PhonemizerTimeoutError(1.0, "a"), "phonemizer"),
            (EngineError("x.onnx", "cannot be run"), "synthesis"),
            (SinkError("alsa", "is gone"), "audio"),
            (PoolClosedError(), "audio"),
            (OSError("what?"), "internal"),
        ],
    )
    def test_that_fails_says_of_which_kind_and_why(self, bench: Bench, error: Exception, code: str) -> None:
        bench.speak("a")
        bench.end("a", error)
        failed = bench.events[-1]
        assert isinstance(failed, Failed)
        assert (failed.id, failed.code, failed.reason) == ("a", code, str(error))

    def test_that_fails_after_its_start_is_not_also_finished(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.end("a", SinkError("alsa", "is gone"))
        assert bench.kinds() == ["accepted", "started", "failed"]


class TestQueue:
    def test_one_speaks_while_the_others_wait(self, bench: Bench) -> None:
        for command_id in "abc":
            bench.speak(command_id)
        assert bench.began == ["a"]
        assert [event.ahead for event in bench.events if isinstance(event, Accepted)] == [0, 1, 2]
        bench.end("a")
        bench.end("b", VoiceError("x", "is missing"))
        assert bench.began == ["a", "b", "c"]

    def test_that_is_full_rejects(self, bench: Bench) -> None:
        for number in range(CAPACITY + 2):
            bench.speak(str(number))
        rejected = bench.events[-1]
        assert isinstance(rejected, Rejected)
        assert (rejected.id, rejected.code) == (str(CAPACITY + 1), "queue_full")
        bench.end("0")
        bench.speak("again")
        assert bench.kinds("again") == ["accepted"]

    def test_a_command_that_comes_twice_is_answered_twice_and_spoken_once(self, bench: Bench) -> None:
        for command_id in ("a", "b", "b", "a"):
            bench.speak(command_id)
        assert [(event.id, event.ahead) for event in bench.events if isinstance(event, Accepted)] == [
            ("a", 0),
            ("b", 1),
            ("b", 1),
            ("a", 0),
        ]
        bench.end("a")
        bench.end("b")
        assert bench.began == ["a", "b"]

    def test_an_id_that_has_ended_is_answered_and_not_spoken_again(self, bench: Bench) -> None:
        bench.speak("a")
        bench.end("a")
        finished = bench.events[-1]
        bench.speak("a")
        known = bench.events[-1]
        assert isinstance(known, Known)
        assert known.final == json.loads(finished.to_json())
        assert bench.began == ["a"]

    def test_is_bounded_by_bytes_too(self, bench: Bench) -> None:
        bench.speak("a", text="x" * 900)
        bench.speak("b", text="x" * 900)
        bench.speak("c", text="ü" * 60)
        rejected = bench.events[-1]
        assert isinstance(rejected, Rejected)
        assert (rejected.id, rejected.code) == ("c", "queue_full")

    def test_a_sender_that_is_too_quick_is_slowed_down_and_nobody_else(self) -> None:
        bench = Bench(rate_per_s=1, burst=2, queue=10)
        for number in range(3):
            bench.speak(str(number), session="quick")
        bench.speak("other", session="slow")
        assert [getattr(event, "code", "") for event in bench.events] == ["", "", "rate", ""]
        bench.now = 1.0
        bench.speak("later", session="quick")
        assert bench.kinds("later") == ["accepted"]

    def test_tells_when_it_will_be_about_their_turn(self, bench: Bench) -> None:
        for command_id in "abc":
            bench.speak(command_id, text="x" * 100)
        starts = [event.starts_in_s for event in bench.events if isinstance(event, Accepted)]
        assert starts == [0, 6.5, 13.0]

    def test_says_what_speaks_and_waits(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("b", session="s")
        state = bench.control(QueueGet(request="q"))
        assert isinstance(state, QueueState)
        assert [(queued.id, queued.state, queued.session) for queued in state.commands] == [
            ("a", "speaking", None),
            ("b", "waiting", "s"),
        ]


class TestPriorities:
    def test_critical_interrupts_at_once_and_what_it_interrupted_goes_on(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.speak("b")
        bench.speak("c", Priority.CRITICAL)
        assert bench.cuts == [("a", True)]
        assert bench.began == ["a", "c"]
        bench.silence("a", cut_at=1000)
        interrupted = bench.events[-1]
        assert isinstance(interrupted, Interrupted)
        assert (interrupted.reason, interrupted.by, interrupted.at_s) == ("preempted", "c", round(1000 / 48_000, 3))
        bench.start("c")
        bench.end("c")
        assert bench.began == ["a", "c", "a"]
        assert bench.begun[-1].resume_at == 1000
        bench.start("a")
        bench.end("a")
        bench.end("b")
        assert bench.kinds("a") == ["accepted", "started", "interrupted", "resumed", "finished"]
        assert bench.began == ["a", "c", "a", "b"]

    def test_critical_is_never_interrupted_and_speaks_in_order(self, bench: Bench) -> None:
        bench.speak("a", Priority.CRITICAL, supersede="k")
        bench.speak("b", Priority.CRITICAL, supersede="k")
        bench.speak("c", Priority.CRITICAL)
        bench.control(Pause())
        assert not bench.cuts
        bench.end("a")
        bench.end("b")
        bench.end("c")
        assert bench.began == ["a", "b", "c"]

    def test_important_waits_for_the_end_of_the_sentence(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.speak("b")
        bench.speak("c", Priority.IMPORTANT)
        assert bench.cuts == [("a", False)]
        assert bench.began == ["a"]
        bench.silence("a", cut_at=1500)
        bench.end("c")
        assert bench.began == ["a", "c", "a"]

    def test_important_after_the_last_sentence_interrupts_nothing(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.speak("c", Priority.IMPORTANT)
        bench.end("a")
        assert bench.kinds("a") == ["accepted", "started", "finished"]
        assert bench.began == ["a", "c"]

    def test_what_its_sender_wants_dropped_is_superseded_by_an_interruption(self, bench: Bench) -> None:
        bench.speak("a", on_interrupt="drop")
        bench.start("a")
        bench.speak("b", Priority.CRITICAL)
        bench.silence("a")
        superseded = bench.events[-1]
        assert isinstance(superseded, Superseded)
        assert (superseded.id, superseded.by) == ("a", "b")

    @pytest.mark.parametrize("priority", [p for p in Priority if p is not Priority.NOTIFICATION])
    def test_a_notification_is_dropped_while_anything_else_speaks(self, bench: Bench, priority: Priority) -> None:
        bench.speak("a", priority)
        bench.speak("b", Priority.NOTIFICATION)
        rejected = bench.events[-1]
        assert isinstance(rejected, Rejected)
        assert (rejected.id, rejected.code) == ("b", "busy")

    def test_of_notifications_the_newest_wins(self, bench: Bench) -> None:
        bench.speak("a", Priority.NOTIFICATION)
        bench.start("a")
        bench.speak("b", Priority.NOTIFICATION)
        bench.speak("c", Priority.NOTIFICATION)
        bench.silence("a")
        assert bench.began == ["a", "c"]
        ends = {event.id: event.by for event in bench.events if isinstance(event, Superseded)}
        assert ends == {"a": "b", "b": "c"}

    def test_of_progress_the_newest_waits_and_the_last_is_spoken(self, bench: Bench) -> None:
        for command_id in "abcd":
            bench.speak(command_id, Priority.PROGRESS)
        assert not bench.cuts
        bench.end("a")
        assert bench.began == ["a", "d"]
        assert [event.id for event in bench.events if isinstance(event, Superseded)] == ["b", "c"]

    def test_a_key_supersedes_whoever_has_the_same(self, bench: Bench) -> None:
        bench.speak("a", supersede="k")
        bench.speak("b", supersede="k")
        bench.speak("c", supersede="other")
        bench.speak("d", supersede="k")
        assert bench.cuts == [("a", True)]
        bench.silence("a")
        assert {e.id: e.by for e in bench.events if isinstance(e, Superseded)} == {"a": "b", "b": "d"}
        assert bench.began == ["a", "c"]


class TestExpiry:
    def test_a_machine_that_slept_makes_all_that_waits_older(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("b", expires_s=3600)
        bench.speak("c", expires_s=10_000)
        bench.control(ModeSet(mode="efficiency", for_s=3600))
        bench.now = 1.0
        bench.speaker.slept(7200.0, Clock("boot", bench.now, PLAUSIBLE_WALL + 7201))
        expired = bench.events[-1]
        assert isinstance(expired, Expired)
        assert (expired.id, expired.waited_s) == ("b", 7201.0)
        bench.handle(Tick())
        assert bench.speaker.settings.mode == "auto"
        bench.end("a")
        assert bench.began == ["a", "c"]

    def test_what_waited_too_long_is_told_and_not_spoken(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("b", expires_s=5)
        assert bench.speaker.next_deadline == 5
        bench.now = 5.0
        bench.handle(Tick())
        expired = bench.events[-1]
        assert isinstance(expired, Expired)
        assert (expired.id, expired.waited_s) == ("b", 5.0)
        assert math.isinf(bench.speaker.next_deadline)
        bench.end("a")
        assert bench.began == ["a"]

    def test_is_looked_at_again_when_its_turn_comes(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("b", expires_s=5)
        bench.now = 6.0
        bench.end("a")
        assert bench.kinds("b") == ["accepted", "expired"]
        assert bench.began == ["a"]

    def test_what_was_interrupted_expires_no_more(self, bench: Bench) -> None:
        bench.speak("a", expires_s=5)
        bench.start("a")
        bench.control(Pause())
        bench.silence("a")
        bench.now = 9.0
        bench.control(Resume())
        assert bench.began == ["a", "a"]

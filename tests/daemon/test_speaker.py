from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from daemon.commands import Priority, Speak
from daemon.errors import PayloadError
from daemon.events import Accepted, Event, Failed, Finished, Rejected, Started, Synthesized
from daemon.inbox import (
    AudioState,
    Connected,
    PayloadRefused,
    PlaybackEnded,
    PlaybackStarted,
    SpeakReceived,
    Stop,
    SynthesisEnded,
)
from daemon.queue import Waiting
from daemon.speaker import Speaker
from device.errors import PoolClosedError, SinkError
from engines.errors import (
    EngineError,
    PhonemizerDiedError,
    PhonemizerTimeoutError,
    SpeakerError,
    UnknownEspeakVoiceError,
    VoiceError,
)

CAPACITY = 3


class Bench:
    """A speaker without engine and player: what it published, what it began."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.events: list[Event] = []
        self.begun: list[Waiting] = []
        self.speaker = Speaker(
            queue_capacity=capacity, output="null", publish=self.events.append, begin=self.begun.append
        )

    def speak(self, command_id: str, priority: Priority = Priority.MESSAGE, at: float = 0.0) -> None:
        self.speaker.handle(SpeakReceived(Speak(id=command_id, text="a", priority=priority), at))

    def start(self, command_id: str, at: float = 0.1) -> None:
        self.speaker.handle(PlaybackStarted(command_id, at))

    def synthesize(self, command_id: str, audio_s: float = 2.0) -> None:
        self.speaker.handle(
            SynthesisEnded(
                id=command_id,
                audio_s=audio_s,
                compute_s=0.5,
                first_s=0.1,
                cached=False,
                voice="joe",
                backend="ort",
                precision="fp32",
            )
        )

    def end(self, command_id: str, error: Exception | None = None, audio_s: float = 2.0) -> None:
        self.speaker.handle(PlaybackEnded(command_id, 3.0, audio_s, error))

    def kinds(self, command_id: str | None = None) -> list[str]:
        return [event.event for event in self.events if command_id is None or event.id == command_id]


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
        bench.speaker.handle(PlaybackEnded("a", 12.5, 2.0004))
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
        assert [waiting.command.id for waiting in bench.begun] == ["a"]
        assert [event.ahead for event in bench.events if isinstance(event, Accepted)] == [0, 1, 2]
        bench.end("a")
        bench.end("b", VoiceError("x", "is missing"))
        assert [waiting.command.id for waiting in bench.begun] == ["a", "b", "c"]

    def test_the_urgent_overtakes_who_waits_but_not_who_speaks(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("b")
        bench.speak("c", Priority.CRITICAL)
        bench.end("a")
        bench.end("c")
        assert [waiting.command.id for waiting in bench.begun] == ["a", "c", "b"]
        assert [event.ahead for event in bench.events if isinstance(event, Accepted)] == [0, 1, 1]

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
        assert [waiting.command.id for waiting in bench.begun] == ["a", "b"]

    def test_an_id_may_be_used_again_afterwards(self, bench: Bench) -> None:
        for _ in range(2):
            bench.speak("a")
            bench.end("a")
        assert bench.kinds() == ["accepted", "finished"] * 2


class TestOtherMessages:
    def test_a_refused_payload_is_told(self, bench: Bench) -> None:
        bench.speaker.handle(PayloadRefused(PayloadError("json", "no JSON", "a")))
        rejected = bench.events[-1]
        assert isinstance(rejected, Rejected)
        assert (rejected.id, rejected.code, rejected.reason) == ("a", "json", "no JSON")

    def test_what_is_said_of_others_is_passed_over(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("b")
        bench.synthesize("b")
        bench.end("b")
        bench.speaker.handle(Connected("MQTT 5"))
        assert bench.kinds() == ["accepted"]
        bench.start("a")
        assert bench.kinds() == ["accepted", "started"]

    def test_what_is_wrong_with_the_audio_is_remembered(self, bench: Bench) -> None:
        bench.speaker.handle(AudioState("no card"))
        assert bench.speaker.condition.audio_problem == "no card"
        bench.speaker.handle(AudioState())
        assert bench.speaker.condition.audio_problem == ""

    def test_a_command_that_comes_after_the_stop_is_told_so(self) -> None:
        bench = Bench()
        bench.speaker.handle(Stop())
        bench.speak("late")
        assert [(event.event, getattr(event, "code", "")) for event in bench.events] == [("rejected", "stopped")]

    def test_a_stop_fails_who_speaks_and_who_waits(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.speak("b")
        bench.speak("c")
        bench.speaker.handle(Stop())
        assert {event.id: event.code for event in bench.events if isinstance(event, Failed)} == dict.fromkeys(
            "abc", "stopped"
        )
        bench.end("a")
        assert Counter(bench.kinds()) == {"accepted": 3, "started": 1, "failed": 3}
        assert [waiting.command.id for waiting in bench.begun] == ["a"]


class AnyHistory(RuleBasedStateMachine):
    """Whatever happens in whatever order: an accepted command ends once, a rejected one was never accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.sent = 0
        self.ended = 0

    @property
    def speaking(self) -> str | None:
        """What engine and player are at: what was begun last, unless its end was told."""
        return self.bench.begun[-1].command.id if len(self.bench.begun) > self.ended else None

    @rule(priority=st.sampled_from(Priority))
    def speak(self, priority: Priority) -> None:
        self.sent += 1
        self.bench.speak(str(self.sent), priority)

    @rule(number=st.integers(1, 30))
    def speak_again(self, number: int) -> None:
        """Repeat a command that has not ended; one that has would be a new command of the same name."""
        if str(number) in self.open():
            self.bench.speak(str(number))

    @rule()
    def refuse(self) -> None:
        self.bench.speaker.handle(PayloadRefused(PayloadError("json", "no JSON")))

    @precondition(lambda self: self.speaking is not None)
    @rule()
    def start(self) -> None:
        self.bench.start(str(self.speaking))

    @precondition(lambda self: self.speaking is not None)
    @rule()
    def synthesize(self) -> None:
        self.bench.synthesize(str(self.speaking))

    @precondition(lambda self: self.speaking is not None)
    @rule(error=st.sampled_from([None, VoiceError("x", "is missing"), SinkError("alsa", "is gone")]))
    def end(self, error: Exception | None) -> None:
        speaking = str(self.speaking)
        self.ended += 1
        self.bench.end(speaking, error)

    @rule(number=st.integers(1, 30))
    def end_of_another(self, number: int) -> None:
        if str(number) != self.speaking:
            self.bench.start(str(number))
            self.bench.end(str(number))

    def accepted(self) -> set[str]:
        return {event.id for event in self.bench.events if isinstance(event, Accepted)}

    def ends(self) -> Counter[str]:
        return Counter(event.id for event in self.bench.events if isinstance(event, Finished | Failed))

    def open(self) -> set[str]:
        return self.accepted() - set(self.ends())

    @invariant()
    def no_end_without_acceptance_and_none_twice(self) -> None:
        ends = self.ends()
        assert set(ends) <= self.accepted()
        assert all(count == 1 for count in ends.values())

    @invariant()
    def nobody_is_both_accepted_and_rejected(self) -> None:
        rejected = [event.id for event in self.bench.events if isinstance(event, Rejected) and event.id is not None]
        assert not self.accepted() & set(rejected)
        assert len(self.accepted()) + len(rejected) == self.sent

    @invariant()
    def somebody_speaks_while_somebody_waits(self) -> None:
        assert (self.speaking in self.open()) == bool(self.open())
        assert len(self.open()) <= CAPACITY + 1

    @invariant()
    def nobody_begins_twice(self) -> None:
        begun = [waiting.command.id for waiting in self.bench.begun]
        assert len(begun) == len(set(begun))

    @invariant()
    def events_of_one_command_are_in_order(self) -> None:
        for command_id in self.accepted():
            kinds = self.bench.kinds(command_id)
            assert kinds[0] == "accepted"
            if "synthesized" in kinds:
                assert kinds.index("started") < kinds.index("synthesized")
            assert command_id in self.open() or kinds[-1] in {"finished", "failed"}

    def teardown(self) -> None:
        self.bench.speaker.handle(Stop())
        assert not self.open()
        self.no_end_without_acceptance_and_none_twice()


AnyHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnyHistory = AnyHistory.TestCase

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daemon.chimes import NO_CHIMES, Chimes
from daemon.commands import (
    Cancel,
    ConfigSet,
    Control,
    ModeSet,
    MuteSet,
    Pause,
    Ping,
    Priority,
    QueueGet,
    Resume,
    Skip,
    Speak,
    VoiceSet,
    VoicesGet,
    VolumeSet,
)
from daemon.config import ChimesConfig
from daemon.errors import PayloadError
from daemon.events import (
    Accepted,
    Cancelled,
    Done,
    Event,
    Expired,
    Failed,
    Finished,
    Interrupted,
    Known,
    QueueState,
    Rejected,
    Settings,
    Started,
    Superseded,
    Synthesized,
    VoiceInfo,
    Voices,
    Word,
)
from daemon.inbox import (
    AudioState,
    Connected,
    ControlReceived,
    Inbox,
    ModeApplied,
    ModeChanged,
    Origin,
    PayloadRefused,
    PlaybackEnded,
    PlaybackStarted,
    RenderEnded,
    RenderStarted,
    SpeakReceived,
    Stop,
    SynthesisEnded,
    Tick,
    WordReached,
)
from daemon.job import Job
from daemon.journal import PLAUSIBLE_WALL, Clock, Journal
from daemon.lexica import Lexica
from daemon.queue import Waiting
from daemon.speaker import Bounds, Hands, Speaker
from device.bell import bell
from device.errors import PoolClosedError, SinkError
from device.format import RATE, Samples
from engines.errors import (
    EngineError,
    PhonemizerDiedError,
    PhonemizerTimeoutError,
    SpeakerError,
    UnknownEspeakVoiceError,
    VoiceError,
)
from power.mode import Decision, Mode
from power.modes import Applied

VOICE = VoiceInfo(name="joe", language="en-us", speakers=(), family="vits", streaming=True, styles=False)

CAPACITY = 3


BOUNDS = Bounds(queue=CAPACITY, queue_bytes=1000, rate_per_s=1000, burst=1000, renders=2, speak_after_restart_s=60)


class Bench:
    """A speaker without engine and player: what it published, what it began, whom it cut."""

    def __init__(self, journal: Journal | None = None, chimes: Chimes = NO_CHIMES, **bounds: Any) -> None:  # noqa: ANN401
        self.events: list[Event] = []
        self.origins: list[Origin] = []
        self.begun: list[Waiting] = []
        self.cuts: list[tuple[str, bool]] = []
        self.settings: list[Settings] = []
        self.now = 0.0
        self.words: list[int] = []
        self.journal = journal or Journal(None)
        hands = Hands(
            publish=self.publish,
            begin=self.begin,
            cut=lambda job, at_once: self.cuts.append((job.id, at_once)),
            render=lambda waiting: (Job(waiting.id), f"{waiting.id}.wav"),
            apply=self.settings.append,
            voices=lambda: [VOICE],
            lexica=Lexica(Path("/no/lexicon.d"), self.journal),
        )
        self.speaker = Speaker(replace(BOUNDS, **bounds), self.journal, "null", hands, chimes)

    def publish(self, event: Event, origin: Origin) -> None:
        self.events.append(event)
        self.origins.append(origin)

    def begin(self, waiting: Waiting) -> Job:
        self.begun.append(waiting)
        return Job(waiting.id, start=waiting.resume_at, words=[0, 1000, 2000], sentences=[0, 1500])

    @property
    def began(self) -> list[str]:
        return [waiting.id for waiting in self.begun]

    def handle(self, message: Inbox) -> None:
        self.speaker.handle(message, Clock("boot", self.now, PLAUSIBLE_WALL + self.now))

    def speak(self, command_id: str, priority: Priority = Priority.MESSAGE, at: float = 0.0, **fields: Any) -> None:  # noqa: ANN401
        command = Speak.model_validate({"text": "a", **fields, "id": command_id, "priority": priority})
        self.handle(SpeakReceived(command, at))

    def control(self, command: Control) -> Event:
        self.handle(ControlReceived(command))
        return self.events[-1]

    def start(self, command_id: str, at: float = 0.1) -> None:
        self.handle(PlaybackStarted(command_id, at))

    def silence(self, command_id: str, cut_at: int = 1000) -> None:
        """Have the player say that it stopped where it was told to."""
        self.handle(PlaybackEnded(command_id, self.now, 0.03, None, cut_at))

    def synthesize(self, command_id: str, audio_s: float = 2.0) -> None:
        self.handle(
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
        self.handle(PlaybackEnded(command_id, 3.0, audio_s, error))

    def kinds(self, command_id: str | None = None) -> list[str]:
        return [event.event for event in self.events if command_id is None or getattr(event, "id", None) == command_id]


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


LOST = SinkError("alsa", "gone")


class TestLostLoudspeaker:
    """`audio.lost_wait_s`: speech waits for its loudspeaker."""

    @pytest.fixture
    def patient(self) -> Bench:
        bench = Bench(lost_wait_s=30.0)
        bench.speak("a")
        bench.start("a")
        return bench

    def lose(self, bench: Bench, command_id: str = "a", audio_s: float = 0.5) -> None:
        bench.handle(AudioState("lost: gone"))
        bench.handle(PlaybackEnded(command_id, bench.now, audio_s, LOST, 1000))

    def test_it_goes_on_from_where_it_stopped_as_soon_as_that_is_back(self, patient: Bench) -> None:
        patient.speak("b", Priority.CRITICAL)
        patient.silence("a", cut_at=1000)
        patient.start("b")
        self.lose(patient, "b")
        assert patient.began == ["a", "b"]
        interrupted = patient.events[-1]
        assert isinstance(interrupted, Interrupted)
        assert (interrupted.reason, interrupted.by) == ("lost", None)
        patient.now = 20
        patient.handle(AudioState())
        assert patient.began == ["a", "b", "b"]
        assert patient.begun[-1].resume_at == 1000
        patient.start("b")
        patient.end("b")
        patient.start("a")
        patient.end("a")
        assert patient.kinds("b") == ["accepted", "started", "interrupted", "resumed", "finished"]

    def test_the_wait_ends(self, patient: Bench) -> None:
        self.lose(patient)
        patient.speak("b")
        assert patient.speaker.next_deadline == 30
        patient.now = 30
        patient.handle(Tick())
        assert patient.began == ["a", "a"], "is tried, whatever comes"
        assert patient.speaker.next_deadline == math.inf, "and wants no more ticks"
        patient.handle(PlaybackEnded("a", 30, 0.0, LOST, 1000))
        assert patient.kinds("a")[-1] == "failed"
        patient.handle(PlaybackEnded("b", 30, 0.0, LOST, 0))
        assert patient.kinds("b")[-1] == "failed"

    def test_a_card_that_comes_and_goes_is_not_waited_for_without_end(self, patient: Bench) -> None:
        for second in range(40):
            patient.now = second
            self.lose(patient, audio_s=0.5 if second == 0 else 1000 / 48_000)
            patient.handle(AudioState())
        assert patient.kinds("a")[-1] == "failed"
        assert len(patient.begun) == 31

    def test_each_part_that_is_heard_earns_a_new_wait(self, patient: Bench) -> None:
        for second in (0, 25, 50, 75):
            patient.now = second
            self.lose(patient, audio_s=0.5 + second)
            patient.handle(AudioState())
        assert "failed" not in patient.kinds("a")

    def test_what_waits_can_be_cancelled(self, patient: Bench) -> None:
        self.lose(patient)
        patient.control(Cancel(id="a"))
        assert patient.kinds("a")[-1] == "cancelled"
        patient.handle(AudioState())
        assert patient.began == ["a"]

    def test_one_that_was_cancelled_when_it_was_lost_is_over(self, patient: Bench) -> None:
        patient.control(Cancel(id="a"))
        self.lose(patient)
        assert patient.kinds("a")[-1] == "failed"

    def test_without_a_wait_it_fails_and_so_does_the_next(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        self.lose(bench)
        bench.speak("b")
        assert bench.began == ["a", "b"]
        failed = bench.events[-2]
        assert isinstance(failed, Failed)
        assert failed.code == "audio"

    def test_a_fault_of_the_synthesis_is_waited_for_by_nobody(self, patient: Bench) -> None:
        patient.end("a", EngineError("ort", "broken"))
        assert patient.kinds("a")[-1] == "failed"


class TestControl:
    def test_pause_and_resume(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        done = bench.control(Pause(request="p"))
        assert isinstance(done, Done)
        assert (done.request, done.command, done.affected) == ("p", "pause", ("a",))
        assert bench.cuts == [("a", True)]
        assert bench.settings[-1].paused
        bench.silence("a", cut_at=2000)
        bench.speak("b")
        assert bench.began == ["a"]
        done = bench.control(Resume())
        assert isinstance(done, Done)
        assert done.affected == ("a",)
        assert not bench.settings[-1].paused
        assert [(waiting.id, waiting.resume_at) for waiting in bench.begun] == [("a", 0), ("a", 2000)]

    @pytest.mark.parametrize(("repeat", "frame"), [(0, 2000), (1, 1500), (2, 0), (9, 0)])
    def test_a_resume_may_repeat_sentences(self, bench: Bench, repeat: int, frame: int) -> None:
        bench.speak("a")
        bench.start("a")
        bench.control(Pause())
        bench.silence("a", cut_at=2000)
        bench.control(Resume(repeat_sentences=repeat))
        assert bench.begun[-1].resume_at == frame

    def test_a_resume_before_silence_goes_on_with_the_same(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.speak("b")
        bench.control(Pause())
        bench.control(Resume())
        assert bench.began == ["a"]
        bench.silence("a")
        assert bench.began == ["a", "a"]

    def test_critical_speaks_even_while_paused(self, bench: Bench) -> None:
        bench.control(Pause())
        bench.speak("a")
        bench.speak("b", Priority.CRITICAL)
        bench.end("b")
        assert bench.began == ["b"]

    def test_skip_goes_on_with_the_next(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("b")
        bench.control(Skip(request="s"))
        bench.silence("a")
        cancelled = next(event for event in bench.events if isinstance(event, Cancelled))
        assert (cancelled.id, cancelled.by) == ("a", "s")
        assert bench.began == ["a", "b"]

    def test_skip_while_paused_ends_what_would_go_on(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.speak("b")
        bench.control(Pause())
        bench.silence("a")
        bench.control(Skip())
        assert bench.kinds("a")[-1] == "cancelled"
        bench.control(Resume())
        assert bench.began == ["a", "b"]

    @pytest.mark.parametrize(
        ("selector", "ended"),
        [({"id": "b"}, "b"), ({"session": "s"}, "ab"), ({"supersede": "k"}, "c"), ({"all": True}, "abcr")],
    )
    def test_cancel_ends_those_that_are_meant(self, bench: Bench, selector: dict[str, Any], ended: str) -> None:
        bench.speak("a", session="s")
        bench.speak("b", session="s")
        bench.speak("c", supersede="k")
        bench.speak("r", output="file")
        done = bench.control(Cancel(request="x", **selector))
        assert isinstance(done, Done)
        assert sorted(done.affected or ()) == sorted(ended)
        bench.silence("a") if "a" in ended else bench.end("a")
        bench.handle(RenderEnded("r", 1.0, 0.0, 0.0))
        assert {event.id for event in bench.events if isinstance(event, Cancelled)} == set(ended)

    def test_cancel_outweighs_the_wish_to_go_on(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.control(Pause())
        bench.control(Cancel(id="a"))
        bench.silence("a")
        assert bench.kinds("a")[-1] == "cancelled"

    def test_settings_are_applied_told_and_remembered(self, bench: Bench) -> None:
        bench.control(VolumeSet(volume=0.5))
        bench.control(MuteSet(muted=True))
        bench.control(VoiceSet(voice="joe"))
        bench.control(ConfigSet(version=41, rate=1.5, muted=False))
        expected = Settings(version=41, volume=0.5, muted=False, voice="joe", rate=1.5)
        assert bench.settings[-1] == expected
        assert Bench(bench.journal).speaker.settings == expected
        bench.speak("a", rate=1.2)
        bench.speak("b", voice="ann", rate=2)
        assert (bench.begun[0].command.voice, round(bench.begun[0].command.rate, 3)) == ("joe", 1.8)
        bench.end("a")
        assert (bench.begun[1].command.voice, bench.begun[1].command.rate) == ("ann", 2)

    def test_a_request_that_comes_twice_is_carried_out_once(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("b")
        bench.speak("c")
        for _ in range(2):
            bench.control(Skip(request="once"))
            bench.silence("a")
        assert bench.began == ["a", "b"]
        assert bench.kinds().count("done") == 2

    def test_ping_and_voices_are_answered(self, bench: Bench) -> None:
        assert bench.control(Ping(request="p")).event == "pong"
        voices = bench.control(VoicesGet(request="v"))
        assert isinstance(voices, Voices)
        assert [voice.name for voice in voices.voices] == ["joe"]


class TestExpiry:
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


@pytest.fixture
def chimed() -> Bench:
    return Bench(chimes=Chimes.load(ChimesConfig(important="attention"), -23))


class TestOrigin:
    def test_all_that_is_said_of_a_command_goes_where_it_came_from(self, bench: Bench) -> None:
        origin = Origin("reply/here", b"7", (("trace", "t"),))
        bench.handle(SpeakReceived(Speak(id="a", text="a"), 0.0, origin))
        bench.start("a")
        bench.end("a")
        bench.handle(PayloadRefused(PayloadError("json", "no JSON"), origin))
        bench.handle(ControlReceived(Ping(), origin))
        assert bench.origins == [origin] * 5


class TestWords:
    def test_are_told_with_their_place(self, bench: Bench) -> None:
        bench.speak("a", marks=True)
        bench.start("a")
        bench.handle(WordReached("a", 1, 0.2))
        word = bench.events[-1]
        assert isinstance(word, Word)
        assert (word.index, word.at_s) == (1, round(1000 / 48_000, 3))


class TestRender:
    def test_needs_no_turn(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("r", output="file")
        bench.handle(RenderStarted("r", 0.2))
        bench.handle(RenderEnded("r", 1.0, 2.0, 0.5))
        assert bench.kinds("r") == ["accepted", "started", "finished"]
        finished = bench.events[-1]
        assert isinstance(finished, Finished)
        assert (finished.location, finished.audio_s) == ("r.wav", 2.0)
        assert bench.began == ["a"]

    def test_is_bounded(self, bench: Bench) -> None:
        for command_id in "abc":
            bench.speak(command_id, output="stream")
        rejected = bench.events[-1]
        assert isinstance(rejected, Rejected)
        assert (rejected.id, rejected.code) == ("c", "queue_full")


class TestClip:
    CLIP: Samples = np.ones(10, np.float32)

    def test_a_sound_takes_its_turn_as_a_text_does(self, bench: Bench) -> None:
        bench.speak("a")
        bench.handle(SpeakReceived(Speak(id="b", text=""), 0.0, clip=self.CLIP))
        bench.end("a")
        assert [waiting.clip is self.CLIP for waiting in bench.begun] == [False, True]
        bench.end("b")
        assert bench.kinds("b")[-1] == "finished"

    def test_interrupted_it_is_still_there(self, bench: Bench) -> None:
        bench.handle(SpeakReceived(Speak(id="b", text=""), 0.0, clip=self.CLIP))
        bench.start("b")
        bench.speak("c", Priority.CRITICAL)
        bench.silence("b", cut_at=5)
        bench.end("c")
        again = bench.begun[-1]
        assert (again.id, again.clip is self.CLIP, again.resume_at) == ("b", True, 5)

    def test_a_crash_forgets_it_and_says_so(self, bench: Bench) -> None:
        origin = Origin(route="hermes x")
        bench.speak("a")
        bench.handle(SpeakReceived(Speak(id="b", text=""), 0.0, origin, clip=self.CLIP))
        again = TestAfterACrash.restarted(bench, 5)
        failed = next(e for e in again.events if isinstance(e, Failed) and e.id == "b")
        assert failed.code == "interrupted"
        assert again.origins[again.events.index(failed)] == origin


class TestChimes:
    def test_count_in_what_a_command_has_to_wait_for(self, chimed: Bench) -> None:
        chimed.speak("a", text="", chime="attention")
        chimed.speak("b", text="")
        accepted = chimed.events[-1]
        assert isinstance(accepted, Accepted)
        assert accepted.starts_in_s == pytest.approx(bell("attention").size / RATE, abs=0.1)

    def test_so_does_a_clip(self, bench: Bench) -> None:
        bench.handle(SpeakReceived(Speak(id="a", text=""), 0.0, clip=np.zeros(3 * RATE, np.float32)))
        bench.speak("b")
        accepted = bench.events[-1]
        assert isinstance(accepted, Accepted)
        assert accepted.starts_in_s == 3.0

    def test_teach_nothing_about_the_length_of_texts(self, chimed: Bench) -> None:
        for count in range(20):
            chimed.speak(f"a{count}", text="x" * 10, chime="attention")
            chimed.start(f"a{count}")
            heard_s = 10 * 0.065 + chimed.begun[-1].extra_s
            chimed.handle(PlaybackEnded(f"a{count}", chimed.now, heard_s))
        chimed.speak("b", text="x" * 100)
        chimed.speak("c")
        accepted = chimed.events[-1]
        assert isinstance(accepted, Accepted)
        assert accepted.starts_in_s == 6.5

    def test_that_there_are_none_of_are_refused_before_anything_is_said(self, chimed: Bench) -> None:
        chimed.speak("a", chime="gong")
        assert chimed.kinds("a") == ["rejected"]
        assert not chimed.begun
        rejected = chimed.events[-1]
        assert isinstance(rejected, Rejected)
        assert rejected.code == "chime"

    def test_of_the_priority_are_kept_over_a_restart(self, chimed: Bench) -> None:
        chimed.speak("a")
        chimed.speak("b", Priority.IMPORTANT)
        again = TestAfterACrash.restarted(chimed, 5)
        assert again.begun[-1].command.chime == "attention"


class TestAfterACrash:
    @staticmethod
    def restarted(bench: Bench, after_s: float, *, boot: str = "boot", wall: float | None = None) -> Bench:
        again = Bench(bench.journal)
        again.now = bench.now + after_s
        wall = PLAUSIBLE_WALL + again.now if wall is None else wall
        again.speaker.recover(Clock(boot, again.now, wall))
        return again

    def test_what_was_being_spoken_has_failed_and_what_waited_is_spoken(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.speak("b")
        bench.speak("c", Priority.IMPORTANT)
        again = self.restarted(bench, 5)
        assert [(e.id, e.code) for e in again.events if isinstance(e, Failed)] == [("a", "interrupted")]
        again.end("c")
        again.end("b")
        assert again.began == ["c", "b"]
        assert [e.id for e in again.events if isinstance(e, Finished)] == ["c", "b"]

    def test_a_repeated_id_is_known_again(self, bench: Bench) -> None:
        bench.speak("a")
        bench.end("a")
        again = self.restarted(bench, 5)
        again.speak("a")
        assert again.kinds() == ["known"]

    @pytest.mark.parametrize(
        ("after_s", "boot", "wall", "outcome"),
        [
            (5, "boot", 0.0, "begun"),  # the same boot: whatever the wall clock says
            (15, "boot", None, "expired"),
            (5, "another", None, "begun"),
            (15, "another", None, "expired"),
            (5, "another", 1000.0, "interrupted"),  # no clock since the boot: nobody knows how late it is
        ],
    )
    def test_time_goes_on_while_it_is_down(
        self, bench: Bench, after_s: float, boot: str, wall: float | None, outcome: str
    ) -> None:
        bench.speak("a")
        bench.speak("b", expires_s=10)
        again = self.restarted(bench, after_s, boot=boot, wall=wall)
        told = ["begun" if "b" in again.began else ""]
        told += [getattr(event, "code", event.event) for event in again.events if getattr(event, "id", "") == "b"]
        assert outcome in told

    def test_what_is_too_old_is_not_spoken(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("b")
        again = self.restarted(bench, 61)
        assert not again.began
        assert {e.id: e.code for e in again.events if isinstance(e, Failed)} == dict.fromkeys("ab", "interrupted")

    def test_a_disk_that_takes_nothing_silences_nobody(self, bench: Bench) -> None:
        bench.journal._database.close()
        bench.speak("a")
        assert bench.began == ["a"]
        assert "closed" in bench.speaker.condition.journal_problem
        bench.handle(PlaybackEnded("a", 0.0, 1.0, None, None))
        bench.speak("a")
        assert isinstance(bench.events[-1], Known), "what the disk forgot is known while this runs"
        assert bench.began == ["a"]


class TestOtherMessages:
    def test_a_refused_payload_is_told(self, bench: Bench) -> None:
        bench.handle(PayloadRefused(PayloadError("json", "no JSON", "a")))
        rejected = bench.events[-1]
        assert isinstance(rejected, Rejected)
        assert (rejected.id, rejected.code, rejected.reason) == ("a", "json", "no JSON")

    def test_what_is_said_of_others_is_passed_over(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("b")
        bench.synthesize("b")
        bench.end("b")
        bench.handle(Connected("MQTT 5"))
        assert bench.kinds() == ["accepted"]
        bench.start("a")
        assert bench.kinds() == ["accepted", "started"]

    def test_a_tick_begins_nothing_by_itself(self, bench: Bench) -> None:
        bench.handle(Tick())
        assert not bench.begun

    def test_what_is_wrong_with_the_audio_is_remembered(self, bench: Bench) -> None:
        bench.handle(AudioState("no card"))
        assert bench.speaker.condition.audio_problem == "no card"
        bench.handle(AudioState())
        assert bench.speaker.condition.audio_problem == ""

    def test_a_command_that_comes_after_the_stop_is_told_so(self) -> None:
        bench = Bench()
        bench.handle(Stop())
        bench.speak("late")
        assert [(event.event, getattr(event, "code", "")) for event in bench.events] == [("rejected", "stopped")]

    def test_a_stop_fails_who_speaks_and_who_waits(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.speak("b")
        bench.speak("c")
        bench.handle(Stop())
        assert {event.id: event.code for event in bench.events if isinstance(event, Failed)} == dict.fromkeys(
            "abc", "stopped"
        )
        bench.end("a")
        assert Counter(bench.kinds()) == {"accepted": 3, "started": 1, "failed": 3}
        assert bench.began == ["a"]


class TestRests:
    """Between two utterances, in which a hot board cools down."""

    def test_the_next_one_begins_after_it(self, bench: Bench) -> None:
        bench.speaker.rest(1.5)
        bench.speak("a")
        bench.speak("b")
        bench.start("a")
        bench.now = 3.0
        bench.end("a")
        assert bench.began == ["a"]
        assert bench.speaker.next_deadline == 4.5
        bench.now = 4.4
        bench.handle(Tick())
        assert bench.began == ["a"]
        bench.now = 4.5
        bench.handle(Tick())
        assert bench.began == ["a", "b"]
        assert bench.speaker.next_deadline == math.inf

    def test_what_is_critical_does_not_wait(self, bench: Bench) -> None:
        bench.speaker.rest(1.5)
        bench.speak("a")
        bench.speak("b")
        bench.now = 3.0
        bench.end("a")
        bench.speak("now", Priority.CRITICAL, at=3.0)
        assert bench.began == ["a", "now"]

    def test_who_comes_later_does_not_either(self, bench: Bench) -> None:
        bench.speaker.rest(1.5)
        bench.speak("a")
        bench.now = 3.0
        bench.end("a")
        bench.now = 4.6
        bench.speak("b", at=4.6)
        assert bench.began == ["a", "b"]

    def test_what_waits_may_expire_meanwhile(self, bench: Bench) -> None:
        bench.speaker.rest(1.5)
        bench.speak("a")
        bench.speak("b", expires_s=3.5)
        bench.now = 3.0
        bench.end("a")
        assert bench.speaker.next_deadline == 3.5
        bench.now = 3.6
        bench.handle(Tick())
        assert bench.kinds("b") == ["accepted", "expired"]

    def test_a_pause_outlasts_it(self, bench: Bench) -> None:
        bench.speaker.rest(1.5)
        bench.speak("a")
        bench.speak("b")
        bench.now = 3.0
        bench.control(Pause())
        bench.silence("a")
        assert bench.speaker.next_deadline == math.inf
        bench.now = 9.0
        bench.handle(Tick())
        assert bench.began == ["a"]


class TestBusy:
    def test_there_is_something_to_compute_until_all_samples_exist(self, bench: Bench) -> None:
        assert bench.speaker.busy == 0
        bench.speak("a")
        bench.speak("b")
        assert bench.speaker.busy == 2
        bench.start("a")
        bench.synthesize("a")
        assert bench.speaker.busy == 1
        bench.control(Pause())
        assert bench.speaker.busy == 0

    def test_a_stream_is_listened_to_and_a_file_is_not(self, bench: Bench) -> None:
        bench.speak("file", output="file")
        assert bench.speaker.busy == 0
        bench.speak("stream", output="stream")
        assert bench.speaker.busy == 1


class TestMode:
    def test_it_may_be_chosen_for_a_time(self, bench: Bench) -> None:
        answer = bench.control(ModeSet(mode="efficiency", for_s=60))
        assert isinstance(answer, Done)
        assert answer.command == "mode/set"
        assert (bench.settings[-1].mode, bench.speaker.wanted_mode) == ("efficiency", Mode.EFFICIENCY)
        assert bench.settings[-1].mode_until is not None
        assert bench.speaker.next_deadline == 60
        bench.now = 60
        bench.handle(Tick())
        assert (bench.settings[-1].mode, bench.settings[-1].mode_until) == ("auto", None)
        assert bench.speaker.wanted_mode is None
        assert bench.speaker.next_deadline == math.inf

    def test_it_may_be_given_up_before(self, bench: Bench) -> None:
        bench.control(ModeSet(mode="latency"))
        bench.control(ModeSet(mode="auto"))
        assert bench.speaker.wanted_mode is None
        assert bench.speaker.next_deadline == math.inf

    def test_a_restart_ends_it(self, bench: Bench) -> None:
        bench.control(ModeSet(mode="protect"))
        bench.control(VolumeSet(volume=0.5))
        again = Bench(bench.journal)
        assert (again.speaker.settings.volume, again.speaker.settings.mode) == (0.5, "auto")
        assert again.speaker.wanted_mode is None

    def test_the_status_knows_which_it_is_and_why(self, bench: Bench) -> None:
        bench.handle(ModeChanged(Decision(Mode.PROTECT, "cpu is too hot")))
        bench.handle(ModeApplied(Applied(refused=("there is no helper",))))
        bench.handle(ModeApplied(Applied()))
        condition = bench.speaker.condition
        assert (condition.mode, condition.mode_reason) == (Mode.PROTECT, "cpu is too hot")
        assert condition.power_problem == "there is no helper"
        bench.handle(ModeApplied(Applied(changed=("limits gpu 1 2",))))
        assert bench.speaker.condition.power_problem == ""

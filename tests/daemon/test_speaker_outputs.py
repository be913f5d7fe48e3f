"""What a speaker makes of outputs: lost ones, none at all, sounds instead of speech, rests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulators.speaker_bench import Bench

from daemon.chimes import Chimes
from daemon.clock import PLAUSIBLE_WALL, Clock
from daemon.commands import Cancel, Pause, Priority, Speak
from daemon.config import ChimesConfig
from daemon.events import Accepted, Expired, Failed, Finished, Interrupted, Rejected
from daemon.inbox import AudioState, Origin, PlaybackEnded, RenderEnded, RenderStarted, SpeakReceived, Tick
from device.bell import bell
from device.errors import SinkError
from device.format import RATE, Samples
from engines.errors import EngineError


@pytest.fixture
def bench() -> Bench:
    return Bench()


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

    def test_what_was_not_begun_in_time_is_expired(self, bench: Bench) -> None:
        bench.queued_renders = {"late"}
        bench.speak("begun", output="file", expires_s=5)
        bench.speak("late", output="stream", expires_s=5)
        bench.handle(RenderStarted("begun", 0.2))
        assert bench.speaker.next_deadline == 5
        bench.now = 6.0
        bench.handle(Tick())
        assert bench.dropped == ["late"]
        assert bench.speaker.next_deadline == math.inf
        bench.handle(RenderEnded("late", 6.0))
        expired = bench.events[-1]
        assert isinstance(expired, Expired)
        assert (expired.id, expired.waited_s) == ("late", 6.0)
        bench.handle(RenderEnded("begun", 7.0, 2.0, 0.5))
        assert bench.kinds("begun")[-1] == "finished"

    def test_of_one_that_a_thread_is_at_the_expiry_is_over(self, bench: Bench) -> None:
        bench.speak("a", output="file", expires_s=5)  # begun, and nothing of it is there yet
        bench.now = 6.0
        bench.handle(Tick())
        assert bench.speaker.next_deadline == math.inf
        bench.handle(RenderEnded("a", 7.0, 2.0, 0.5))
        assert bench.kinds("a")[-1] == "finished"

    def test_a_machine_that_slept_makes_what_waits_older(self, bench: Bench) -> None:
        bench.queued_renders = {"a"}
        bench.speak("a", output="file", expires_s=3600)
        bench.speaker.slept(7200.0, Clock("boot", 1.0, PLAUSIBLE_WALL + 7201))
        bench.handle(Tick())
        assert bench.dropped == ["a"]

    def test_one_that_waits_is_taken_back_when_it_is_cancelled(self, bench: Bench) -> None:
        bench.queued_renders = {"a"}
        bench.speak("a", output="file")
        bench.control(Cancel(id="a"))
        assert bench.dropped == ["a"]
        bench.handle(RenderEnded("a", 1.0))
        assert bench.kinds("a")[-1] == "cancelled"

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
        again = bench.restarted(5)
        failed = next(e for e in again.events if isinstance(e, Failed) and e.id == "b")
        assert failed.code == "interrupted"
        assert again.origins[again.events.index(failed)] == origin


@pytest.fixture
def chimed() -> Bench:
    return Bench(chimes=Chimes.load(ChimesConfig(important="attention"), -23))


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
        again = chimed.restarted(5)
        assert again.begun[-1].command.chime == "attention"

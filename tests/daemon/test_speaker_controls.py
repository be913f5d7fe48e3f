"""What a speaker does when it is told to, and what it tells of it."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import pytest
from simulators.speaker_bench import Bench

from daemon.commands import (
    Cancel,
    ConfigSet,
    Control,
    LexiconSet,
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
from daemon.errors import PayloadError
from daemon.events import Cancelled, Done, QueueState, Rejected, Settings, Voices, Word
from daemon.inbox import (
    ControlReceived,
    ModeApplied,
    ModeChanged,
    Origin,
    PayloadRefused,
    RenderEnded,
    SpeakReceived,
    Tick,
    WordReached,
)
from engines.errors import VoiceError
from engines.text.lexicon import Entry
from power.mode import Decision, Mode
from power.modes import Applied


@pytest.fixture
def bench() -> Bench:
    return Bench()


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

    def test_a_resume_before_silence_repeats_sentences_too(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.control(Pause())
        bench.control(Resume(repeat_sentences=1))
        bench.silence("a", cut_at=2000)
        assert bench.begun[-1].resume_at == 1500
        bench.start("a")
        bench.control(Pause())
        bench.silence("a", cut_at=2000)
        bench.control(Resume())
        assert bench.begun[-1].resume_at == 2000, "this time it was not asked to"

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

    def test_two_skips_end_two(self, bench: Bench) -> None:
        for command_id in "abc":
            bench.speak(command_id)
        bench.start("a")
        for name in ("1", "2"):
            bench.control(Skip(request=name))
        bench.silence("a")
        assert bench.began == ["a", "c"]
        ends = {event.id: event.by for event in bench.events if isinstance(event, Cancelled)}
        assert ends == {"a": "1", "b": "2"}

    def test_what_was_cancelled_and_is_just_falling_silent_is_over(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.control(Pause())
        bench.control(Cancel(id="a"))
        done = bench.control(Resume())
        assert isinstance(done, Done)
        assert done.affected == ()
        bench.speak("n", Priority.NOTIFICATION)
        state = bench.control(QueueGet())
        assert isinstance(state, QueueState)
        assert [(queued.id, queued.state) for queued in state.commands] == [("n", "waiting")]
        bench.silence("a")
        assert bench.began == ["a", "n"], "it is no reason to be busy"

    def test_what_began_as_it_was_stopped_has_begun(self, bench: Bench) -> None:
        bench.speak("a", expires_s=5)
        bench.control(Pause())
        bench.start("a")  # the player had begun before it was told
        bench.silence("a")
        bench.now = 9.0
        bench.control(Resume())
        bench.start("a")
        bench.end("a")
        assert bench.kinds("a") == ["accepted", "started", "interrupted", "resumed", "finished"]

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

    @pytest.mark.parametrize("command", [VoiceSet(voice="ann"), ConfigSet(voice="ann", volume=0.5)])
    def test_a_voice_that_is_not_there_is_refused_and_nothing_changes(self, bench: Bench, command: Control) -> None:
        before = bench.speaker.settings
        refused = bench.control(command)
        assert isinstance(refused, Rejected)
        assert (refused.code, refused.id) == ("voice", command.request)
        assert refused.reason == "ann is not among the voices here (joe)"
        assert bench.speaker.settings == before
        bench.control(VoiceSet(voice=""))
        assert bench.speaker.settings.voice == ""

    @pytest.mark.parametrize("command", [VoicesGet(), VoiceSet(voice="joe"), ConfigSet(voice="joe", volume=0.5)])
    def test_voices_that_cannot_be_listed_just_now_cost_an_answer_only(self, bench: Bench, command: Control) -> None:
        bench.lost = VoiceError("/voices", "cannot be read: Input/output error")
        before = bench.speaker.settings
        refused = bench.control(command)
        assert isinstance(refused, Rejected)
        assert (refused.code, refused.id, refused.reason) == ("voice", command.request, str(bench.lost))
        assert bench.speaker.settings == before
        bench.lost = None
        assert bench.control(command).event in {"voices", "done"}

    def test_a_request_that_comes_twice_is_carried_out_once(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("b")
        bench.speak("c")
        for _ in range(2):
            bench.control(Skip(request="once"))
            bench.silence("a")
        assert bench.began == ["a", "b"]
        assert bench.kinds().count("done") == 2

    def test_one_name_for_several_requests_loses_none(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.control(Pause(request="r"))
        bench.silence("a")
        for number, command in enumerate((Resume(request="r"), Pause(request="r"), Resume(request="r"))):
            done = bench.control(command)
            assert isinstance(done, Done)
            assert done.command == ("pause" if isinstance(command, Pause) else "resume")
            bench.silence("a") if number == 1 else bench.start("a")
        bench.control(VolumeSet(request="v", volume=0.5))
        bench.control(VolumeSet(request="v", volume=0.7))
        assert bench.speaker.settings.volume == 0.7

    def test_what_is_remembered_of_requests_is_small(self, bench: Bench) -> None:
        kept = []
        for number in range(20):
            command = LexiconSet(entries=tuple(Entry(written=f"w{i}", spoken=f"{number}") for i in range(50)))
            kept.append(weakref.ref(command))
            bench.control(command)
            del command
        gc.collect()
        assert sum(reference() is not None for reference in kept) <= 1

    def test_a_question_is_answered_as_things_are_now(self, bench: Bench) -> None:
        for expected in ((), ("a",)):
            state = bench.control(QueueGet(request="q"))
            assert isinstance(state, QueueState)
            assert tuple(queued.id for queued in state.commands) == expected
            bench.speak("a")

    def test_ping_and_voices_are_answered(self, bench: Bench) -> None:
        assert bench.control(Ping(request="p")).event == "pong"
        voices = bench.control(VoicesGet(request="v"))
        assert isinstance(voices, Voices)
        assert [voice.name for voice in voices.voices] == ["joe"]


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
        condition = bench.speaker.condition
        assert (condition.mode, condition.mode_reason) == (Mode.PROTECT, "cpu is too hot")
        assert condition.power_problem == "there is no helper"
        bench.handle(ModeApplied(Applied()))
        assert bench.speaker.condition.power_problem == ""


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

    @pytest.mark.parametrize("output", ["stream", "rtp"])
    def test_what_is_sent_as_it_is_made_is_listened_to_and_a_file_is_not(self, bench: Bench, output: str) -> None:
        bench.speak("file", output="file")
        assert bench.speaker.busy == 0
        bench.speak("sent", output=output)
        assert bench.speaker.busy == 1

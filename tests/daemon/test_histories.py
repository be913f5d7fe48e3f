"""Whatever happens in whatever order: each accepted command ends once, in its turn, and is never heard twice.

Some 3,000 steps by default; `SPEAKD_STEPS=100000` makes it as many.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from daemon.clock import PLAUSIBLE_WALL, Clock
from daemon.commands import Cancel, Control, Pause, Priority, Resume, Skip, Speak
from daemon.errors import PayloadError
from daemon.events import FINAL, Event, Settings
from daemon.inbox import (
    AudioState,
    ControlReceived,
    Inbox,
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
    Told,
)
from daemon.job import Job
from daemon.journal import Journal
from daemon.lexica import Lexica
from daemon.queue import Waiting
from daemon.speaker import Bounds, Hands, Speaker
from device.errors import SinkError

STEPS: Final = int(os.environ.get("SPEAKD_STEPS", "3000"))
STEPS_EACH: Final = 50
BOUNDS: Final = Bounds(
    queue=5, queue_bytes=60, rate_per_s=5, burst=20, renders=2, speak_after_restart_s=60, lost_wait_s=20
)

IDS = st.integers(1, 40)
KEYS = st.sampled_from([None, None, "k", "l"])


class Crash(BaseException):
    """The process is gone, in the middle of whatever it did."""


@dataclass
class Go:
    """What engine and player are at, in order."""

    waiting: Waiting
    job: Job
    started: bool = False
    cut: Literal["", "sentence", "now"] = ""


@dataclass
class Truth:
    """What the world outside has seen of a command, whatever crashed in between."""

    command: Speak
    finals: set[str] = field(default_factory=set)
    heard_in: int | None = None
    """The life of the process in which it was heard."""


class AnyHistory(RuleBasedStateMachine):
    """Drives a speaker as broker, engine, player, clock and power supply would, and watches what comes of it."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.journal = Journal(None)
        self.truths: dict[str, Truth] = {}
        self.boot = 1
        self.monotonic = 0.0
        self.wall = PLAUSIBLE_WALL
        self.life = 0
        self.fuse = 0
        """Effects until the process crashes in the middle of one; 0: it does not."""
        self.sent = 0
        self.cancels = False
        self.line: list[Go] = []
        self.rendering: dict[str, Job] = {}
        self.begun_renders: set[str] = set()

    @initialize()
    def power_on(self) -> None:
        self.start_process()

    # -- the process

    def start_process(self) -> None:
        self.life += 1
        self.line, self.rendering, self.begun_renders = [], {}, set()
        self.journal._told.clear()
        self.accepted: dict[str, Waiting] = {}
        self.paused = False
        hands = Hands(
            publish=self.publish,
            begin=self.begin,
            cut=self.cut,
            render=self.render,
            drop=self.drop,
            apply=self.apply,
            voices=list,
            lexica=Lexica(Path("/no/lexicon.d"), self.journal),
        )
        self.speaker = Speaker(BOUNDS, self.journal, "null", hands)
        for final in self.journal.untold():  # what `Link` does once it is connected
            self.truths[final.id].finals.add(final.final)
        self.guarded(lambda: self.speaker.recover(self.clock()))

    def clock(self) -> Clock:
        return Clock(str(self.boot), self.monotonic, self.wall)

    def handle(self, message: Inbox) -> None:
        self.guarded(lambda: self.speaker.handle(message, self.clock()))

    def guarded(self, step: Any) -> None:  # noqa: ANN401
        try:
            step()
        except Crash:
            self.fuse = 0
            self.start_process()

    def effect(self) -> None:
        if self.fuse:
            self.fuse -= 1
            if not self.fuse:
                raise Crash

    def publish(self, event: Event, origin: Origin) -> None:
        self.effect()
        if event.event in FINAL and event.event != "rejected":
            self.truths[event.id].finals.add(event.to_json())

    def apply(self, settings: Settings) -> None:
        self.effect()

    def waiting_now(self) -> list[Waiting]:
        return list(self.speaker._playback.queue)

    def begin(self, waiting: Waiting) -> Job:
        self.effect()
        truth = self.truths[waiting.id]
        critical = waiting.command.priority is Priority.CRITICAL
        assert not truth.finals, "it has ended already"
        assert truth.heard_in in (None, self.life), "it was heard before the crash"
        assert (truth.heard_in is not None) == waiting.begun
        assert critical or not self.speaker._playback.paused
        assert critical or not self.line, "somebody else is still heard"
        assert all(go.cut == "now" for go in self.line), "somebody else speaks and was not told to stop"
        assert waiting.begun or self.monotonic < waiting.deadline, "it has expired"
        assert all(waiting.sort_key < other.sort_key for other in self.waiting_now()), "it is not its turn"
        job = Job(waiting.id, start=waiting.resume_at, words=[0, 10, 20], sentences=[0, 15])
        self.line.append(Go(waiting, job))
        return job

    def cut(self, job: Job, at_once: bool) -> None:  # noqa: FBT001
        self.effect()
        (go,) = [go for go in self.line if go.job is job]
        assert go.waiting.command.priority is not Priority.CRITICAL or self.cancels, "critical is never interrupted"
        go.cut = "now" if at_once else go.cut or "sentence"

    def render(self, waiting: Waiting) -> tuple[Job, str]:
        self.effect()
        job = self.rendering[waiting.id] = Job(waiting.id)
        return job, f"{waiting.id}.wav"

    def drop(self, job: Job) -> bool:
        """It ends at once where no thread has begun it: with the next step that ends a render."""
        self.effect()
        waiting = next(w for w in self.speaker._renders if w.id == job.id)
        assert self.cancels or self.monotonic >= waiting.deadline, "there is still time"
        return job.id not in self.begun_renders

    # -- commands

    @rule(
        priority=st.sampled_from(Priority),
        supersede=KEYS,
        session=KEYS,
        expires_s=st.sampled_from([None, None, 1.0, 10.0]),
        on_interrupt=st.sampled_from([None, "resume", "drop"]),
        output=st.sampled_from(["speaker"] * 5 + ["file"]),
        text=st.sampled_from(["", "a", "twelve chars"]),
    )
    def speak(self, **fields: Any) -> None:  # noqa: ANN401
        self.sent += 1
        command = Speak(id=str(self.sent), **fields)
        self.truths[command.id] = Truth(command)
        over = {waiting_id for waiting_id, active in self.speaker._playback._ending.items() if not active.goes_on}
        before = self.waiting_now() + [go.waiting for go in self.line if go.waiting.id not in over]
        self.handle(SpeakReceived(command, self.monotonic))
        if command.priority is Priority.NOTIFICATION and command.output == "speaker" and self.is_open(command.id):
            assert all(w.command.priority is Priority.NOTIFICATION for w in before if self.is_open(w.id))

    def is_open(self, command_id: str) -> bool:
        return self.speaker._ledger.is_open(command_id)

    @rule(number=IDS)
    def repeat(self, number: int) -> None:
        """The sender, or the broker, sends a command again."""
        if str(number) in self.truths:
            self.handle(SpeakReceived(self.truths[str(number)].command, self.monotonic))

    @rule()
    def nonsense(self) -> None:
        self.handle(PayloadRefused(PayloadError("json", "no JSON")))

    @rule(
        command=st.one_of(
            st.builds(Pause),
            st.builds(Resume, repeat_sentences=st.integers(0, 3)),
            st.builds(Skip),
            st.builds(Cancel, id=IDS.map(str)),
            st.builds(Cancel, session=st.sampled_from("kl")),
            st.builds(Cancel, supersede=st.sampled_from("kl")),
            st.builds(Cancel, all=st.just(value=True)),
        )
    )
    def control(self, command: Control) -> None:
        self.cancels = isinstance(command, Cancel | Skip)
        self.handle(ControlReceived(command))
        self.cancels = False

    # -- engine and player

    @precondition(lambda self: self.line and not self.line[0].started)
    @rule()
    def start(self) -> None:
        """The player begins; it may have been told to stop just then."""
        go = self.line[0]
        go.started = True
        self.truths[go.waiting.id].heard_in = self.life
        self.handle(PlaybackStarted(go.waiting.id, self.monotonic))

    @precondition(lambda self: self.line and not self.line[0].cut)
    @rule()
    def synthesize(self) -> None:
        self.handle(
            SynthesisEnded(self.line[0].waiting.id, 1, 0.1, 0.1, cached=False, voice="", backend="", precision="")
        )

    @precondition(lambda self: self.line)
    @rule(
        error=st.sampled_from([None, None, None, SinkError("alsa", "is gone")]), place=st.sampled_from([0, 10, 15, 20])
    )
    def fall_silent(self, error: Exception | None, place: int) -> None:
        """Have the head of the line end: by itself, by an error, or where it was told to."""
        go = self.line.pop(0)
        cut_at = max(go.job.start, place) if (go.cut or error) and place != 20 else None
        self.handle(PlaybackEnded(go.waiting.id, self.monotonic, 1.0, error, cut_at))

    @rule(problem=st.sampled_from(["lost: gone", ""]))
    def lose_or_find_the_loudspeaker(self, problem: str) -> None:
        self.handle(AudioState(problem))

    @precondition(lambda self: self.rendering)
    @rule(started=st.booleans(), error=st.sampled_from([None, None, SinkError("x.wav", "is full")]))
    def end_render(self, error: Exception | None, *, started: bool) -> None:
        command_id = next(iter(self.rendering))
        if started and not self.rendering[command_id].stopped.is_set():
            self.begun_renders.add(command_id)
            self.handle(RenderStarted(command_id, self.monotonic))
        if self.rendering.pop(command_id, None) is not None:
            self.handle(RenderEnded(command_id, self.monotonic, 1.0, 0.1, error))

    @precondition(lambda self: self.rendering)
    @rule()
    def begin_render(self) -> None:
        self.begun_renders.add(next(iter(self.rendering)))

    @rule(number=IDS)
    def told(self, number: int) -> None:
        if any(self.truths.get(str(number), Truth(Speak(text=""))).finals):
            self.handle(Told(str(number)))

    # -- time and power

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 100.0]))
    def pass_time(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds
        self.handle(Tick())

    @rule(seconds=st.sampled_from([5.0, 1000.0]))
    def suspend(self, seconds: float) -> None:
        """The machine sleeps, and its monotonic clock with it."""
        self.wall += seconds
        self.guarded(lambda: self.speaker.slept(seconds, self.clock()))

    @rule(seconds=st.sampled_from([-1e9, -3600.0, 3600.0, 1e9]))
    def set_clock(self, seconds: float) -> None:
        self.wall = max(0.0, self.wall + seconds)

    @rule(effects=st.integers(1, 6))
    def crash_soon(self, effects: int) -> None:
        self.fuse = effects

    @rule()
    def crash(self) -> None:
        self.start_process()

    @rule(wall=st.sampled_from([0.0, None]))
    def reboot(self, wall: float | None) -> None:
        self.boot += 1
        self.monotonic = 0.0
        self.wall = self.wall + 30 if wall is None else wall
        self.start_process()

    # -- what must hold

    @invariant()
    def counted(self) -> None:
        type(self).steps += 1

    @invariant()
    def each_ends_at_most_once(self) -> None:
        for truth in self.truths.values():
            assert len(truth.finals) <= 1, truth.finals

    @invariant()
    def somebody_speaks_while_somebody_may(self) -> None:
        playback = self.speaker._playback if hasattr(self, "speaker") else None
        if playback is not None and not playback.paused and self.waiting_now():
            assert self.line or playback._hold.holds(self.monotonic), "or waits for its loudspeaker"

    @invariant()
    def the_queue_is_bounded(self) -> None:
        if hasattr(self, "speaker"):
            assert sum(not w.begun for w in self.waiting_now()) <= BOUNDS.queue + len(self.line) + 1

    def teardown(self) -> None:
        if not hasattr(self, "speaker"):
            return
        self.fuse = 0
        self.handle(AudioState())
        self.handle(ControlReceived(Resume()))
        while self.line or self.rendering:
            for _ in range(len(self.line)):
                self.fall_silent(None, 20)
            for command_id in list(self.rendering):
                self.rendering.pop(command_id)
                self.handle(RenderEnded(command_id, self.monotonic, 1.0, 0.1))
        assert not self.speaker._ledger._open
        self.handle(Stop())
        ends = Counter(len(truth.finals) for truth in self.truths.values())
        assert set(ends) <= {0, 1}
        for entry in self.journal.open_entries():
            raise AssertionError(f"{entry.command.id} was accepted and has no end")
        rows = self.journal._memory.execute("SELECT id FROM commands").fetchall()
        assert all(len(self.truths[command_id].finals) == 1 for (command_id,) in rows)


AnyHistory.TestCase.settings = settings(
    max_examples=max(1, STEPS // STEPS_EACH),
    stateful_step_count=STEPS_EACH,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class TestAnyHistory(AnyHistory.TestCase):  # type: ignore[misc, name-defined]
    """Counts what it has done."""

    @classmethod
    def tearDownClass(cls) -> None:
        print(f"{AnyHistory.steps} steps")  # noqa: T201

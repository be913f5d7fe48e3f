"""A speaker alone: what it is told, what it says, and whom it begins and cuts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from daemon.chimes import NO_CHIMES, Chimes
from daemon.clock import PLAUSIBLE_WALL, Clock
from daemon.commands import Control, Priority, Speak
from daemon.events import Event, Settings, VoiceInfo
from daemon.inbox import ControlReceived, Inbox, Origin, PlaybackEnded, PlaybackStarted, SpeakReceived, SynthesisEnded
from daemon.job import Job
from daemon.journal import Journal
from daemon.lexica import Lexica
from daemon.queue import Waiting
from daemon.speaker import Bounds, Hands, Speaker
from engines.errors import VoiceError

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
        self.queued_renders: set[str] = set()
        """Those that no render thread has begun."""
        self.dropped: list[str] = []
        self.lost: VoiceError | None = None
        """Why the voices cannot be listed."""
        self.journal = journal or Journal(None)
        hands = Hands(
            publish=self.publish,
            begin=self.begin,
            cut=lambda job, at_once: self.cuts.append((job.id, at_once)),
            render=lambda waiting: (Job(waiting.id), f"{waiting.id}.wav"),
            drop=self.drop,
            apply=self.settings.append,
            voices=self.voices,
            lexica=Lexica(Path("/no/lexicon.d"), self.journal),
        )
        self.speaker = Speaker(replace(BOUNDS, **bounds), self.journal, "null", hands, chimes)

    def publish(self, event: Event, origin: Origin) -> None:
        self.events.append(event)
        self.origins.append(origin)

    def begin(self, waiting: Waiting) -> Job:
        self.begun.append(waiting)
        return Job(waiting.id, start=waiting.resume_at, words=[0, 1000, 2000], sentences=[0, 1500])

    def voices(self) -> list[VoiceInfo]:
        if self.lost is not None:
            raise self.lost
        return [VOICE]

    def drop(self, job: Job) -> bool:
        if job.id in self.dropped or job.id not in self.queued_renders:
            return False
        self.dropped.append(job.id)
        return True

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

    def restarted(self, after_s: float, *, boot: str = "boot", wall: float | None = None) -> Bench:
        """Give the one that comes after a crash, with the same journal."""
        again = Bench(self.journal)
        again.now = self.now + after_s
        again.speaker.recover(Clock(boot, again.now, PLAUSIBLE_WALL + again.now if wall is None else wall))
        return again

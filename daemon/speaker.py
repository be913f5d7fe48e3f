"""The one owner of state: takes one message after another, and says what is due. No thread, no clock, no I/O.

Its parts: `Playback` (what speaks and waits), `Renders` (what needs no loudspeaker), `Controls` (all other commands),
`Ledger` (acceptance and end of each command).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from daemon.chimes import NO_CHIMES, Chimes
from daemon.clock import Clock
from daemon.command_fields import LARGEST_RATE, SMALLEST_RATE
from daemon.commands import Control, Speak, StreamQuality
from daemon.controls import Controls
from daemon.errors import PayloadError
from daemon.events import Accepted, Event, Settings, VoiceInfo
from daemon.hold import Hold
from daemon.inbox import (
    AudioState,
    ControlReceived,
    Disconnected,
    Inbox,
    MarkReached,
    ModeApplied,
    ModeChanged,
    Origin,
    PayloadRefused,
    PlaybackEnded,
    PlaybackStarted,
    RealtimeAnswer,
    RenderEnded,
    RenderStarted,
    SpeakReceived,
    Steady,
    Stop,
    Subscribed,
    SynthesisEnded,
    Tick,
    Told,
    WordReached,
)
from daemon.job import Job
from daemon.journal import Journal
from daemon.ledger import Ledger
from daemon.lexica import Lexica
from daemon.playback import Playback
from daemon.queue import SpeakQueue, Waiting
from daemon.rates import RateLimiter
from daemon.renders import Renders
from daemon.session_styles import SessionStyles
from device.format import seconds
from engines.styles import Style
from power.mode import Mode

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Condition:
    """How things are, whatever is being said."""

    audio_problem: str = ""
    """Why the output takes no sound; empty while it does."""
    commands_problem: str = ""
    """Why no command comes; empty while they may."""
    connection_problem: str = ""
    """What is wrong with the connection though it comes about: it is lost again and again."""
    journal_problem: str = ""
    """Why a crash would be followed by silence about what was accepted; empty where it would not."""
    realtime: Mapping[str, str] = field(default_factory=dict)
    """What was asked of the system, and its answers."""
    mode: Mode | None = None
    """How the board and the voice are run; None without a governor."""
    mode_reason: str = ""
    power_problem: str = ""
    """Why the board's clocks stay as they are; empty where they follow the mode."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is taken before it is refused."""

    queue: int
    queue_bytes: int
    rate_per_s: float
    burst: int
    renders: int
    speak_after_restart_s: float
    lost_wait_s: float = 0.0
    """How long speech waits for a loudspeaker that was lost; 0: it fails."""


@dataclass(frozen=True, slots=True)
class Hands:
    """What the speaker has done by others; each must return at once."""

    publish: Callable[[Event, Origin], None]
    begin: Callable[[Waiting], Job]
    """Start an utterance, or go on with it."""
    cut: Callable[[Job, bool], None]
    """Make one stop: at once (True), or after its sentence."""
    render: Callable[[Waiting], tuple[Job, str]]
    """Start one that needs no loudspeaker; gives where its sound will be found."""
    drop: Callable[[Job], bool]
    """Have one of these end at once that nobody has begun; False where somebody has."""
    apply: Callable[[Settings], None]
    """Make settings effective, and report them."""
    voices: Callable[[], Sequence[VoiceInfo]]
    lexica: Lexica
    """Answers what is asked of lexica."""
    adapt: Callable[[StreamQuality], Sequence[str]] = lambda _: ()
    """Adapt what is being encoded; gives the ids."""
    check: Callable[[Speak], None] = lambda _: None
    """PayloadError where there is no way out for a command."""
    describe: Callable[[Speak], str | None] = lambda _: None
    """Give the SDP of a command's sound."""


class Speaker:
    """Takes one message after another; every accepted command ends in exactly one final event."""

    def __init__(
        self,
        bounds: Bounds,
        journal: Journal,
        output: str,
        hands: Hands,
        chimes: Chimes = NO_CHIMES,
        styles: Mapping[str, Style] | None = None,
    ) -> None:
        """`styles`: those of the configuration."""
        self._bounds = bounds
        self._chimes = chimes
        self._hands = hands
        self._journal = journal
        self._ledger = Ledger(journal, hands.publish)
        self._playback = Playback(
            SpeakQueue(bounds.queue, bounds.queue_bytes),
            self._ledger,
            output=output,
            begin=hands.begin,
            cut=hands.cut,
            hold=Hold(bounds.lost_wait_s),
        )
        self._renders = Renders(self._ledger, bounds.renders, hands.render, hands.drop)
        self._controls = Controls(
            self._playback,
            self._renders,
            journal,
            apply=hands.apply,
            voices=hands.voices,
            lexica=hands.lexica,
            adapt=hands.adapt,
        )
        self._rates = RateLimiter(bounds.rate_per_s, bounds.burst)
        self._arrivals = count(1)
        self._session_styles = SessionStyles(styles or {})
        self._stopped = False
        self._condition = Condition()

    @property
    def condition(self) -> Condition:
        """How things are, for the status."""
        return replace(self._condition, journal_problem=self._journal.problem)

    @property
    def settings(self) -> Settings:
        """What may change while it runs, as it is now."""
        return self._controls.settings

    @property
    def load(self) -> tuple[bool, int, int]:
        """Whether it speaks, how many wait for that, and how many are being rendered or wait for that."""
        return self._playback.current is not None, len(self._playback.queue), len(self._renders)

    @property
    def next_deadline(self) -> float:
        """When a `Tick` is wanted, in seconds of `time.monotonic`; infinite where none is."""
        parts = (self._playback, self._renders, self._controls)
        return min(self._journal.due, *(part.next_deadline for part in parts))

    @property
    def busy(self) -> int:
        """Give for how many commands that somebody waits for or listens to there is something to be computed."""
        return self._playback.busy + self._renders.live

    @property
    def wanted_mode(self) -> Mode | None:
        """The mode that somebody has asked for, for now."""
        return self._controls.wanted_mode

    def rest(self, rest_s: float) -> None:
        """Have so much silence between two utterances from now on, but before what is critical."""
        self._playback.rest_s = rest_s

    def recover(self, at: Clock) -> None:
        """Settle what a crash left, before the first message."""
        now = at.monotonic
        for entry, age_s in self._ledger.after_crash(at, self._bounds.speak_after_restart_s):
            command = entry.command
            deadline, extra_s = _deadline(command, now - age_s), self._chimes.length_s(command)
            waiting = Waiting(command, now - age_s, next(self._arrivals), entry.origin, deadline, extra_s=extra_s)
            self._playback.queue.put(waiting)
        self._playback.next(now)

    def slept(self, for_s: float, at: Clock) -> None:
        """Take note that the machine was suspended for so long, before the first message after that."""
        self._controls.slept(for_s)
        self._playback.slept(for_s, at.monotonic)
        self._renders.slept(for_s)

    def handle(self, message: Inbox, at: Clock) -> None:
        """Make one transition at this time. Messages that concern nobody here are passed over."""
        now = at.monotonic
        self._look_at_the_disk(at)
        self._playback.wake(now)
        self._renders.expire(now)
        self._controls.expire(now)
        match message:
            case SpeakReceived():
                self._receive(message, at)
            case ControlReceived(command, origin):
                self._answer(command, origin, now)
            case PayloadRefused(error, origin):
                self._ledger.reject(error, origin)
            case PlaybackStarted():
                self._playback.started(message)
            case WordReached() | MarkReached():
                self._playback.reached(message)
            case SynthesisEnded():
                self._playback.synthesized(message)
            case PlaybackEnded():
                self._playback.ended(message, now)
            case RenderStarted():
                self._renders.started(message)
            case RenderEnded():
                self._renders.ended(message)
            case Told(command_id):
                self._journal.told(command_id)
            case Stop():
                self._stopped = True
                self._playback.stop()
                self._renders.stop()
            case _:
                self._note(message, now)

    def _look_at_the_disk(self, at: Clock) -> None:
        self._journal.recover()
        if self._journal.has_found():  # of an earlier run, amid this one: too late to be spoken, but not to be told
            self._ledger.after_crash(at, speak_within_s=-1.0)

    def _note(self, message: Inbox, now: float) -> None:
        """Take note of how things are."""
        condition = self._condition
        match message:
            case AudioState(problem):
                if problem != condition.audio_problem:
                    _LOG.warning("the output is %s", problem or "there again")
                self._condition = replace(condition, audio_problem=problem)
                self._playback.output_is(problem, now)
            case Tick():
                self._playback.next(now)
            case Subscribed(problem):
                if problem:
                    _LOG.error("the broker refuses the subscription, so no command will come: %s", problem)
                self._condition = replace(condition, commands_problem=problem)
            case Disconnected(problem):
                self._condition = replace(condition, connection_problem=problem or condition.connection_problem)
            case Steady():
                self._condition = replace(condition, connection_problem="")
            case ModeChanged(decision):
                self._condition = replace(condition, mode=decision.mode, mode_reason=decision.reason)
            case ModeApplied(applied):
                self._condition = replace(condition, power_problem="; ".join(applied.refused))
            case RealtimeAnswer(what, answer):
                self._condition = replace(condition, realtime={**condition.realtime, what: answer})
            case _:
                pass

    def _receive(self, message: SpeakReceived, at: Clock) -> None:
        """Accept a command, or say why not; one that is known already is answered again, and spoken once."""
        try:
            self._accept(message, at)
        except PayloadError as error:
            self._ledger.reject(error, message.origin)

    def _answer(self, command: Control, origin: Origin, now: float) -> None:
        """Carry a command out, or say why not."""
        try:
            self._ledger.tell(self._controls.answer(command, now), origin)
        except PayloadError as error:
            self._ledger.reject(error, origin)

    def _accept(self, message: SpeakReceived, at: Clock) -> None:
        command, now = message.command, at.monotonic
        if self._ledger.is_open(command.id):
            known = self._playback.find(command.id)
            self._tell_accepted(known, message.origin, now) if known else self._tell_ahead(command.id, message.origin)
            return
        if (ended := self._ledger.known(command.id)) is not None:
            self._ledger.tell(ended, message.origin)
            return
        if self._stopped:
            raise PayloadError("stopped", "the daemon is about to end", command.id)
        if not self._rates.allows(command.session or message.origin.reply_to, now):
            raise PayloadError(
                "rate", f"more than {self._bounds.rate_per_s:g} commands a second from one sender", command.id
            )
        self._hands.check(command)
        settled = self._chimes.settled(self._settled(command))
        waiting = Waiting(
            settled,
            message.at,
            next(self._arrivals),
            message.origin,
            _deadline(command, message.at),
            clip=message.clip,
            take=message.take,
            extra_s=self._chimes.length_s(settled) + (0.0 if message.clip is None else seconds(message.clip.size)),
        )
        (self._renders if command.output != "speaker" else self._playback).check(waiting)
        self._ledger.accept(waiting, at)
        if command.output != "speaker":
            self._tell_ahead(command.id, message.origin, len(self._renders), self._hands.describe(command))
            self._renders.submit(waiting)
        else:
            self._playback.submit(waiting, now, lambda: self._tell_accepted(waiting, message.origin, now))

    def _settled(self, command: Speak) -> Speak:
        """Fill in what the settings say: a change of theirs shall not reach a command that is under way."""
        command = self._session_styles.settle(command)
        settings = self.settings
        rate = min(max(command.rate * settings.rate, SMALLEST_RATE), LARGEST_RATE)
        voice = command.voice or ("" if command.language else settings.voice)
        return command.model_copy(update={"rate": rate, "voice": voice})

    def _tell_accepted(self, waiting: Waiting, origin: Origin, now: float) -> None:
        ahead, starts_in_s = self._playback.place(waiting, now)
        self._ledger.tell(Accepted(id=waiting.id, ahead=ahead, starts_in_s=starts_in_s), origin)

    def _tell_ahead(self, command_id: str, origin: Origin, ahead: int = 0, sdp: str | None = None) -> None:
        self._ledger.tell(Accepted(id=command_id, ahead=ahead, sdp=sdp), origin)


def _deadline(command: Speak, received_at: float) -> float:
    return math.inf if command.expires_s is None else received_at + command.expires_s

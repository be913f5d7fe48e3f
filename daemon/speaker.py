"""The one owner of state: what waits, what speaks, and which event is due. No thread, no clock, no I/O of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from daemon.errors import DaemonError, PayloadError, StoppedError
from daemon.events import Accepted, Event, Failed, Finished, Rejected, Started, Synthesized, milliseconds, utc_of
from daemon.inbox import (
    AudioState,
    Inbox,
    PayloadRefused,
    PlaybackEnded,
    PlaybackStarted,
    RealtimeAnswer,
    SpeakReceived,
    Stop,
    Subscribed,
    SynthesisEnded,
)
from daemon.queue import SpeakQueue, Waiting
from device.errors import DeviceError, SinkError
from engines.errors import (
    PhonemizerClosedError,
    PhonemizerDiedError,
    PhonemizerTimeoutError,
    PhonemizerUnavailableError,
    SpeakerError,
    SpeechError,
    UnknownEspeakVoiceError,
    VoiceError,
)

_LOG = logging.getLogger(__name__)

_CODES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (StoppedError, "stopped"),
    (SinkError, "audio"),
    (SpeakerError, "speaker"),
    (VoiceError, "voice"),
    (PhonemizerDiedError, "phonemizer"),
    (PhonemizerTimeoutError, "phonemizer"),
    (PhonemizerUnavailableError, "phonemizer"),
    (PhonemizerClosedError, "stopped"),
    (UnknownEspeakVoiceError, "voice"),
    (SpeechError, "synthesis"),
    (DeviceError, "audio"),
    (DaemonError, "internal"),
)


@dataclass(frozen=True, slots=True)
class Condition:
    """How things are, whatever is being said."""

    audio_problem: str = ""
    """Why the output takes no sound; empty while it does."""
    commands_problem: str = ""
    """Why no command comes; empty while they may."""
    realtime: Mapping[str, str] = field(default_factory=dict)
    """What was asked of the system, and its answers."""


class Speaker:
    """Takes one message after another; every accepted command ends in exactly one `Finished` or `Failed`."""

    def __init__(
        self, *, queue_capacity: int, output: str, publish: Callable[[Event], None], begin: Callable[[Waiting], None]
    ) -> None:
        """`publish` sends an event, `begin` starts an utterance; both must return at once."""
        self._queue = SpeakQueue(queue_capacity)
        self._output = output
        self._publish = publish
        self._begin = begin
        self._current: Waiting | None = None
        self._started: Started | None = None
        self._synthesis: SynthesisEnded | None = None
        self._stopped = False
        self.condition = Condition()
        """For the status; replaced as a whole with every change."""

    def handle(self, message: Inbox) -> None:
        """Make one transition. Messages that concern nobody here are passed over."""
        match message:
            case SpeakReceived():
                self._accept(message)
            case PayloadRefused():
                self._reject(message.error)
            case PlaybackStarted():
                self._start(message)
            case SynthesisEnded():
                self._synthesized(message)
            case PlaybackEnded():
                self._end(message)
            case AudioState():
                self.condition = replace(self.condition, audio_problem=message.problem)
            case Subscribed():
                if message.problem:
                    _LOG.error("the broker refuses the subscription, so no command will come: %s", message.problem)
                self.condition = replace(self.condition, commands_problem=message.problem)
            case RealtimeAnswer():
                answers = {**self.condition.realtime, message.what: message.answer}
                self.condition = replace(self.condition, realtime=answers)
            case Stop():
                self._stop()

    def _accept(self, message: SpeakReceived) -> None:
        command = message.command
        known = self._ahead_of(command.id)
        if known is not None:  # the sender or the broker sent it again: it is answered again, and spoken once
            self._publish(Accepted(id=command.id, ahead=known))
            return
        if self._stopped:
            self._reject(PayloadError("stopped", "the daemon is about to end", command.id))
            return
        try:
            ahead = self._queue.put(command, message.at)
        except PayloadError as error:
            self._reject(error)
            return
        self._publish(Accepted(id=command.id, ahead=ahead + (self._current is not None)))
        self._next()

    def _ahead_of(self, command_id: str) -> int | None:
        """Give how many will speak before the command of this id; None where it neither speaks nor waits."""
        if self._current is not None and self._current.command.id == command_id:
            return 0
        place = self._queue.place(command_id)
        return None if place is None else place + (self._current is not None)

    def _reject(self, error: PayloadError) -> None:
        _LOG.warning("rejected a command: %s", error.reason)
        self._publish(Rejected(id=error.command_id, code=error.code, reason=error.reason))

    def _start(self, message: PlaybackStarted) -> None:
        if self._current is None or self._current.command.id != message.id:
            return
        ttfa_ms = milliseconds(message.at - self._current.received_at)
        self._started = Started(id=message.id, time=utc_of(message.at), ttfa_ms=ttfa_ms, output=self._output)
        self._publish(self._started)
        self._publish_synthesized()

    def _synthesized(self, message: SynthesisEnded) -> None:
        if self._current is not None and self._current.command.id == message.id:
            self._synthesis = message
            self._publish_synthesized()

    def _publish_synthesized(self) -> None:
        """Tell it after `Started`, whichever came first: a short text is synthesized before it is heard."""
        done = self._synthesis
        if done is None or self._started is None:
            return
        self._synthesis = None
        self._publish(
            Synthesized(
                id=done.id,
                audio_s=round(done.audio_s, 3),
                compute_ms=milliseconds(done.compute_s),
                rtf=None if done.rtf is None else round(done.rtf, 3),
                first_ms=None if done.first_s is None else milliseconds(done.first_s),
                cached=done.cached,
                voice=done.voice,
                backend=done.backend,
                precision=done.precision,
            )
        )

    def _end(self, message: PlaybackEnded) -> None:
        current = self._current
        if current is None or current.command.id != message.id:
            return
        if message.error is None:
            total_ms = milliseconds(message.at - current.received_at)
            audio_s = round(message.audio_s, 3)
            self._publish(Finished(id=message.id, time=utc_of(message.at), audio_s=audio_s, total_ms=total_ms))
        else:
            self._fail(current, message.error)
        self._clear()
        self._next()

    def _fail(self, waiting: Waiting, error: Exception) -> None:
        code = next((code for kind, code in _CODES if isinstance(error, kind)), "internal")
        _LOG.warning("command %s failed: %s", waiting.command.id, error)
        self._publish(Failed(id=waiting.command.id, code=code, reason=str(error)))

    def _stop(self) -> None:
        self._stopped = True
        if self._current is not None:
            self._fail(self._current, StoppedError())
            self._clear()
        while (waiting := self._queue.pop()) is not None:
            self._fail(waiting, StoppedError())

    def _clear(self) -> None:
        self._current = self._started = self._synthesis = None

    def _next(self) -> None:
        if self._current is None and (waiting := self._queue.pop()) is not None:
            self._current = waiting
            self._begin(waiting)

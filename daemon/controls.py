"""Every command but `speak`: carried out at once, and answered."""

from __future__ import annotations

import hashlib
import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Final

from daemon.commands import (
    Cancel,
    ConfigSet,
    Control,
    LexiconGet,
    LexiconSet,
    ModeSet,
    MuteSet,
    Pause,
    Ping,
    QueueGet,
    Resume,
    Skip,
    StreamQuality,
    VoiceSet,
    VoicesGet,
    VolumeSet,
)
from daemon.errors import PayloadError
from daemon.events import Answer, Done, Pong, QueuedCommand, QueueState, Settings, VoiceInfo, Voices
from daemon.journal import Journal
from daemon.lexica import Lexica
from daemon.playback import Playback
from daemon.queue import Waiting
from daemon.renders import Renders
from engines.errors import VoiceError
from power.mode import Mode

_LOG = logging.getLogger(__name__)

_FACT: Final = "settings"

_EXCERPT: Final = 100
"""Characters of a text by which people know which it is."""

_REMEMBERED: Final = 1000
"""Requests whose answers are remembered: the broker sends again what it had not seen acknowledged."""


class Controls:
    """Owns the settings. For the speaker's thread."""

    def __init__(
        self,
        playback: Playback,
        renders: Renders,
        journal: Journal,
        *,
        apply: Callable[[Settings], None],
        voices: Callable[[], Sequence[VoiceInfo]],
        lexica: Lexica,
        adapt: Callable[[StreamQuality], Sequence[str]],
    ) -> None:
        """`apply` makes settings effective and reports them; `voices` lists those that are imported.

        `adapt` tells encoders what to do, and gives the ids of the commands that they are at.
        """
        self._adapt = adapt
        self._playback = playback
        self._renders = renders
        self._journal = journal
        self._apply = apply
        self._voices = voices
        self._lexica = lexica
        self.settings = _recalled(journal)
        self._mode_until = math.inf
        self._answers: OrderedDict[str, tuple[bytes, Answer]] = OrderedDict()
        """By request: a digest of the command, which itself may take a megabyte, and what it was answered."""

    def answer(self, command: Control, now: float) -> Answer:
        """Carry a command out; one that comes again, the same by the same `request`, is answered again only.

        A question is asked anew, whatever it is called: its answer is out of date soon. PayloadError `voice` for a
        voice that is not there, or where nobody can tell.
        """
        if isinstance(command, QueueGet | VoicesGet | LexiconGet | Ping):
            return self._carry_out(command, now)
        digest = hashlib.sha256(repr(command).encode()).digest()
        known, answer = self._answers.pop(command.request, (b"", None))
        if known != digest or answer is None:
            answer = self._carry_out(command, now)
        self._answers[command.request] = digest, answer
        if len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)
        return answer

    def _carry_out(self, command: Control, now: float) -> Answer:
        answer: Answer
        playback = self._playback
        match command:
            case Cancel():
                answer = self._done(command, "cancel", self._cancel(command, now))
            case Pause():
                answer = self._paused(command, "pause", playback.pause(command.request))
            case Resume():
                answer = self._paused(command, "resume", playback.resume(command.repeat_sentences, now))
            case Skip():
                answer = self._done(command, "skip", playback.skip(command.request, now))
            case VolumeSet() | MuteSet() | VoiceSet() | ConfigSet():
                answer = self._change(command)
            case ModeSet():
                answer = self._set_mode(command, now)
            case StreamQuality():
                answer = self._done(command, "stream/quality", self._adapt(command))
            case LexiconSet() | LexiconGet():
                answer = self._lexica.answer(command)
            case QueueGet() | VoicesGet() | Ping():
                answer = self._told(command)
        return answer

    def _told(self, command: QueueGet | VoicesGet | Ping) -> Answer:
        match command:
            case QueueGet():
                return self._queue(command)
            case VoicesGet():
                return Voices(request=command.request, voices=self._imported(command.request))
            case Ping():
                return Pong(request=command.request)

    def _cancel(self, command: Cancel, now: float) -> list[str]:
        def wanted(waiting: Waiting) -> bool:
            speak = waiting.command
            return (
                command.all is True
                or (command.id is not None and command.id == speak.id)
                or (command.session is not None and command.session == speak.session)
                or (command.supersede is not None and command.supersede == speak.supersede)
            )

        ids = self._playback.cancel(wanted, command.request, now)
        return ids + self._renders.cancel(wanted, command.request)

    def _done(self, command: Control, name: str, affected: Sequence[str] | None = None) -> Done:
        return Done(request=command.request, command=name, affected=None if affected is None else tuple(affected))

    def _paused(self, command: Control, name: str, affected: Sequence[str]) -> Done:
        self._replace(paused=self._playback.paused)
        return self._done(command, name, affected)

    def _change(self, command: VolumeSet | MuteSet | VoiceSet | ConfigSet) -> Done:
        if isinstance(command, VoiceSet | ConfigSet) and command.voice:
            self._check(command.voice, command.request)
        match command:
            case VolumeSet():
                return self._set(command, "volume/set", volume=command.volume)
            case MuteSet():
                return self._set(command, "mute/set", muted=command.muted)
            case VoiceSet():
                return self._set(command, "voice/set", voice=command.voice)
        wanted = command.model_dump(exclude={"request", "reply_to", "version"})
        return self._set(command, "config/set", version=command.version, **wanted)

    def _imported(self, request: str) -> tuple[VoiceInfo, ...]:
        """Give the voices that are there. PayloadError `voice` where their folder cannot be read just now."""
        try:
            return tuple(self._voices())
        except VoiceError as error:
            raise PayloadError("voice", str(error), request) from error

    def _check(self, voice: str, request: str) -> None:
        """Refuse a voice with which every command from now on would fail."""
        there = [info.name for info in self._imported(request)]
        if voice not in there:
            raise PayloadError("voice", f"{voice} is not among the voices here ({', '.join(there) or 'none'})", request)

    def _set(self, command: Control, name: str, *, version: int | None = None, **wanted: object) -> Done:
        given = {key: value for key, value in wanted.items() if value is not None}
        self._replace(version=self.settings.version + 1 if version is None else version, **given)
        self._journal.remember(_FACT, self.settings.to_json())
        return self._done(command, name)

    @property
    def next_deadline(self) -> float:
        """When a mode that was asked for ends, in seconds of `time.monotonic`; infinite where none was."""
        return self._mode_until

    @property
    def wanted_mode(self) -> Mode | None:
        """The mode that was asked for; None: as the governor sees fit."""
        mode = self.settings.mode
        return None if mode == "auto" else Mode(mode)

    def slept(self, for_s: float) -> None:
        """Take note that the clock stood still for so long."""
        self._mode_until -= for_s

    def expire(self, now: float) -> None:
        """End a mode that was asked for until now."""
        if now >= self._mode_until:
            self._mode_until = math.inf
            self._replace(mode="auto", mode_until=None)

    def _set_mode(self, command: ModeSet, now: float) -> Done:
        is_auto = command.mode == "auto"
        self._mode_until = math.inf if is_auto else now + command.for_s
        until = None if is_auto else datetime.now(timezone.utc) + timedelta(seconds=command.for_s)
        self._replace(version=self.settings.version + 1, mode=command.mode, mode_until=until)
        return self._done(command, "mode/set")

    def _replace(self, **changes: object) -> None:
        self.settings = self.settings.model_copy(update=changes)
        self._apply(self.settings)

    def _queue(self, command: Control) -> QueueState:
        playback = self._playback
        commands = [_queued(playback.current, "speaking")] if playback.current is not None else []
        interrupted = playback.interrupted
        commands += [_queued(waiting, "interrupted") for waiting in interrupted]
        commands += [_queued(waiting, "waiting") for waiting in playback.queue if not waiting.begun]
        commands += [_queued(waiting, "rendering") for waiting in self._renders]
        return QueueState(request=command.request, paused=playback.paused, commands=tuple(commands))


def _queued(waiting: Waiting, state: str) -> QueuedCommand:
    command = waiting.command
    return QueuedCommand.model_validate(
        {
            "id": command.id,
            "state": state,
            "priority": command.priority.value,
            "session": command.session,
            "chars": len(command.written),
            "text": command.written[:_EXCERPT],
        }
    )


def _recalled(journal: Journal) -> Settings:
    """Give the settings as they were before the restart. What speaks after one is not paused, its mode is nobody's."""
    kept = journal.recall(_FACT)
    anew = {"paused": False, "mode": "auto", "mode_until": None}
    try:
        return Settings() if kept is None else Settings.model_validate_json(kept).model_copy(update=anew)
    except ValueError as error:
        _LOG.warning("the settings of before cannot be read, so all are as configured: %s", error)
        return Settings()

"""Accepted commands, each from its acceptance to its one end: written down first, then told."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Final

from daemon.clock import Clock
from daemon.errors import (
    DaemonError,
    InterruptedByCrashError,
    PayloadError,
    StoppedError,
    StreamLostError,
)
from daemon.events import Event, Expired, Failed, FinalEvent, Known, Rejected
from daemon.inbox import Origin
from daemon.journal import Journal
from daemon.journal_rows import Entry
from daemon.queue import Waiting
from device.errors import DeviceError, SinkError
from engines.errors import (
    PhonemizerClosedError,
    PhonemizerDiedError,
    PhonemizerTimeoutError,
    PhonemizerUnavailableError,
    SpeakerError,
    SpeechError,
    SsmlError,
    StyleError,
    UnknownEspeakVoiceError,
    VoiceError,
)

_LOG = logging.getLogger(__name__)

_CODES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (StoppedError, "stopped"),
    (InterruptedByCrashError, "interrupted"),
    (SinkError, "audio"),
    (StreamLostError, "audio"),
    (SpeakerError, "speaker"),
    (StyleError, "style"),
    (VoiceError, "voice"),
    (SsmlError, "ssml"),
    (PhonemizerDiedError, "phonemizer"),
    (PhonemizerTimeoutError, "phonemizer"),
    (PhonemizerUnavailableError, "phonemizer"),
    (PhonemizerClosedError, "stopped"),
    (UnknownEspeakVoiceError, "voice"),
    (SpeechError, "synthesis"),
    (DeviceError, "audio"),
    (DaemonError, "internal"),
)


class Ledger:
    """Knows which commands are open. For the speaker's thread."""

    def __init__(self, journal: Journal, publish: Callable[[Event, Origin], None]) -> None:
        self._journal = journal
        self._publish = publish
        self._open: set[str] = set()

    def known(self, command_id: str) -> Known | None:
        """Give the answer to an id that has ended already; None where it is not known, or still open."""
        final = self._journal.final(command_id)
        try:
            return None if final is None else Known(id=command_id, final=json.loads(final))
        except ValueError as error:  # a bit that the disk has lost
            _LOG.error("how command %s ended makes no sense: %s", command_id, error)
            return None

    def is_open(self, command_id: str) -> bool:
        """Tell whether this command was accepted and has no end yet."""
        return command_id in self._open

    def accept(self, waiting: Waiting, at: Clock) -> None:
        """Write an acceptance down."""
        self._journal.accept(waiting.command, waiting.origin, at)
        self._open.add(waiting.id)

    def begin(self, waiting: Waiting) -> None:
        """Write down that a command may be heard from now on."""
        self._journal.begin(waiting.id)

    def tell(self, event: Event, origin: Origin) -> None:
        """Tell something that ends nothing."""
        self._publish(event, origin)

    def reject(self, error: PayloadError, origin: Origin) -> None:
        """Tell that something was not accepted."""
        _LOG.warning("rejected a command: %s", error.reason)
        self._publish(Rejected(id=error.command_id, code=error.code, reason=error.reason), origin)

    def end(self, waiting: Waiting, event: FinalEvent) -> None:
        """Write down how a command ended, and tell it. A command that has ended stays as it was."""
        if waiting.id not in self._open:
            return
        self._open.discard(waiting.id)
        self._journal.end(waiting.id, event.to_json())
        self._publish(event, waiting.origin)

    def fail(self, waiting: Waiting, error: Exception) -> None:
        """End a command by an error."""
        code = next((code for kind, code in _CODES if isinstance(error, kind)), "internal")
        fields = {"command": waiting.id, "session": waiting.command.session, "stage": code}
        _LOG.warning("command %s failed: %s", waiting.id, error, extra=fields)
        self.end(waiting, Failed(id=waiting.id, code=code, reason=str(error)))

    def expire(self, waiting: Waiting, now: float) -> None:
        """End a command that was not begun in time."""
        self.end(waiting, Expired(id=waiting.id, waited_s=round(now - waiting.received_at, 3)))

    def after_crash(self, at: Clock, speak_within_s: float) -> list[tuple[Entry, float]]:
        """Settle what a crash left, and not what is open here: gives what may still be spoken, with its age in seconds.

        Of it nothing was heard, it is not expired, and it was accepted within the last `speak_within_s`. All else ends
        here and now: as expired, or as failed with code `interrupted`.
        """
        still: list[tuple[Entry, float]] = []
        for entry in self._journal.open_entries():
            age_s = at.age_s(entry.accepted)
            command = entry.command
            if command.id in self._open:
                continue
            waiting = Waiting(command, at.monotonic - (age_s or 0.0), origin=entry.origin)
            self._open.add(command.id)
            if entry.begun or command.output != "speaker" or not command.written:  # a clip is gone
                self.fail(waiting, InterruptedByCrashError("while it was being spoken"))
            elif age_s is not None and command.expires_s is not None and age_s >= command.expires_s:
                self.expire(waiting, at.monotonic)
            elif age_s is None or age_s > speak_within_s:
                self.fail(waiting, InterruptedByCrashError("before it was spoken, and it is too late now"))
            else:
                still.append((entry, age_s))
        return still

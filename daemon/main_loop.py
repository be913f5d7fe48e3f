"""The main loop: one message after another, to the speaker and to whom else it concerns."""

from __future__ import annotations

import contextlib
import logging
import math
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass

from daemon.clock import Clock
from daemon.commands import ModeSet
from daemon.errors import PayloadError
from daemon.events import Status
from daemon.governing import Governing
from daemon.inbox import (
    AudioPage,
    BridgeTurn,
    Connected,
    ControlReceived,
    Disconnected,
    Inbox,
    PayloadRefused,
    ProtocolRefused,
    Published,
    RenderEnded,
    SpeakReceived,
    Steady,
    Stop,
    Subscribed,
    ThreadDied,
    Tick,
    Told,
)
from daemon.journal import Journal
from daemon.link import Link
from daemon.service import Service
from daemon.supervision import Supervision
from daemon.suspension import Suspension
from daemon.telemetry import Desk

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """Who is served. All of them belong to the main thread."""

    service: Service
    link: Link
    journal: Journal
    desk: Desk
    supervision: Supervision
    governing: Governing | None
    status: Callable[[], Status]
    """How things are now."""


class MainLoop:
    """Serves until told to stop."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._speaker = parts.service.speaker
        self._link = parts.link
        self._suspension = Suspension()

    def serve(self) -> int:
        """Serve; gives the exit status."""
        parts = self._parts
        while True:
            parts.desk.tend(time.monotonic())
            message = self._next()
            self._catch_up()
            match message:
                case Stop(reason):
                    _LOG.info("stopping: %s", reason)
                    return 0
                case ThreadDied(name, error):
                    _LOG.error("the %s thread died", name, exc_info=error)
                    return 1
                case BridgeTurn(act):
                    act()
                case ProtocolRefused():
                    self._link.try_other_protocol()
                case Connected(protocol):
                    _LOG.info("connected, %s", protocol)
                    self._link.subscribe()
                case Published(number):
                    self._note_told(number)
                case AudioPage() as page:
                    self._publish(page)
                case RenderEnded() as rendered:
                    self._complete(rendered)
                case _:
                    self._take(message)

    def _catch_up(self) -> None:
        """Where the machine was suspended, tell those who wait by a clock that stood still; before what is too late."""
        if slept_s := self._suspension.slept_s():
            _LOG.info("the machine was suspended for %.0f s", slept_s)
            self._speaker.slept(slept_s, Clock.now())
            self._parts.service.slept()
            self._link.slept(slept_s)

    def _note_told(self, number: int) -> None:
        """Take note of what the broker has."""
        if (command_id := self._link.told(number)) is not None:
            self._speaker.handle(Told(command_id), Clock.now())

    def _publish(self, page: AudioPage) -> None:
        """Send a piece of a stream."""
        if not self._link.publish_audio(page):
            self._parts.service.outputs.lose(page)

    def _complete(self, rendered: RenderEnded) -> None:
        """Let the speaker know of what is rendered, once it is where it should be."""
        if (ended := self._parts.service.outputs.end(rendered)) is not None:
            self._take(ended)

    def _next(self) -> Inbox:
        """Wait for a message, or until something that waits may have expired."""
        parts = self._parts
        parts.supervision.check(time.monotonic())
        deadline = min(self._speaker.next_deadline, self._link.steady_at, parts.supervision.due, parts.desk.next_at)
        try:
            return parts.service.inbox.get(
                timeout=None if math.isinf(deadline) else max(0.0, deadline - time.monotonic())
            )
        except queue.Empty:
            if time.monotonic() < self._link.steady_at:
                return Tick()
            self._link.steady_at = math.inf
            return Steady()

    def _take(self, message: Inbox) -> None:
        """Let the speaker handle a message, and publish the status where it has changed."""
        parts = self._parts
        if parts.governing is None and isinstance(message, ControlReceived) and isinstance(message.command, ModeSet):
            message = _refusal(message)
        before, at = self._speaker.condition, Clock.now()
        parts.desk.take(message, at.monotonic)
        if parts.governing is not None:
            parts.governing.before(message, at)
        self._speaker.handle(message, at)
        if parts.governing is not None:
            parts.governing.after(message, at)
        if isinstance(message, SpeakReceived | ControlReceived | PayloadRefused):
            message.acknowledge()
        if isinstance(message, Subscribed | Disconnected):
            self._link.listens(now=isinstance(message, Subscribed))
        if isinstance(message, Subscribed):
            self._link.publish_settings(self._speaker.settings)
        disk_is_back = bool(before.journal_problem) and not self._speaker.condition.journal_problem
        if isinstance(message, Subscribed) or disk_is_back:  # it may have had ends of an earlier run
            self._link.publish_untold(parts.journal.untold())
        if isinstance(message, Subscribed) or self._speaker.condition != before:
            status = parts.status()
            self._link.publish_status(status)
            parts.supervision.tell(status)


def _refusal(asked: ControlReceived) -> PayloadRefused:
    """Say that nobody would follow a mode."""
    error = PayloadError("topic", "the governor is turned off: see power.enabled", asked.command.request)
    return PayloadRefused(error, asked.origin, asked.acknowledge)


def settle_rest(service: Service, link: Link | None) -> None:
    """Answer the commands that came while we were about to end, and note what the broker has taken."""
    with contextlib.suppress(queue.Empty):
        while True:
            message = service.inbox.get_nowait()
            if isinstance(message, SpeakReceived | ControlReceived | PayloadRefused):
                service.speaker.handle(message, Clock.now())
                message.acknowledge()
            elif isinstance(message, Published) and link and (command_id := link.told(message.number)) is not None:
                service.speaker.handle(Told(command_id), Clock.now())

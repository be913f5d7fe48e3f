"""The composition root: `speakd run` and `speakd say`, each from start to end."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import logging
import math
import queue
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

from daemon.bridges import homeassistant
from daemon.bridges.bridge import Bridge
from daemon.bridges.hermes import Hermes
from daemon.commands import ModeSet, Speak
from daemon.config import CacheConfig, Config, journal_file
from daemon.errors import DaemonError, PayloadError
from daemon.events import Event, Failed, Finished, Rejected, Settings, Status
from daemon.figures import Figures, Vitals
from daemon.governing import Governing, make_governing
from daemon.inbox import (
    AudioPage,
    BridgeTurn,
    Connected,
    ControlReceived,
    Disconnected,
    Inbox,
    Origin,
    PayloadRefused,
    ProtocolRefused,
    Published,
    RealtimeAnswer,
    RenderEnded,
    SpeakReceived,
    Steady,
    Stop,
    Subscribed,
    ThreadDied,
    Tick,
    Told,
)
from daemon.journal import Clock, Journal
from daemon.link import Link
from daemon.self_check import SelfChecks
from daemon.service import Service, make_sink
from daemon.telemetry import Desk, begin_run, end_run, resident_bytes
from daemon.topics import Topics
from device import heap, realtime
from device.sink import Sink
from engines.vits import VitsVoice

_LOG = logging.getLogger(__name__)


def version() -> str:
    """Give the installed version of speakd."""
    return importlib.metadata.version("speakd")


def run(config: Config) -> int:
    """Serve until SIGTERM or SIGINT; gives the exit status, 1 where a thread died.

    JournalError where another speakd has the journal, or the disk takes none.
    """
    sink = make_sink(config)
    link: Link | None = None
    desk: Desk | None = None
    bridges: list[Bridge] = []
    governing: Governing | None = None

    def publish(event: Event, origin: Origin) -> None:
        if desk is not None:
            desk.hear(event, time.monotonic())
        if link is not None:
            link.publish_event(event, origin)
        for bridge in bridges:
            bridge.told(event, origin)

    def report(settings: Settings) -> None:
        if link is not None:
            link.publish_settings(settings)

    precedence = realtime.take_precedence()  # before there are threads, which inherit it
    large_blocks = heap.map_large_blocks()
    with contextlib.closing(Journal(journal_file(config), keep=config.journal.keep)) as journal:
        topics = Topics(config.mqtt.topic_prefix, config.device.name)
        restarts = begin_run(journal)
        service = Service(config, sink, journal, publish=publish, report=report, topic_of=topics.audio)
        _stop_on_signals(service)
        _hear_of_deaths(service)
        try:
            voice = service.start()
            link = Link(config, Status(state="offline", version=version()), service.inbox.put)
            figures = Figures(sink.description, started_at=time.monotonic(), restarts=restarts)
            desk = _make_desk(config, service, link, sink, figures, journal)
            bridges += _make_bridges(config, service, journal, sink, desk)
            service.speaker.recover(Clock.now())
            if config.power.enabled:
                governing = make_governing(
                    config.power, service.speaker, journal, obey=service.obey, post=service.inbox.put
                )
                governing.start()
            link.start()
            for bridge in bridges:
                bridge.start()
            service.inbox.put(RealtimeAnswer("precedence", precedence))
            service.inbox.put(RealtimeAnswer("heap", large_blocks))
            service.inbox.put(RealtimeAnswer("memory", realtime.lock_memory()))
            service.inbox.put(RealtimeAnswer("garbage", realtime.freeze_garbage()))
            _LOG.info("voice %s on %s, sound to %s", voice.info.name, voice.backend, sink.description)
            server = _Server(service, link, journal, desk, governing, lambda: _status(service, voice, sink))
            exit_status = server.serve()
        finally:
            _end(service, link, bridges, governing)
        if exit_status == 0:
            end_run(journal, restarts)
    return exit_status


def _end(service: Service, link: Link | None, bridges: list[Bridge], governing: Governing | None) -> None:
    """Stop what was started, in reverse."""
    service.speaker.handle(Stop(), Clock.now())
    if governing is not None:
        governing.stop()
    _settle_rest(service, link)
    service.stop()
    if governing is not None:
        governing.join()
    _settle_rest(service, link)
    if link is not None:
        link.stop(Status(state="stopped", version=version()))
        _settle_rest(service, link)
    for bridge in bridges:
        bridge.stop()


def _hear_of_deaths(service: Service) -> None:
    """Have the end of paho's own thread told too, which has no one to tell of an exception but this."""
    threading.excepthook = lambda died: service.inbox.put(
        ThreadDied(died.thread.name if died.thread else "unknown", died.exc_value or RuntimeError(str(died.exc_type)))
    )


def _make_bridges(config: Config, service: Service, journal: Journal, sink: Sink, desk: Desk) -> list[Bridge]:
    """Make those that are configured; their protocols are loaded only here."""
    bridges: list[Bridge] = []
    post = service.inbox.put
    left = json.loads(journal.recall(homeassistant.FACT) or "[]")
    if config.homeassistant.enabled or left:
        bridges.append(
            homeassistant.HomeAssistant(
                config,
                post,
                version=version(),
                output=sink.description,
                left=left,
                leave=lambda topics: journal.remember(homeassistant.FACT, json.dumps(topics)),
            )
        )
    if config.hermes.enabled:
        bridges.append(Hermes(config, post))
    if config.wyoming.enabled:
        from daemon.bridges.wyoming import Wyoming  # noqa: PLC0415  loads the package, 30 ms that few need

        bridges.append(Wyoming(config, post, version=version()))
    if config.prometheus.enabled:
        from daemon.bridges.prometheus import Prometheus  # noqa: PLC0415  likewise

        bridges.append(Prometheus(config, lambda: desk.latest))
    return bridges


def _settle_rest(service: Service, link: Link | None) -> None:
    """Answer the commands that came while we were about to end, and note what the broker has taken."""
    with contextlib.suppress(queue.Empty):
        while True:
            message = service.inbox.get_nowait()
            if isinstance(message, SpeakReceived | ControlReceived | PayloadRefused):
                service.speaker.handle(message, Clock.now())
                message.acknowledge()
            elif isinstance(message, Published) and link and (command_id := link.told(message.number)) is not None:
                service.speaker.handle(Told(command_id), Clock.now())


class _Server:
    """The main loop: one message after another, to the speaker and to whom else it concerns."""

    def __init__(
        self,
        service: Service,
        link: Link,
        journal: Journal,
        desk: Desk,
        governing: Governing | None,
        status: Callable[[], Status],
    ) -> None:
        self._service = service
        self._governing = governing
        self._speaker = service.speaker
        self._link = link
        self._journal = journal
        self._desk = desk
        self._status = status

    def serve(self) -> int:
        """Serve until told to stop; gives the exit status."""
        while True:
            self._desk.tend(time.monotonic())
            match self._next():
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
                    if (command_id := self._link.told(number)) is not None:
                        self._speaker.handle(Told(command_id), Clock.now())
                case AudioPage(command_id, topic, page):
                    if not self._link.publish_audio(topic, page):
                        self._service.outputs.lose(command_id)
                case RenderEnded() as ended:
                    self._take(self._service.outputs.end(ended))
                case message:
                    self._take(message)

    def _next(self) -> Inbox:
        """Wait for a message, or until something that waits may have expired."""
        deadline = min(self._speaker.next_deadline, self._link.steady_at, self._desk.next_at)
        try:
            return self._service.inbox.get(
                timeout=None if math.isinf(deadline) else max(0.0, deadline - time.monotonic())
            )
        except queue.Empty:
            if time.monotonic() < self._link.steady_at:
                return Tick()
            self._link.steady_at = math.inf
            return Steady()

    def _take(self, message: Inbox) -> None:
        """Let the speaker handle a message, and publish the status where it has changed."""
        if self._governing is None and isinstance(message, ControlReceived) and isinstance(message.command, ModeSet):
            message = _refusal(message)
        before, at = self._speaker.condition, Clock.now()
        self._desk.take(message, at.monotonic)
        if self._governing is not None:
            self._governing.before(message, at)
        self._speaker.handle(message, at)
        if self._governing is not None:
            self._governing.after(message, at)
        if isinstance(message, SpeakReceived | ControlReceived | PayloadRefused):
            message.acknowledge()
        if isinstance(message, Subscribed | Disconnected):
            self._link.listens(now=isinstance(message, Subscribed))
        if isinstance(message, Subscribed):
            self._link.publish_settings(self._speaker.settings)
            self._link.publish_untold(self._journal.untold())
        if isinstance(message, Subscribed) or self._speaker.condition != before:
            self._link.publish_status(self._status())


def _make_desk(config: Config, service: Service, link: Link, sink: Sink, figures: Figures, journal: Journal) -> Desk:
    def probe() -> Vitals:
        return replace(
            service.vitals(),
            process_bytes=resident_bytes(),
            lost=link.telemetry_lost,
            underruns=getattr(sink, "underruns", None),  # a file has none
            encoder_packets=link.audio_sent,
            encoder_drops=link.audio_lost,
        )

    checks = None
    if config.telemetry.self_check:
        checks = SelfChecks(journal, service.sample, service.verify, service.inbox.put, Clock.now())
    return Desk(
        config.telemetry,
        config.alerts,
        figures,
        probe=probe,
        publish=link.publish_telemetry,
        alert=link.publish_alert,
        checks=checks,
    )


def _refusal(asked: ControlReceived) -> PayloadRefused:
    """Say that nobody would follow a mode."""
    error = PayloadError("topic", "the governor is turned off: see power.enabled", asked.command.request)
    return PayloadRefused(error, asked.origin, asked.acknowledge)


def _status(service: Service, voice: VitsVoice, sink: Sink) -> Status:
    condition = service.speaker.condition
    return Status(
        state="online",
        version=version(),
        voice=voice.info.name,
        backend=voice.backend,
        precision=voice.precision,
        output=sink.description,
        audio=condition.audio_problem or "ok",
        commands=condition.commands_problem or "ok",
        connection=condition.connection_problem or "ok",
        mode=condition.mode.value if condition.mode else None,
        mode_reason=condition.mode_reason or None,
        power=(condition.power_problem or "ok") if condition.mode else None,
        realtime=condition.realtime,
    )


def _stop_on_signals(service: Service) -> None:
    def stop(number: int, _frame: FrameType | None) -> None:
        service.inbox.put(Stop(signal.Signals(number).name))

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def say(config: Config, sink: Sink, command: Speak) -> list[Event]:
    """Speak one command without a broker; gives its events, of which the last is final.

    SpeechError where there is no usable voice; KeyboardInterrupt is passed on once the sound has ended.
    """
    events: list[Event] = []
    once = config.model_copy(update={"cache": CacheConfig(enabled=False)})
    service = Service(once, sink, Journal(None), publish=lambda event, _: events.append(event), report=lambda _: None)
    try:
        service.start()
        service.speaker.handle(SpeakReceived(command, time.monotonic()), Clock.now())
        while not isinstance(events[-1], Finished | Failed | Rejected):
            message = service.inbox.get()
            if isinstance(message, ThreadDied):
                raise DaemonError(f"the {message.name} thread died") from message.error
            service.speaker.handle(message, Clock.now())
    finally:
        service.stop()
    return events

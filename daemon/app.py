"""The composition root: `speakd run` and `speakd say`, each from start to end."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import logging
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

from daemon.bridges import homeassistant
from daemon.bridges.bridge import Bridge
from daemon.bridges.hermes import Hermes
from daemon.clock import Clock
from daemon.commands import Speak
from daemon.config import CacheConfig, Config, journal_file, state_folder
from daemon.disks import Disks, written_folders
from daemon.errors import DaemonError
from daemon.events import Event, Failed, Finished, Rejected, Settings, Status
from daemon.figures import Figures, Vitals
from daemon.governing import Governing, make_governing
from daemon.inbox import Origin, RealtimeAnswer, SpeakReceived, Stop, ThreadDied
from daemon.journal import Journal
from daemon.link import Link
from daemon.main_loop import MainLoop, Parts, settle_rest
from daemon.self_check import SelfChecks
from daemon.service import Service, make_sink
from daemon.supervision import Supervision
from daemon.telemetry import Desk, begin_run, end_run, resident_bytes
from daemon.topics import Topics
from device import heap, realtime
from device.sink import Sink
from engines.voice import Voice

_LOG = logging.getLogger(__name__)

_LONGEST_STANDSTILL_S: Final = 20.0
"""Of a thread: a window takes up to 2 s on a slow board, a voice some seconds to load from a slow card."""


@functools.cache  # each status tells it, and its file takes milliseconds to parse: it holds the whole README
def version() -> str:
    """Give the version of speakd that this process runs."""
    return importlib.metadata.version("speakd")


def run(read_config: Callable[[], Config]) -> int:
    """Serve until SIGTERM or SIGINT; gives the exit status, 1 where a thread died.

    The configuration is read after the pause that follows bad ends: one that cannot be used is such an end, and what
    was mended meanwhile counts. JournalError where another speakd has the journal; what `read_config` raises.
    """
    supervision = Supervision(state_folder(), version())
    supervision.wait()
    config = read_config()
    with contextlib.closing(Journal(journal_file(config), keep=config.journal.keep)) as journal:
        return _Daemon(config, journal, supervision).run()


class _Daemon:
    """All parts, started down and stopped in reverse. For the main thread."""

    def __init__(self, config: Config, journal: Journal, supervision: Supervision) -> None:
        self._config = config
        self._journal = journal
        self._supervision = supervision
        self._sink = make_sink(config)
        self._link: Link | None = None
        self._desk: Desk | None = None
        self._governing: Governing | None = None
        self._bridges: list[Bridge] = []
        # Before there are threads, which inherit it.
        self._answers = {"precedence": realtime.take_precedence(), "heap": heap.map_large_blocks()}
        self._restarts = begin_run(journal)
        self._service = Service(
            config,
            self._sink,
            journal,
            publish=self._publish,
            report=self._report,
            topic_of=Topics(config.mqtt.topic_prefix, config.device.name).audio,
            put_aside=supervision.put_aside,
        )

    def run(self) -> int:
        """Serve; gives the exit status."""
        service = self._service
        _stop_on_signals(service)
        # paho's own thread has no one to tell of an exception but this.
        threading.excepthook = lambda died: service.inbox.put(
            ThreadDied(
                died.thread.name if died.thread else "unknown", died.exc_value or RuntimeError(str(died.exc_type))
            )
        )
        try:
            exit_status = self._start().serve()
        finally:
            self._stop()
        if exit_status == 0:
            end_run(self._journal, self._restarts)
        return exit_status

    def _start(self) -> MainLoop:
        config, service, supervision = self._config, self._service, self._supervision
        voice = service.start()
        supervision.speaks_with(f"{voice.backend} {voice.precision}")
        link = self._link = Link(config, Status(state="offline", version=version()), service.inbox.put)
        figures = Figures(self._sink.description, started_at=time.monotonic(), restarts=self._restarts)
        desk = self._desk = _make_desk(config, service, link, self._sink, figures, self._journal)
        self._bridges += _make_bridges(config, service, self._journal, self._sink, desk)
        service.speaker.recover(Clock.now())
        if config.power.enabled:
            self._governing = make_governing(
                config.power, service.speaker, self._journal, obey=service.obey, post=service.inbox.put
            )
            self._governing.start()
        link.start()
        for bridge in self._bridges:
            bridge.start()
        self._answers |= {"memory": realtime.lock_memory(), "garbage": realtime.freeze_garbage()}
        for what, answer in self._answers.items():
            service.inbox.put(RealtimeAnswer(what, answer))
        _LOG.info("voice %s on %s, sound to %s", voice.info.name, voice.backend, self._sink.description)
        # The phonemizer's answer may rightly take as long as it is configured to.
        limit_s = max(_LONGEST_STANDSTILL_S, config.limits.phonemes_timeout_s + _LONGEST_STANDSTILL_S / 2)
        supervision.ready({**service.pulses, "the connection": link.still_s}, limit_s=limit_s)

        def status() -> Status:
            return _status(service, voice, self._sink, supervision)

        parts = Parts(service, link, self._journal, desk, supervision, self._governing, status)
        return MainLoop(parts)

    def _stop(self) -> None:
        self._supervision.stopping()
        self._service.speaker.handle(Stop(), Clock.now())
        if self._governing is not None:
            self._governing.stop()
        settle_rest(self._service, self._link)
        self._service.stop()
        if self._governing is not None:
            self._governing.join()
        settle_rest(self._service, self._link)
        if self._link is not None:
            self._link.stop(Status(state="stopped", version=version()))
            settle_rest(self._service, self._link)
        for bridge in self._bridges:
            bridge.stop()

    def _publish(self, event: Event, origin: Origin) -> None:
        if self._desk is not None:
            self._desk.hear(event, time.monotonic())
        if self._link is not None:
            self._link.publish_event(event, origin)
        for bridge in self._bridges:
            bridge.told(event, origin)

    def _report(self, settings: Settings) -> None:
        if self._link is not None:
            self._link.publish_settings(settings)


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


def _make_desk(config: Config, service: Service, link: Link, sink: Sink, figures: Figures, journal: Journal) -> Desk:
    disks = Disks(written_folders(config), started_at=time.monotonic(), root=Path(config.power.root))

    def probe() -> Vitals:
        return replace(
            service.vitals(),
            process_bytes=resident_bytes(),
            lost=link.telemetry_lost,
            underruns=sink.underruns,
            encoder_packets=service.outputs.counts.packets,
            encoder_drops=service.outputs.counts.dropped,
            disk=disks.look(time.monotonic(), service.speaker.condition.journal_problem),
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


def _status(service: Service, voice: Voice, sink: Sink, supervision: Supervision) -> Status:
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
        journal=condition.journal_problem or "ok",
        crashes=supervision.problem,
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
    with contextlib.closing(Journal(None)) as journal:
        service = Service(once, sink, journal, publish=lambda event, _: events.append(event), report=lambda _: None)
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

"""The composition root: `speakd run` and `speakd say`, each from start to end."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import queue
import signal
import threading
import time
from types import FrameType

from daemon.config import CacheConfig, Config
from daemon.errors import DaemonError
from daemon.link import Link
from daemon.messages import (
    Connected,
    Disconnected,
    Event,
    Failed,
    Finished,
    Inbox,
    PayloadRefused,
    ProtocolRefused,
    RealtimeAnswer,
    Rejected,
    Speak,
    SpeakReceived,
    Status,
    Stop,
    Subscribed,
    ThreadDied,
)
from daemon.service import Service, make_sink
from device import heap, realtime
from device.sink import Sink
from engines.vits import VitsVoice

_LOG = logging.getLogger(__name__)


def version() -> str:
    """Give the installed version of speakd."""
    return importlib.metadata.version("speakd")


def run(config: Config) -> int:
    """Serve until SIGTERM or SIGINT; gives the exit status, 1 where a thread died."""
    sink = make_sink(config)
    link: Link | None = None

    def publish(event: Event) -> None:
        if link is not None:
            link.publish_event(event)

    precedence = realtime.take_precedence()  # before there are threads, which inherit it
    large_blocks = heap.map_large_blocks()
    service = Service(config, sink, publish)
    _stop_on_signals(service)
    # paho's own thread has no one to tell of an exception but this.
    threading.excepthook = lambda died: service.inbox.put(
        ThreadDied(died.thread.name if died.thread else "unknown", died.exc_value or RuntimeError(str(died.exc_type)))
    )
    try:
        voice = service.start()
        link = Link(config, Status(state="offline", version=version()), service.inbox.put)
        link.start()
        service.inbox.put(RealtimeAnswer("precedence", precedence))
        service.inbox.put(RealtimeAnswer("heap", large_blocks))
        service.inbox.put(RealtimeAnswer("memory", realtime.lock_memory()))
        service.inbox.put(RealtimeAnswer("garbage", realtime.freeze_garbage()))
        _LOG.info("voice %s on %s, sound to %s", voice.info.name, voice.backend, sink.description)
        exit_status = _serve(service, link, voice, sink)
    finally:
        service.speaker.handle(Stop())
        _refuse_rest(service)
        service.stop()
        _refuse_rest(service)
        if link is not None:
            link.stop(Status(state="stopped", version=version()))
    return exit_status


def _refuse_rest(service: Service) -> None:
    """Answer the commands that came while we were about to end."""
    with contextlib.suppress(queue.Empty):
        while True:
            message = service.inbox.get_nowait()
            if isinstance(message, SpeakReceived | PayloadRefused):
                service.speaker.handle(message)


def _serve(service: Service, link: Link, voice: VitsVoice, sink: Sink) -> int:
    while True:
        match service.inbox.get():
            case Stop(reason):
                _LOG.info("stopping: %s", reason)
                return 0
            case ThreadDied(name, error):
                _LOG.error("the %s thread died", name, exc_info=error)
                return 1
            case ProtocolRefused():
                link.try_other_protocol()
            case Connected(protocol):
                _LOG.info("connected, %s", protocol)
                link.subscribe()
            case message:
                _take(message, service, link, voice, sink)


def _take(message: Inbox, service: Service, link: Link, voice: VitsVoice, sink: Sink) -> None:
    """Let the speaker handle a message, and publish the status where it has changed."""
    before = service.speaker.condition
    service.speaker.handle(message)
    if isinstance(message, Subscribed | Disconnected):
        link.listens(now=isinstance(message, Subscribed))
    if isinstance(message, Subscribed) or service.speaker.condition != before:
        link.publish_status(_status(service, voice, sink))


def _status(service: Service, voice: VitsVoice, sink: Sink) -> Status:
    return Status(
        state="online",
        version=version(),
        voice=voice.info.name,
        backend=voice.backend,
        precision=voice.precision,
        output=sink.description,
        audio=service.speaker.condition.audio_problem or "ok",
        commands=service.speaker.condition.commands_problem or "ok",
        realtime=service.speaker.condition.realtime,
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
    service = Service(once, sink, events.append)
    try:
        service.start()
        service.speaker.handle(SpeakReceived(command, time.monotonic()))
        while not isinstance(events[-1], Finished | Failed | Rejected):
            message = service.inbox.get()
            if isinstance(message, ThreadDied):
                raise DaemonError(f"the {message.name} thread died") from message.error
            service.speaker.handle(message)
    finally:
        service.stop()
    return events

"""A text-to-speech server for the Wyoming protocol, by which Home Assistant's voice pipeline speaks.

What it renders are commands as all others, with output `stream`, but for their samples: those go to the client.
"""

from __future__ import annotations

import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import numpy as np

from daemon.bridges.listening import listen
from daemon.bridges.wyoming_conversation import Conversation, RefusedError
from daemon.commands import Cancel, Speak, VoicesGet
from daemon.config import Config
from daemon.errors import ListenerGoneError, StartError
from daemon.events import FINAL, Event, Failed, Finished, Rejected, VoiceInfo, Voices
from daemon.inbox import ControlReceived, Inbox, Origin, RenderStarted, SpeakReceived
from daemon.worker import Worker
from device.format import Samples

_LOG = logging.getLogger(__name__)

_MOST_CLIENTS: Final = 16
"""At a time. Home Assistant opens one for each answer that is spoken."""

_AHEAD: Final = 32
"""Windows of sound that may wait for a client, a minute's worth, 6 MB: Home Assistant takes all there is at once."""

_PATIENCE_S: Final = 5.0
"""For a client to take some of it. A render thread waits meanwhile."""

_ANSWER_S: Final = 10.0
"""For the main thread to answer a question, which it does in milliseconds."""

_FULL_SCALE: Final = 32767

_Item: TypeAlias = bytes | Event


class Wyoming:
    """One of the bridges: listens, and gives each client a thread."""

    def __init__(self, config: Config, post: Callable[[Inbox], None], *, version: str) -> None:
        self._address = (config.wyoming.host, config.wyoming.port)
        self._max_text_chars = config.limits.max_text_chars
        self._version = version
        self._post = post
        self._socket: socket.socket | None = None
        self._requests: dict[str, _Request] = {}
        """By command or question. Each client's thread adds and removes its own, the main thread looks them up."""
        self._clients: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._numbers = 0

    def start(self) -> None:
        """Listen. StartError where the address cannot be had."""
        host, port = self._address
        try:
            listening = self._socket = listen(host, port)
        except OSError as error:
            raise StartError(f"wyoming: {host}:{port} cannot be listened on: {error} (see [wyoming])") from error
        _LOG.info("Wyoming clients are served at %s:%d", host, port)
        _Acceptor(listening, self._welcome, self._post).start()

    def stop(self) -> None:
        """Hang up. Idempotent."""
        listening, self._socket = self._socket, None
        if listening is not None:
            _hang_up(listening)
            listening.close()
        with self._lock:
            for client in self._clients:
                _hang_up(client)

    def told(self, event: Event, _origin: Origin) -> None:
        """Pass an event on to the client that it concerns."""
        number = event.request if isinstance(event, Voices) else getattr(event, "id", None)
        request = self._requests.get(number) if number else None
        if request is not None:
            request.items.put(event)

    def voices(self) -> tuple[VoiceInfo, ...]:
        """Ask for the voices. For a client's thread. RefusedError."""
        question = VoicesGet()
        request = self._requests[question.request] = _Request(question.request, self._post)
        try:
            self._post(ControlReceived(question))
            event = request.items.get(timeout=_ANSWER_S)
        except queue.Empty:
            raise RefusedError("internal", "the daemon does not answer") from None
        finally:
            del self._requests[question.request]
        return event.voices if isinstance(event, Voices) else ()

    def sound(self, command: Speak) -> Iterator[bytes]:
        """Have a text rendered; yields its sound as it comes, 16 bit PCM. For a client's thread. RefusedError.

        Closed before its end it has the command cancelled.
        """
        request = self._requests[command.id] = _Request(command.id, self._post)
        ended = False
        try:
            self._post(SpeakReceived(command, time.monotonic(), take=request.take))
            while not ended:
                item = request.items.get()
                if isinstance(item, bytes):
                    request.room.release()
                    yield item
                elif item.event in FINAL or isinstance(item, Rejected):
                    ended = True
                    _check(item)
        finally:
            request.gone.set()
            del self._requests[command.id]
            if not ended:
                self._post(ControlReceived(Cancel(id=command.id)))

    def _welcome(self, client: socket.socket) -> None:
        """Serve a client that has just come."""
        with self._lock:
            full = len(self._clients) >= _MOST_CLIENTS
            if not full:
                self._clients.add(client)
                self._numbers += 1
        if full:
            _LOG.warning("a Wyoming client was sent away: there are %d already", _MOST_CLIENTS)
            client.close()
            return
        conversation = Conversation(
            client,
            sender=f"wyoming-{self._numbers}",
            sound=self.sound,
            voices=self.voices,
            version=self._version,
            max_text_chars=self._max_text_chars,
        )
        _Client(f"wyoming {self._numbers}", lambda: self._serve(client, conversation), self._post).start()

    def _serve(self, client: socket.socket, conversation: Conversation) -> None:
        try:
            conversation.run()
        finally:
            with self._lock:
                self._clients.discard(client)
            client.close()


def _check(end: Event) -> None:
    """RefusedError where a command has ended without all of its sound."""
    match end:
        case Finished():
            pass
        case Failed(code=code, reason=reason) | Rejected(code=code, reason=reason):
            raise RefusedError(code, reason)
        case _:
            raise RefusedError(end.event, f"it was {end.event}")


class _Request:
    """What comes for one command or question."""

    def __init__(self, number: str, post: Callable[[Inbox], None]) -> None:
        self.items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self.room = threading.Semaphore(_AHEAD)
        self.gone = threading.Event()
        self._number = number
        self._post = post
        self._begun = False

    def take(self, samples: Samples) -> None:
        """Take rendered samples; see `RenderOrder.take`. ListenerGoneError."""
        if not self._begun:
            self._begun = True
            self._post(RenderStarted(self._number, time.monotonic()))
        if self.gone.is_set():
            return  # the command was cancelled, and ends soon
        if not self.room.acquire(timeout=_PATIENCE_S):
            raise ListenerGoneError
        self.items.put(np.rint(np.clip(samples, -1, 1) * _FULL_SCALE).astype("<i2").tobytes())


class _Acceptor(Worker):
    """Waits for clients until the socket is closed."""

    def __init__(
        self, listening: socket.socket, welcome: Callable[[socket.socket], None], post: Callable[[Inbox], None]
    ) -> None:
        super().__init__("wyoming", post)
        self._listening = listening
        self._welcome = welcome

    def work(self) -> None:
        """Accept."""
        while True:
            try:
                client, _ = self._listening.accept()
            except ConnectionAbortedError:
                continue  # it had gone again before its turn
            except OSError as error:
                if self._listening.fileno() >= 0:
                    _LOG.debug("no more Wyoming clients: %s", error)
                return
            self._welcome(client)


class _Client(Worker):
    """A client's thread."""

    def __init__(self, name: str, serve: Callable[[], None], post: Callable[[Inbox], None]) -> None:
        super().__init__(name, post)
        self._serve = serve

    def work(self) -> None:
        """Serve it."""
        self._serve()


def _hang_up(connected: socket.socket) -> None:
    """Wake whoever waits for it."""
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError as error:
        _LOG.debug("already gone: %s", error)

"""Somebody who gives a daemon commands through the broker and sees what it says."""

from __future__ import annotations

import json
import queue
import uuid
from typing import Any, Final

from daemon.config import MqttConfig
from daemon.errors import DaemonError
from daemon.mqtt import Connection
from daemon.mqtt_types import Handlers, Received
from daemon.topics import Topics

_GOODBYE_S: Final = 1.0


class Peer:
    """A client of the broker at `config` that watches one device. For one thread; close it."""

    def __init__(self, config: MqttConfig, device: str) -> None:
        self._topics = Topics(config.topic_prefix, device)
        self._arrived: queue.SimpleQueue[Received | str | BaseException | None] = queue.SimpleQueue()
        handlers = Handlers(
            connected=self._arrived.put,
            subscribed=lambda _problem: None,
            disconnected=lambda _problem: None,
            protocol_refused=lambda: self._arrived.put(None),
            received=self._arrived.put,
            died=self._arrived.put,
        )
        once = config.model_copy(update={"session_expiry_s": 0})
        self._connection = Connection(once, f"speakd-view-{uuid.uuid4().hex[:12]}", handlers)
        self._connection.start()

    def speak(self, command: dict[str, Any]) -> None:
        """Publish a speak command."""
        self._connection.publish(self._topics.speak, json.dumps(command))

    def next(self, timeout_s: float) -> tuple[str, dict[str, Any]]:
        """Wait for what the device says next: ("event" or "status", its payload). TimeoutError; DaemonError."""
        while True:
            try:
                arrived = self._arrived.get(timeout=timeout_s)
            except queue.Empty:
                raise TimeoutError(f"nothing was heard for {timeout_s:g} s") from None
            match arrived:
                case Received():
                    arrived.acknowledge()
                    kind = "status" if arrived.topic == self._topics.status else "event"
                    return kind, json.loads(arrived.payload)
                case None:
                    self._connection.try_other_protocol()
                case BaseException():
                    raise DaemonError(str(arrived)) from arrived
                case _:
                    self._connection.subscribe(self._topics.status)
                    self._connection.subscribe(self._topics.event)

    def close(self) -> None:
        """Disconnect. Idempotent."""
        self._connection.stop(None, _GOODBYE_S)

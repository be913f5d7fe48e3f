"""Somebody who watches one device or all of a broker's, and may give them commands."""

from __future__ import annotations

import json
import queue
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from daemon.config import MqttConfig
from daemon.errors import DaemonError
from daemon.mqtt import Connection
from daemon.mqtt_types import Handlers, Received

KINDS: Final = ("status", "settings", "telemetry", "alert", "event")
"""What is listened to of each device."""

_GOODBYE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of a device."""

    device: str
    kind: str
    """One of `KINDS`."""
    payload: bytes
    """As it came; nobody has vouched for it."""


@dataclass(frozen=True, slots=True)
class Link:
    """The connection to the broker came about, or is gone."""

    up: bool
    problem: str = ""


class Watch:
    """A client of the broker at `config`. For one thread; close it."""

    def __init__(self, config: MqttConfig, device: str = "+", kinds: tuple[str, ...] = KINDS) -> None:
        """Connect in the background; "+" watches all devices. BrokerConfigError where a named file is of no use."""
        self._prefix = config.topic_prefix
        self._filters = [f"{self._prefix}/{device}/{kind}" for kind in kinds]
        self._arrived: queue.SimpleQueue[Received | Link | BaseException | None] = queue.SimpleQueue()
        handlers = Handlers(
            connected=lambda _protocol: self._arrived.put(Link(up=True)),
            subscribed=self._subscribed,
            disconnected=lambda problem: self._arrived.put(Link(up=False, problem=problem)),
            protocol_refused=lambda: self._arrived.put(None),
            received=self._arrived.put,
            died=self._arrived.put,
        )
        once = config.model_copy(update={"session_expiry_s": 0})
        self._connection = Connection(once, f"speakd-view-{uuid.uuid4().hex[:12]}", handlers)
        self._connection.start()

    def next(self, timeout_s: float) -> Heard | Link | None:
        """Wait for what is heard next; None where nothing is. DaemonError where the connection is beyond help."""
        while True:
            try:
                arrived = self._arrived.get(timeout=timeout_s) if timeout_s > 0 else self._arrived.get_nowait()
            except queue.Empty:
                return None
            match arrived:
                case Received():
                    arrived.acknowledge()
                    device, _, kind = arrived.topic.removeprefix(self._prefix + "/").rpartition("/")
                    return Heard(device, kind, arrived.payload)
                case Link():
                    if arrived.up:
                        self._connection.subscribe(*self._filters)
                    return arrived
                case None:
                    self._connection.try_other_protocol()
                case BaseException():
                    raise DaemonError(str(arrived)) from arrived

    def command(self, device: str, end: str, payload: Mapping[str, Any]) -> None:
        """Publish a command, such as `pause`."""
        self._connection.publish(f"{self._prefix}/{device}/{end}", json.dumps(payload))

    def close(self) -> None:
        """Disconnect. Idempotent."""
        self._connection.stop(None, _GOODBYE_S)

    def _subscribed(self, problem: str) -> None:
        if problem:
            self._arrived.put(Link(up=False, problem=f"the broker lets us hear nothing: {problem}"))

"""Somebody at the broker who hears all of some topics, and says what a test wants said."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Heard:
    """A message, and whether the broker had kept it."""

    topic: str
    payload: bytes
    retained: bool
    at: float


class Ear:
    """Connected from entering the block to leaving it."""

    def __init__(self, port: int, *filters: str) -> None:
        self.heard: list[Heard] = []
        self._filters = filters
        self._changed = threading.Condition()
        self._subscribed = threading.Event()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
        self._client.on_connect = lambda client, *_: client.subscribe([(one, 1) for one in filters])
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.on_message = self._on_message
        self._client.connect_async("127.0.0.1", port)

    def __enter__(self) -> Ear:  # noqa: PYI034  typing.Self is of Python 3.11
        self._client.loop_start()
        assert self._subscribed.wait(TIMEOUT_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def publish(self, topic: str, payload: bytes | str, *, retain: bool = False, qos: int = 0) -> None:
        """Publish, and wait until it is on its way."""
        self._client.publish(topic, payload, qos=qos, retain=retain).wait_for_publish(TIMEOUT_S)

    def on(self, topic: str) -> list[Heard]:
        """Give what was heard on a topic so far."""
        return [one for one in list(self.heard) if one.topic == topic]

    def wait_for(
        self, topic: str, wanted: Callable[[bytes], Any] = lambda _: True, timeout_s: float = TIMEOUT_S
    ) -> Heard:
        """Wait for the first message on a topic whose payload is `wanted`."""

        def found() -> list[Heard]:
            return [one for one in self.on(topic) if wanted(one.payload)]

        with self._changed:
            deadline = time.monotonic() + timeout_s
            while not found():
                left = deadline - time.monotonic()
                assert left > 0, f"nothing wanted on {topic} within {timeout_s:g} s, but {self.heard[-8:]}"
                self._changed.wait(left)
            return found()[0]

    def _on_message(self, _client: paho.Client, _userdata: object, message: paho.MQTTMessage) -> None:
        with self._changed:
            self.heard.append(Heard(message.topic, message.payload, message.retain, time.monotonic()))
            self._changed.notify_all()

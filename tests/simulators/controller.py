"""Somebody who commands a daemon through the broker and writes down what it says.

It knows nothing of our own code: topics and payloads are as the manual has them, and it speaks MQTT 3.1.1.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Any, Final

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

DEVICE: Final = "bench"
TIMEOUT_S: Final = 60.0
FINAL: Final = frozenset({"finished", "cancelled", "expired", "superseded", "failed", "rejected", "known"})

Payload = dict[str, Any]


class Controller:
    """Connected to the broker on `port` from entering the block to leaving it; reconnects by itself."""

    def __init__(self, port: int) -> None:
        self.events: list[Payload] = []
        self.statuses: list[Payload] = []
        self.settings: list[Payload] = []
        self.alerts: list[Payload] = []
        self._changed = threading.Condition()
        self._subscriptions = 0
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = self._on_connect
        self._client.on_socket_open = lambda _c, _u, sock: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message
        self._client.connect_async("127.0.0.1", port)

    def __enter__(self) -> Controller:  # noqa: PYI034  typing.Self is of Python 3.11
        self._client.loop_start()
        self.wait_until_subscribed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def wait_until_subscribed(self, times: int = 1) -> None:
        """Wait until the broker has taken the subscription for the `times`-th time."""
        self._wait(lambda: self._subscriptions >= times, TIMEOUT_S, "the broker takes no subscription")

    def publish(
        self, payload: bytes | str | Payload, *, retain: bool = False, command: str = "speak", scope: str = DEVICE
    ) -> None:
        """Publish a command, and wait until the broker has it."""
        whole = json.dumps(payload) if isinstance(payload, dict) else payload
        self.publish_all([whole], retain=retain, command=command, scope=scope)

    def publish_all(
        self,
        payloads: Sequence[bytes | str],
        *,
        retain: bool = False,
        command: str = "speak",
        scope: str = DEVICE,
    ) -> None:
        """Publish commands, one close upon the other, and wait until the broker has them all."""
        topic = f"speakd/{scope}/{command}"
        for info in [self._client.publish(topic, payload, qos=1, retain=retain) for payload in payloads]:
            info.wait_for_publish(TIMEOUT_S)

    def send(self, payload: Payload, *, command: str = "speak", scope: str = DEVICE) -> None:
        """Publish a command, and wait for nothing."""
        self._client.publish(f"speakd/{scope}/{command}", json.dumps(payload), qos=1)

    def speak(self, payload: Payload) -> list[Payload]:
        """Publish a command that has an id; gives its events up to the final one."""
        self.publish(payload)
        return self.wait_for_final(payload["id"])

    def events_of(self, command_id: str | None) -> list[Payload]:
        """Give what was said so far about one command."""
        return [event for event in self.events if event.get("id") == command_id]

    def forget(self, kept: Collection[str]) -> list[Payload]:
        """Drop the events of all commands but these, and give them: of ten thousand commands there are many."""
        with self._changed:
            dropped = [event for event in self.events if event.get("id") not in kept]
            self.events[:] = [event for event in self.events if event.get("id") in kept]
        return dropped

    def finals(self) -> list[Payload]:
        """Give all final events so far."""
        return [event for event in self.events if event["event"] in FINAL]

    def wait_for(self, command_id: str | None, kind: str, timeout_s: float = TIMEOUT_S) -> Payload:
        """Wait until the event `kind` has been said about a command, and give it."""

        def found() -> list[Payload]:
            return [event for event in self.events_of(command_id) if event["event"] == kind]

        self._wait(lambda: bool(found()), timeout_s, f"no event {kind} of {command_id}")
        return found()[0]

    def wait_for_final(self, command_id: str | None, timeout_s: float = TIMEOUT_S) -> list[Payload]:
        """Wait for the final event of a command; gives all of its events."""
        self._wait(
            lambda: any(event["event"] in FINAL for event in self.events_of(command_id)),
            timeout_s,
            f"no final event of {command_id}",
        )
        return self.events_of(command_id)

    def wait_for_finals(self, count: int, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until there have been `count` final events in all."""
        self._wait(lambda: len(self.finals()) >= count, timeout_s, f"no {count} final events")

    def wait_for_status(self, state: str, *, after: int = 0, timeout_s: float = TIMEOUT_S) -> Payload:
        """Wait for a status of this state, the first `after` ones not counting; gives it."""

        def found() -> list[Payload]:
            return [status for status in self.statuses[after:] if status["state"] == state]

        self._wait(lambda: bool(found()), timeout_s, f"no status {state}")
        return found()[0]

    def open_ids(self) -> set[str]:
        """Give the commands that were accepted and have not ended, as far as was heard."""
        events = list(self.events)
        accepted = {event["id"] for event in events if event["event"] == "accepted"}
        return accepted - {event["id"] for event in events if event["event"] in FINAL - {"rejected"}}

    def wait_until(self, condition: Callable[[], bool], complaint: str, timeout_s: float = 60.0) -> None:
        """Wait until something holds of what was heard."""
        self._wait(condition, timeout_s, complaint)

    def _wait(self, condition: Callable[[], bool], timeout_s: float, complaint: str) -> None:
        with self._changed:
            deadline = time.monotonic() + timeout_s
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0:
                    last = [*self.statuses[-2:], *self.events[-5:]]
                    raise AssertionError(f"{complaint} within {timeout_s:g} s; the last messages were {last}")
                self._changed.wait(left)

    def _on_connect(
        self, client: paho.Client, _userdata: object, _flags: object, _reason: object, _properties: object
    ) -> None:
        client.subscribe([(f"speakd/{DEVICE}/{kind}", 1) for kind in ("event", "status", "settings", "alert")])

    def _on_subscribe(
        self, _client: paho.Client, _userdata: object, _mid: int, _reasons: object, _properties: object
    ) -> None:
        with self._changed:
            self._subscriptions += 1
            self._changed.notify_all()

    def _on_message(self, _client: paho.Client, _userdata: object, message: paho.MQTTMessage) -> None:
        kinds = {"status": self.statuses, "settings": self.settings, "alert": self.alerts}
        heard = kinds.get(message.topic.split("/")[-1], self.events)
        with self._changed:
            heard.append(json.loads(message.payload))
            self._changed.notify_all()

"""The daemon's side of the broker: its topics, commands in, events and status out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from daemon.commands import Speak, parse_command
from daemon.config import Config
from daemon.errors import PayloadError
from daemon.events import Event, Rejected, Status
from daemon.inbox import (
    Connected,
    Disconnected,
    Inbox,
    PayloadRefused,
    ProtocolRefused,
    SpeakReceived,
    Subscribed,
    ThreadDied,
)
from daemon.mqtt import Connection, Handlers, Received, Will

_GOODBYE_S: Final = 3.0
"""For the broker to acknowledge the last words."""

_OUTBOX: Final = 1000
_EVENTS_PER_COMMAND: Final = 2
"""Of each command that may wait, `accepted` and its end must find room while the broker is away."""


class Topics:
    """The topics of one device."""

    def __init__(self, prefix: str, device: str) -> None:
        self.speak: Final = f"{prefix}/{device}/speak"
        self.event: Final = f"{prefix}/{device}/event"
        self.status: Final = f"{prefix}/{device}/status"


class Link:
    """Turns what the broker sends into messages for the inbox. For the main thread."""

    def __init__(self, config: Config, will: Status, post: Callable[[Inbox], None]) -> None:
        """Prepare, connect to nothing. BrokerConfigError where the configuration is of no use."""
        self._limits = config.limits
        self._largest = config.mqtt.max_payload_bytes
        self._topics = Topics(config.mqtt.topic_prefix, config.device.name)
        self._post = post
        self._listens = False
        handlers = Handlers(
            connected=lambda protocol: post(Connected(protocol)),
            subscribed=lambda problem: post(Subscribed(problem)),
            disconnected=lambda: post(Disconnected()),
            protocol_refused=lambda: post(ProtocolRefused()),
            received=self._receive,
            died=lambda error: post(ThreadDied("mqtt", error)),
        )
        client_id = f"{config.mqtt.topic_prefix}-{config.device.name}".replace("/", "-")
        self._connection = Connection(
            config.mqtt,
            client_id,
            handlers,
            will=Will(self._topics.status, will.to_json()),
            outbox=_OUTBOX + _EVENTS_PER_COMMAND * config.limits.max_queue,
        )

    def start(self) -> None:
        """Connect in the background."""
        self._connection.start()

    def subscribe(self) -> None:
        """Ask for commands; needed after each `Connected`. `Subscribed` is the answer."""
        self._connection.subscribe(self._topics.speak)

    def listens(self, *, now: bool) -> None:
        """Take note of a `Subscribed` or a `Disconnected`."""
        self._listens = now

    def try_other_protocol(self) -> None:
        """See `Connection.try_other_protocol`."""
        self._connection.try_other_protocol()

    def publish_event(self, event: Event) -> None:
        """Send an event. A refusal gives way where many messages wait: whoever floods us shall cost nobody an end."""
        self._connection.publish(self._topics.event, event.to_json(), dispensable=isinstance(event, Rejected))

    def publish_status(self, status: Status) -> None:
        """Send the retained status; not while nobody listens here.

        It would be sent when the connection is back, before the subscription: whoever then takes us for online sends
        a command that is lost. After each `Subscribed` there is a status to publish anyway.
        """
        if self._listens:
            self._connection.publish(self._topics.status, status.to_json(), retain=True)

    def stop(self, last: Status) -> None:
        """Leave `last` as the status and disconnect, once the broker has all of it."""
        self._connection.stop(Will(self._topics.status, last.to_json()), _GOODBYE_S)

    def _receive(self, message: Received) -> None:
        at = time.monotonic()
        try:
            self._post(SpeakReceived(self._parse(message), at))
        except PayloadError as error:
            self._post(PayloadRefused(error))

    def _parse(self, message: Received) -> Speak:
        size = len(message.payload)
        if message.retained:
            raise PayloadError("retained", "a retained command would be spoken at each reconnect: publish it without")
        if size > self._largest:
            raise PayloadError("too_large", f"the payload has {size} bytes, {self._largest} are allowed")
        return parse_command(Speak, message.payload, max_text_chars=self._limits.max_text_chars)

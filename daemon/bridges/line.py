"""A bridge's own connection to the broker: what comes there in bulk holds up no command and no event of ours."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from daemon.config import Config
from daemon.inbox import BridgeTurn, Inbox, ThreadDied
from daemon.mqtt import Connection
from daemon.mqtt_types import Handlers, Received

_LOG = logging.getLogger(__name__)

_GOODBYE_S: Final = 1.0


class Hears(Protocol):
    """Who is behind a line."""

    def connected(self) -> None:
        """Go on: the broker took us, for the first time or again. In the main thread."""

    def received(self, message: Received) -> None:
        """Take a message, and acknowledge it in the end. In the thread of this line's connection."""

    def published(self, number: int) -> None:
        """Take note that the broker has a message of ours. In the main thread."""


class Line:
    """For the main thread. Nothing is kept for us while we are away: whoever asked has given up waiting by then."""

    def __init__(
        self,
        config: Config,
        name: str,
        filters: Sequence[str],
        hears: Hears,
        post: Callable[[Inbox], None],
        *,
        largest: int | None = None,
    ) -> None:
        """`largest`: the largest payload that is taken, in bytes; None: as configured for commands."""
        self._name = name
        self._filters = filters
        self._hears = hears
        mqtt = config.mqtt.model_copy(
            update={"session_expiry_s": 0, "max_payload_bytes": largest or config.mqtt.max_payload_bytes}
        )
        handlers = Handlers(
            connected=lambda _protocol: post(BridgeTurn(self._on_connected)),
            subscribed=self._on_subscribed,
            disconnected=lambda _problem: None,  # the connection logs it
            protocol_refused=lambda: post(BridgeTurn(self._connection.try_other_protocol)),
            received=hears.received,
            died=lambda error: post(ThreadDied(f"mqtt for {name}", error)),
            published=lambda number: post(BridgeTurn(lambda: hears.published(number))),
        )
        client_id = f"{mqtt.topic_prefix}-{config.device.name}-{name}".replace("/", "-")
        self._connection = Connection(mqtt, client_id, handlers)

    def start(self) -> None:
        """Connect in the background."""
        self._connection.start()

    def publish(self, topic: str, payload: str, *, retain: bool = False) -> int | None:
        """Send with QoS 1; gives the message's number, None where too many wait."""
        return self._connection.publish(topic, payload, retain=retain)

    def stop(self) -> None:
        """Disconnect, after what was published. Idempotent."""
        self._connection.stop(None, _GOODBYE_S)

    def _on_connected(self) -> None:
        if self._filters:
            self._connection.subscribe(*self._filters)
        self._hears.connected()

    def _on_subscribed(self, problem: str) -> None:
        if problem:
            _LOG.error("the broker refuses the subscriptions for %s: %s", self._name, problem)

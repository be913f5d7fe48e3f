"""What a connection to a broker takes and gives; whoever speaks of these needs no paho."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Received:
    """One message from the broker."""

    topic: str
    payload: bytes
    retained: bool
    """Whether the broker keeps it. 3.1.1 tells only of what it had kept before the subscription."""
    acknowledge: Callable[[], None]
    """Tell the broker that we have it; until then it would send it again. From any one thread."""
    reply_to: str = ""
    """The response topic. This and what follows: MQTT 5 only."""
    correlation: bytes = b""
    properties: tuple[tuple[str, str], ...] = ()
    """User properties, the first `_MOST_PROPERTIES`."""
    expires_s: float | None = None
    """What is left of the message's expiry interval, less its time at the broker."""


@dataclass(frozen=True, slots=True)
class Headers:
    """What goes along with a message in MQTT 5, and is left out in 3.1.1."""

    correlation: bytes = b""
    properties: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Handlers:
    """What paho's thread calls; each must return at once."""

    connected: Callable[[str], None]
    """The broker took us, for the first time or again; told the MQTT version. Subscriptions must be renewed."""
    subscribed: Callable[[str], None]
    """The broker has answered a subscription; told why it refuses it, or nothing."""
    disconnected: Callable[[str], None]
    """The connection is gone; told what is wrong where it is lost again and again: somebody else uses our
    client id, or what the broker says."""
    protocol_refused: Callable[[], None]
    """The broker seems not to speak the version that was tried: `Connection.try_other_protocol`."""
    received: Callable[[Received], None]
    died: Callable[[BaseException], None]
    """A handler raised. The thread goes on, but whoever owns the process should end it."""
    published: Callable[[int], None] = lambda _number: None
    """The broker has the message of this number, which `Connection.publish` gave."""


@dataclass(frozen=True, slots=True)
class Will:
    """What the broker says, retained, when the connection is lost without a goodbye."""

    topic: str
    payload: str


def packet_bytes(topic: str, payload: str | bytes, headers: Headers | None = None) -> int:
    """Give how large a message is on the wire, at most: each string has up to five bytes before it."""
    size = 32 + len(topic.encode()) + len(payload if isinstance(payload, bytes) else payload.encode())
    if headers is not None:
        size += 32 + len(headers.correlation) + len(headers.content_type)
        size += sum(5 + len(word.encode()) for pair in headers.properties for word in pair)
    return size

"""A connection to the broker that takes care of itself. The only module that imports paho.

paho's own thread connects, reconnects with back-off and calls back. A callback of ours must return at once.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from daemon.config import MqttConfig
from daemon.errors import BrokerConfigError

_LOG = logging.getLogger(__name__)

_OUTBOX: Final = 1000
"""Messages kept for a broker that is away, at least: the events of some 250 commands, under 1 MB."""

_LARGEST_PACKETS: Final = 4
"""Times the largest payload that is looked at: so much more is taken to be answered with a refusal, not beyond."""

_WITH_WILL: Final = 4
"""MQTT 5, 3.14.2.1: 'Disconnect with Will Message'."""

_UNSUPPORTED_VERSION: Final = 132
"""MQTT 5, 3.2.2.2: 'Unsupported Protocol Version'. paho gives the refusal of 3.1.1 the same number."""

_CONNACK_S: Final = 5.0
"""For the broker to answer a CONNECT, which mosquitto does in milliseconds. paho alone would wait for `keepalive_s`:
amqtt 0.12, which speaks 3.1.1 only, never answers one of MQTT 5 that has a will, and does not hang up either."""

_MOST_DOUBLINGS: Final = 12
"""Of a wait between attempts: from 1 s beyond the hour that `reconnect_max_s` can be."""

_NEVER_S: Final = 3600
"""Before the next attempt to connect, where the process is about to end."""

_FAILURE: Final = 128
"""MQTT reason codes from here on are failures."""


@dataclass(frozen=True, slots=True)
class Received:
    """One message from the broker."""

    topic: str
    payload: bytes
    retained: bool
    """Whether the broker keeps it. 3.1.1 tells only of what it had kept before the subscription."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """What paho's thread calls; each must return at once."""

    connected: Callable[[str], None]
    """The broker took us, for the first time or again; told the MQTT version. Subscriptions must be renewed."""
    subscribed: Callable[[str], None]
    """The broker has answered a subscription; told why it refuses it, or nothing."""
    disconnected: Callable[[], None]
    protocol_refused: Callable[[], None]
    """The broker seems not to speak the version that was tried: `Connection.try_other_protocol`."""
    received: Callable[[Received], None]
    died: Callable[[BaseException], None]
    """A handler raised. The thread goes on, but whoever owns the process should end it."""


@dataclass(frozen=True, slots=True)
class Will:
    """What the broker says, retained, when the connection is lost without a goodbye."""

    topic: str
    payload: str


class Connection:
    """One client of one broker. Its methods are for one thread, which is not paho's."""

    def __init__(
        self,
        config: MqttConfig,
        client_id: str,
        handlers: Handlers,
        *,
        will: Will | None = None,
        outbox: int = _OUTBOX,
    ) -> None:
        """Prepare everything, connect to nothing. BrokerConfigError where a named file is of no use."""
        self._outbox = outbox
        self._unacknowledged = 0  # a count to judge by: two threads change it, and it may be off by some
        self._complaint = ""
        self._config = config
        self._client_id = client_id
        self._handlers = handlers
        self._will = will
        self._protocol = paho.MQTTv5
        self._refusals = 0
        """Of the version that was tried, since the start or the last connection."""
        self._was_connected = False
        self._was_answered = False
        """Whether there was a CONNACK on the present socket. For paho's thread."""
        self._patience: threading.Timer | None = None
        self._client = self._make_client()

    def start(self) -> None:
        """Connect in the background, for as long as it takes."""
        properties = None
        if self._protocol == paho.MQTTv5:
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.MaximumPacketSize = _LARGEST_PACKETS * self._config.max_payload_bytes
        self._client.connect_async(
            self._config.host, self._config.port, self._config.keepalive_s, properties=properties
        )
        self._client.loop_start()

    def subscribe(self, topic: str) -> None:
        """Subscribe with QoS 1. What the broker has kept comes too, marked as `Received.retained`."""
        if self._protocol == paho.MQTTv5:
            self._client.subscribe(topic, options=SubscribeOptions(qos=1, retainAsPublished=True))
        else:
            self._client.subscribe(topic, qos=1)

    def publish(self, topic: str, payload: str, *, retain: bool = False, dispensable: bool = False) -> None:
        """Send with QoS 1, now or when the broker is back.

        Once `outbox` messages wait, new ones are dropped; `dispensable` ones once half as many do.
        """
        if not dispensable or self._unacknowledged < self._outbox // 2:
            self._unacknowledged += 1
            info = self._client.publish(topic, payload, qos=1, retain=retain)
            if info.rc != MQTTErrorCode.MQTT_ERR_QUEUE_SIZE:
                return
            self._unacknowledged -= 1
        _LOG.warning("%d messages wait for the broker: one for %s was dropped", self._unacknowledged, topic)

    def try_other_protocol(self) -> None:
        """Start again with the other version: 5, then 3.1.1, then 5 again."""
        self._client.loop_stop()
        self._protocol = paho.MQTTv311 if self._protocol == paho.MQTTv5 else paho.MQTTv5
        _LOG.info("the broker refuses the connection, trying %s", _version_name(self._protocol))
        self._client = self._make_client()
        self.start()

    def stop(self, last: Will | None, timeout_s: float) -> None:
        """Publish a last retained message, wait until it is acknowledged, say goodbye and end paho's thread.

        Where the broker does not take the message in time it is left to speak the will.
        """
        if self._client.is_connected():
            if last is None or self._is_taken(last, timeout_s):
                self._client.disconnect()
            elif self._protocol == paho.MQTTv5:
                _LOG.warning("the broker did not take the last message")
                self._client.disconnect(ReasonCode(PacketTypes.DISCONNECT, identifier=_WITH_WILL))
            else:
                _LOG.warning("the broker did not take the last message")
                self._hang_up(self._client)
        self._client.loop_stop()

    def _is_taken(self, last: Will, timeout_s: float) -> bool:
        info = self._client.publish(last.topic, last.payload, qos=1, retain=True)
        try:
            info.wait_for_publish(timeout_s)
        except (RuntimeError, ValueError):  # there was no room for it any more, or no connection
            return False
        return info.is_published()

    def _hang_up(self, client: paho.Client) -> None:
        connected = client.socket()
        client.reconnect_delay_set(_NEVER_S, _NEVER_S)
        if isinstance(connected, socket.socket):
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def _make_client(self) -> paho.Client:
        config = self._config
        client = paho.Client(CallbackAPIVersion.VERSION2, client_id=self._client_id, protocol=self._protocol)
        client.max_queued_messages_set(self._outbox)
        first_wait_s = config.reconnect_min_s << min(self._refusals // 2, _MOST_DOUBLINGS)
        client.reconnect_delay_set(min(first_wait_s, config.reconnect_max_s), config.reconnect_max_s)
        if self._will is not None:
            client.will_set(self._will.topic, self._will.payload, qos=1, retain=True)
        if config.username:
            client.username_pw_set(config.username, _read_password(config.password_file))
        if config.tls:
            try:
                client.tls_set(ca_certs=config.tls_ca_file or None)
            except (OSError, ssl.SSLError) as error:
                raise BrokerConfigError(f"mqtt.tls_ca_file {config.tls_ca_file}: {error}") from error
        client.on_socket_open = self._guarded(self._on_socket_open)
        client.on_socket_close = self._guarded(self._on_socket_close)
        client.on_connect = self._guarded(self._on_connect)
        client.on_connect_fail = self._guarded(self._on_connect_fail)
        client.on_disconnect = self._guarded(self._on_disconnect)
        client.on_message = self._guarded(self._on_message)
        client.on_subscribe = self._guarded(self._on_subscribe)
        client.on_publish = self._guarded(self._on_publish)
        return client

    def _guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
        """Pass an exception on: left in a callback it would end paho's thread and leave a deaf process."""

        def call(*args: object) -> None:
            try:
                callback(*args)
            except Exception as error:  # noqa: BLE001  whatever it was, the owner decides
                self._handlers.died(error)

        return call

    def _on_socket_open(self, _client: paho.Client, _userdata: object, opened: socket.socket) -> None:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def hang_up() -> None:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)

        self._was_answered = False
        self._patience = threading.Timer(_CONNACK_S, hang_up)
        self._patience.daemon = True
        self._patience.start()

    def _on_socket_close(self, _client: paho.Client, _userdata: object, _closed: socket.socket) -> None:
        self._end_patience()

    def _end_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def _on_connect(
        self, client: paho.Client, _userdata: object, _flags: object, reason: ReasonCode, _properties: object
    ) -> None:
        self._end_patience()
        self._was_answered = True
        if reason.value == _UNSUPPORTED_VERSION:
            self._refuse_protocol()
        elif reason.is_failure:
            _LOG.warning("the broker refuses the connection: %s", reason)
        else:
            self._was_connected = True
            self._complaint = ""
            self._refusals = 0
            client.reconnect_delay_set(self._config.reconnect_min_s, self._config.reconnect_max_s)
            self._handlers.connected(_version_name(self._protocol))

    def _on_connect_fail(self, *_: object) -> None:
        """Tell why there is no connection: once, and again when it is for another reason."""
        complaint = str(sys.exc_info()[1])  # paho calls this while it handles the exception
        if complaint != self._complaint:
            self._complaint = complaint
            _LOG.warning("the broker %s:%d cannot be reached: %s", self._config.host, self._config.port, complaint)

    def _refuse_protocol(self) -> None:
        """Have the other version tried at once the first time; after that each one twice, with paho's wait between.

        So a broker that takes neither, or is no broker, is not asked more often than one that is away.
        """
        self._refusals += 1
        if self._refusals % 2:
            self._handlers.protocol_refused()

    def _on_disconnect(
        self, _client: paho.Client, _userdata: object, _flags: object, reason: ReasonCode, _properties: object
    ) -> None:
        if reason.is_failure:
            _LOG.warning("the connection to the broker was lost: %s", reason)
        self._handlers.disconnected()
        if not self._was_answered and not self._was_connected:
            self._refuse_protocol()

    def _on_subscribe(
        self, _client: paho.Client, _userdata: object, _mid: int, reasons: list[ReasonCode], _properties: object
    ) -> None:
        refused = [str(reason) for reason in reasons if reason.value >= _FAILURE]
        self._handlers.subscribed(", ".join(refused))

    def _on_publish(self, client: paho.Client, *_: object) -> None:
        self._unacknowledged = max(0, self._unacknowledged - 1)
        self._acknowledge_now(client)

    def _acknowledge_now(self, client: paho.Client) -> None:
        """Acknowledge the broker's acknowledgement at once.

        Linux would wait for up to 40 ms, and a broker without TCP_NODELAY (mosquitto's default) holds the next command
        back for as long: it was 45 ms late whenever an event had gone out just before. Linux forgets the option.
        """
        connected = client.socket()
        if isinstance(connected, socket.socket):  # of TLS too
            with contextlib.suppress(OSError):  # it was closed meanwhile; then nobody waits
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _on_message(self, _client: paho.Client, _userdata: object, message: paho.MQTTMessage) -> None:
        self._handlers.received(Received(message.topic, bytes(message.payload), message.retain))


def _version_name(protocol: int) -> str:
    return "MQTT 5" if protocol == paho.MQTTv5 else "MQTT 3.1.1"


def _read_password(file: str) -> str | None:
    if not file:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()[0]
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise BrokerConfigError(f"mqtt.password_file {file} has no password in its first line: {error}") from error

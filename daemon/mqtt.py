"""A connection to the broker that takes care of itself. The only module that imports paho.

paho's own thread connects, reconnects with back-off and calls back. A callback of ours must return at once.
"""

from __future__ import annotations

import logging
import math
import socket
import sys
import time
from collections.abc import Callable
from typing import Final

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from daemon import broker_socket
from daemon.backoff import MOST_DOUBLINGS, Backoff
from daemon.config import MqttConfig
from daemon.credentials import explained, first_line, tls_context
from daemon.mqtt_codes import FAILURE, TAKEN_OVER, UNSPECIFIED, UNSUPPORTED_VERSION, WITH_WILL
from daemon.mqtt_types import Handlers, Headers, Received, Will, packet_bytes
from daemon.patience import Patience

_LOG = logging.getLogger(__name__)

_OUTBOX: Final = 1000
"""Messages kept for a broker that is away, at least: the events of some 250 commands, under 1 MB."""

_LARGEST_PACKETS: Final = 4
"""Times the largest payload that is looked at: so much more is taken to be answered with a refusal, not beyond."""

_MOST_PROPERTIES: Final = 16
"""User properties of one command that are given back; a trace has two or three."""

_NEVER_S: Final = 3600
"""Before the next attempt to connect, where the process is about to end."""


class _Client(paho.Client):
    """paho's client, and when its thread last moved: once a second at least while it is connected."""

    moved_at = math.inf

    def loop_misc(self) -> MQTTErrorCode:
        self.moved_at = time.monotonic()
        return super().loop_misc()


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
        self._largest = math.inf
        """Bytes of a packet that the broker takes, as it said last."""
        self._patience = Patience()
        self._backoff = Backoff(config.reconnect_min_s, config.reconnect_max_s)
        self._session = 0
        """Counts connections: an acknowledgement belongs to the one that its message came by."""
        self._client = self._make_client()

    def start(self) -> None:
        """Connect in the background, for as long as it takes."""
        properties = None
        if self._protocol == paho.MQTTv5:
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.MaximumPacketSize = _LARGEST_PACKETS * self._config.max_payload_bytes
            if self._keeps_session:
                properties.SessionExpiryInterval = self._config.session_expiry_s
        self._client.connect_async(
            self._config.host,
            self._config.port,
            self._config.keepalive_s,
            clean_start=not self._keeps_session if self._protocol == paho.MQTTv5 else paho.MQTT_CLEAN_START_FIRST_ONLY,
            properties=properties,
        )
        self._client.loop_start()

    def subscribe(self, *topics: str) -> None:
        """Subscribe with QoS 1. What the broker has kept comes too, marked as `Received.retained`."""
        if self._protocol == paho.MQTTv5:
            # A shared subscription has no retained messages, and some brokers refuse the option there.
            self._client.subscribe(
                [(t, SubscribeOptions(qos=1, retainAsPublished=not t.startswith("$share/"))) for t in topics]
            )
        else:
            self._client.subscribe([(topic, 1) for topic in topics])

    def publish(
        self,
        topic: str,
        payload: str | bytes,
        *,
        retain: bool = False,
        qos: int = 1,
        share: float = 1.0,
        headers: Headers | None = None,
    ) -> int | None:
        """Send, now or when the broker is back; gives the message's number, None where it was dropped.

        With QoS 0, now or never. What is larger than the broker takes is dropped: it would hang up each time it came.
        Once `outbox` messages wait, new ones are dropped; those with a smaller `share` once that part of it is full.
        """
        size = packet_bytes(topic, payload, headers)
        if size > self._largest:
            _LOG.warning("%d bytes for %s were dropped: the broker takes %d at most", size, topic, self._largest)
            return None
        if share >= 1 or self._unacknowledged < self._outbox * share:
            self._unacknowledged += 1
            info = self._client.publish(topic, payload, qos=qos, retain=retain, properties=self._properties(headers))
            if info.rc != MQTTErrorCode.MQTT_ERR_QUEUE_SIZE and (qos or info.rc != MQTTErrorCode.MQTT_ERR_NO_CONN):
                return int(info.mid)
            self._unacknowledged -= 1
            if not qos:
                return None
        _LOG.warning("%d messages wait for the broker: one for %s was dropped", self._unacknowledged, topic)
        return None

    def _properties(self, headers: Headers | None) -> Properties | None:
        if headers is None or self._protocol != paho.MQTTv5:
            return None
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ContentType = headers.content_type
        if headers.correlation:
            properties.CorrelationData = headers.correlation
        if headers.properties:
            properties.UserProperty = list(headers.properties)
        return properties

    @property
    def _keeps_session(self) -> bool:
        """Tell whether the broker shall keep our session: 3.1.1 would keep it for ever, stale commands and all."""
        return self._protocol == paho.MQTTv5 and self._config.session_expiry_s > 0

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
                self._client.disconnect(ReasonCode(PacketTypes.DISCONNECT, identifier=WITH_WILL))
            else:
                _LOG.warning("the broker did not take the last message")
                self._client.reconnect_delay_set(_NEVER_S, _NEVER_S)
                broker_socket.hang_up(self._client.socket())
        self._client.loop_stop()

    def renew(self) -> None:
        """Give up a connection that only seems to be there, and make another."""
        broker_socket.hang_up(self._client.socket())

    def still_s(self, now: float) -> float:
        """Tell for how long paho's thread has not moved though it should have. 0 while there is no connection."""
        return max(0.0, now - self._client.moved_at) if self._client.is_connected() else 0.0

    def _is_taken(self, last: Will, timeout_s: float) -> bool:
        info = self._client.publish(last.topic, last.payload, qos=1, retain=True)
        try:
            info.wait_for_publish(timeout_s)
        except (RuntimeError, ValueError):  # there was no room for it any more, or no connection
            return False
        return info.is_published()

    def _make_client(self) -> _Client:
        config = self._config
        client = _Client(CallbackAPIVersion.VERSION2, client_id=self._client_id, protocol=self._protocol)
        client.max_queued_messages_set(self._outbox)
        client.manual_ack_set(on=True)
        first_wait_s = min(config.reconnect_min_s << min(self._refusals // 2, MOST_DOUBLINGS), config.reconnect_max_s)
        client.reconnect_delay_set(first_wait_s, config.reconnect_max_s)
        if self._will is not None:
            client.will_set(self._will.topic, self._will.payload, qos=1, retain=True)
        username = first_line("mqtt.username_file", config.username_file) or config.username
        if username:
            client.username_pw_set(username, first_line("mqtt.password_file", config.password_file))
        if config.tls:
            client.tls_set_context(tls_context(config))
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
        broker_socket.send_at_once(opened)
        self._was_answered = False
        self._patience.begin(opened)

    def _on_socket_close(self, _client: paho.Client, _userdata: object, _closed: socket.socket) -> None:
        self._patience.end()

    def _on_connect(
        self, _client: paho.Client, _userdata: object, _flags: object, reason: ReasonCode, properties: object
    ) -> None:
        self._patience.end()
        self._was_answered = True
        self._largest = getattr(properties, "MaximumPacketSize", math.inf)
        if reason.value == UNSUPPORTED_VERSION:
            self._refuse_protocol()
        elif reason.is_failure:
            _LOG.warning("the broker refuses the connection: %s", reason)
        else:
            self._was_connected = True
            self._complaint = ""
            self._refusals = 0
            self._session += 1
            self._backoff.connected(time.monotonic())
            self._handlers.connected(_version_name(self._protocol))

    def _back_off(self, client: paho.Client) -> None:
        wait_s = self._backoff.wait_s(time.monotonic())
        if self._was_connected:  # before, `_make_client` says how long, since two versions of MQTT take turns
            client.reconnect_delay_set(wait_s, wait_s)  # type: ignore[arg-type]  # it only adds them to a time

    def _on_connect_fail(self, client: paho.Client, *_: object) -> None:
        """Tell why there is no connection: once, and again when it is for another reason."""
        error = sys.exc_info()[1]  # paho calls this while it handles the exception
        self._back_off(client)
        complaint = explained(error)
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
        self, client: paho.Client, _userdata: object, _flags: object, reason: ReasonCode, _properties: object
    ) -> None:
        self._patience.end()
        self._back_off(client)
        problem = ""
        robbed = self._backoff.is_robbed and not (reason.is_failure and reason.value != UNSPECIFIED)
        if reason.value == TAKEN_OVER or robbed:
            problem = f"does somebody else connect as {self._client_id}? Give each device a device.name of its own"
            _LOG.error("the connection to the broker is taken away again and again: %s", problem)
        elif self._backoff.is_robbed:
            problem = f"the broker hangs up again and again: {reason}"
            _LOG.error("%s", problem)
        elif reason.is_failure:
            _LOG.warning("the connection to the broker was lost: %s", reason)
        self._handlers.disconnected(problem)
        if not self._was_answered and not self._was_connected:
            self._refuse_protocol()

    def _on_subscribe(
        self, _client: paho.Client, _userdata: object, _mid: int, reasons: list[ReasonCode], _properties: object
    ) -> None:
        refused = [str(reason) for reason in reasons if reason.value >= FAILURE]
        self._handlers.subscribed(", ".join(sorted(set(refused))))

    def _on_publish(self, client: paho.Client, _userdata: object, mid: int, *_: object) -> None:
        self._unacknowledged = max(0, self._unacknowledged - 1)
        self._handlers.published(mid)
        broker_socket.acknowledge_now(client.socket())

    def _on_message(self, client: paho.Client, _userdata: object, message: paho.MQTTMessage) -> None:
        session, mid, qos = self._session, message.mid, message.qos

        def acknowledge() -> None:
            if session == self._session:  # on another connection the broker sends it again, under any number
                client.ack(mid, qos)

        found = message.properties
        self._handlers.received(
            Received(
                _topic_of(message),
                bytes(message.payload),
                message.retain,
                acknowledge,
                reply_to=str(getattr(found, "ResponseTopic", "")),
                correlation=bytes(getattr(found, "CorrelationData", b"")),
                properties=tuple(getattr(found, "UserProperty", ()))[:_MOST_PROPERTIES],
                expires_s=getattr(found, "MessageExpiryInterval", None),
            )
        )


def _topic_of(message: paho.MQTTMessage) -> str:
    try:
        return message.topic
    except UnicodeDecodeError:  # raised by the property itself
        return ""


def _version_name(protocol: int) -> str:
    return "MQTT 5" if protocol == paho.MQTTv5 else "MQTT 3.1.1"

"""The daemon's side of the broker: commands in, events, settings and status out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from daemon.backoff import STEADY_S
from daemon.commands import AnyCommand, Speak
from daemon.config import Config
from daemon.errors import PayloadError
from daemon.events import FINAL, Cancelled, Event, Expired, Failed, Finished, Settings, Status, Superseded
from daemon.inbox import (
    NOBODY,
    AudioPage,
    Connected,
    ControlReceived,
    Disconnected,
    Inbox,
    Origin,
    PayloadRefused,
    ProtocolRefused,
    Published,
    SpeakReceived,
    Subscribed,
    ThreadDied,
)
from daemon.journal_rows import Untold
from daemon.mqtt import Connection
from daemon.mqtt_types import Handlers, Headers, Received, Will
from daemon.payloads import parse_command
from daemon.telemetry_backlog import Backlog
from daemon.telemetry_messages import Alert, Telemetry
from daemon.topics import Topics

_GOODBYE_S: Final = 3.0
"""For the broker to acknowledge the last words."""

_OUTBOX: Final = 1000
_EVENTS_PER_COMMAND: Final = 2
"""Of each command that may wait, `accepted` and its end must find room while the broker is away."""

_SHARES: Final = {"rejected": 0.5, "word": 0.5, "mark": 0.5}
"""Of the outbox that is open to an event; to those that are no end but these, `_PROGRESS`. Whoever floods us with what
is refused shall cost nobody an end. An end that finds no room is told from the journal once the broker is back."""

_PROGRESS: Final = 0.75

_PACKET_HEAD: Final = 6
"""Bytes of a PUBLISH with QoS 0 beside topic and payload: its type, its length in up to three, the topic's length."""

_LONGEST_REPLY_TO: Final = 512

_ANSWERS_GO: Final = (
    "answers go to topics of up to 64 levels, without wildcards and control characters, that are none of speakd's own"
)

_PATIENCE: Final = 1.5
"""MQTT 5, 3.1.2.10: times the keep-alive after which a broker that has heard nothing closes the connection."""

_SHORTEST_S: Final = 0.001
"""Of an expiry whose last second the message has spent on the way."""


class Link:
    """Turns what the broker sends into messages for the inbox. For the main thread."""

    def __init__(self, config: Config, will: Status, post: Callable[[Inbox], None]) -> None:
        """Prepare, connect to nothing. BrokerConfigError where the configuration is of no use."""
        self._max_text_chars = config.limits.max_text_chars
        self._largest = config.mqtt.max_payload_bytes
        self._keepalive_s = config.mqtt.keepalive_s
        device = config.device
        self.topics: Final = Topics(config.mqtt.topic_prefix, device.name, device.groups, renders=config.render.shared)
        self._post = post
        self._listens = False
        self.steady_at = math.inf
        """When the connection will have lasted for a while, in seconds of `time.monotonic`; infinite where it has."""
        self._backlog = Backlog(self._send_telemetry)
        self._untold: dict[int, str] = {}
        """Message number -> id: final events on their way."""
        handlers = Handlers(
            connected=lambda protocol: post(Connected(protocol)),
            subscribed=lambda problem: post(Subscribed(problem)),
            disconnected=lambda problem: post(Disconnected(problem)),
            published=lambda number: post(Published(number)),
            protocol_refused=lambda: post(ProtocolRefused()),
            received=self._receive,
            died=lambda error: post(ThreadDied("mqtt", error)),
        )
        client_id = f"{config.mqtt.topic_prefix}-{device.name}".replace("/", "-")
        self._connection = Connection(
            config.mqtt,
            client_id,
            handlers,
            will=Will(self.topics.status, will.to_json()),
            outbox=_OUTBOX + _EVENTS_PER_COMMAND * config.limits.max_queue,
        )

    def start(self) -> None:
        """Connect in the background."""
        self._connection.start()

    def still_s(self, now: float) -> float:
        """See `Connection.still_s`."""
        return self._connection.still_s(now)

    def slept(self, for_s: float) -> None:
        """Connect anew after a suspension in which the broker must have given us up, and could not tell us."""
        if for_s >= _PATIENCE * self._keepalive_s:
            self._connection.renew()

    def subscribe(self) -> None:
        """Ask for commands; needed after each `Connected`. `Subscribed` is the answer."""
        self._connection.subscribe(*self.topics.filters)

    def listens(self, *, now: bool) -> None:
        """Take note of a `Subscribed` or a `Disconnected`."""
        self._listens = now
        self.steady_at = time.monotonic() + STEADY_S if now else math.inf
        if now:
            self._backlog.flush()

    def try_other_protocol(self) -> None:
        """See `Connection.try_other_protocol`. What was on its way is told anew from the journal."""
        self._untold.clear()
        self._connection.try_other_protocol()

    def publish_event(self, event: Event, origin: Origin) -> None:
        """Send an event, to whoever asked for an answer too."""
        final = event.id if isinstance(event, Finished | Cancelled | Expired | Superseded | Failed) else None
        self._send(event.to_json(), origin, _share(event.event), final)

    def publish_untold(self, untold: list[Untold]) -> None:
        """Send the final events that the broker may not have, but for those that are on their way."""
        on_their_way = set(self._untold.values())
        for final in untold:
            if final.id not in on_their_way:
                self._send(final.final, final.origin, 1.0, final.id)

    def told(self, number: int) -> str | None:
        """Give the id of the command whose final event the broker has now."""
        return self._untold.pop(number, None)

    def publish_audio(self, piece: AudioPage) -> bool:
        """Send a piece of a stream; False where there was no room for it."""
        headers = Headers(content_type=piece.content_type)
        return self._connection.publish(piece.topic, piece.page, share=_PROGRESS, headers=headers) is not None

    def publish_telemetry(self, figures: Telemetry) -> int:
        """Send figures, retained, now or when the broker is back; gives about how many bytes that takes."""
        return self._backlog.publish(figures)

    @property
    def telemetry_lost(self) -> int:
        """How many messages were given up while the broker was away."""
        return self._backlog.lost

    def _send_telemetry(self, payload: str) -> int | None:
        topic = self.topics.telemetry
        if not self._listens or self._connection.publish(topic, payload, qos=0, retain=True) is None:
            return None
        return len(topic) + len(payload) + _PACKET_HEAD

    def publish_alert(self, alert: Alert) -> None:
        """Send an alert, now or when the broker is back."""
        self._connection.publish(self.topics.alert, alert.to_json(), share=_PROGRESS, headers=Headers())

    def publish_settings(self, settings: Settings) -> None:
        """Send the retained settings."""
        if self._listens:
            self._connection.publish(self.topics.settings, settings.to_json(), retain=True, headers=Headers())

    def publish_status(self, status: Status) -> None:
        """Send the retained status; not while nobody listens here.

        It would be sent when the connection is back, before the subscription: whoever then takes us for online sends
        a command that is lost. After each `Subscribed` there is a status to publish anyway.
        """
        if self._listens:
            self._connection.publish(self.topics.status, status.to_json(), retain=True, headers=Headers())

    def stop(self, last: Status) -> None:
        """Leave `last` as the status and disconnect, once the broker has all of it."""
        self._connection.stop(Will(self.topics.status, last.to_json()), _GOODBYE_S)

    def _send(self, payload: str, origin: Origin, share: float, final: str | None) -> None:
        headers = Headers(origin.correlation, origin.properties)
        number = self._connection.publish(self.topics.event, payload, share=share, headers=headers)
        if final is not None and number is not None:
            self._untold[number] = final
        if origin.reply_to:
            self._connection.publish(origin.reply_to, payload, share=share, headers=headers)

    def _receive(self, message: Received) -> None:
        at = time.monotonic()
        origin = NOBODY
        try:
            origin = self._origin(message, message.reply_to)
            command = self._parse(message)
            if command.reply_to and not message.reply_to:
                command_id = command.id if isinstance(command, Speak) else command.request
                origin = self._origin(message, command.reply_to, command_id)
        except PayloadError as error:
            self._post(PayloadRefused(error, origin, message.acknowledge))
            return
        if isinstance(command, Speak):
            self._post(SpeakReceived(command, at, origin, message.acknowledge))
        else:
            self._post(ControlReceived(command, origin, message.acknowledge))

    def _origin(self, message: Received, reply_to: str, command_id: str | None = None) -> Origin:
        if reply_to and (len(reply_to) > _LONGEST_REPLY_TO or not self.topics.may_answer(reply_to)):
            raise PayloadError("reply_to", _ANSWERS_GO, command_id)
        return Origin(reply_to, message.correlation, message.properties)

    def _parse(self, message: Received) -> AnyCommand:
        size = len(message.payload)
        if message.retained:
            raise PayloadError("retained", "a retained command would be spoken at each reconnect: publish it without")
        if size > self._largest:
            raise PayloadError("too_large", f"the payload has {size} bytes, {self._largest} are allowed")
        kind = self.topics.command(message.topic)
        if kind is None:
            raise PayloadError("topic", "there is no such command")
        command = parse_command(kind, message.payload, max_text_chars=self._max_text_chars)
        if isinstance(command, Speak):
            if self.topics.is_render(message.topic) and command.output == "speaker":
                raise PayloadError("output", "what is sent to render goes to a file or a stream", command.id)
            if message.expires_s is not None:
                expires_s = min(command.expires_s or message.expires_s, message.expires_s)
                command = command.model_copy(update={"expires_s": float(max(expires_s, _SHORTEST_S))})
        return command


def _share(event: str) -> float:
    return 1.0 if event in FINAL else _SHARES.get(event, _PROGRESS)

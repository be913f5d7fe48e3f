"""Home Assistant finds this device by MQTT discovery, and controls it by the topics that everybody uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

from daemon.bridges.homeassistant_discovery import discovery, object_id
from daemon.bridges.line import Line
from daemon.commands import VoicesGet
from daemon.config import Config
from daemon.events import FINAL, Event, Interrupted, Resumed, Started, Synthesized, Voices
from daemon.inbox import ControlReceived, Inbox, Origin
from daemon.mqtt_types import Received
from daemon.topics import Topics

_ROUTE: Final = "homeassistant"
"""Of our own questions."""

FACT: Final = "homeassistant"
"""What the journal remembers: the retained topics that we have left at the broker, a JSON list."""

_ONLINE: Final = b"online"


class State(BaseModel):
    """What Home Assistant shows and no other retained topic tells."""

    model_config = ConfigDict(frozen=True)

    speaking: bool = False
    ttfa_ms: float | None = None
    """Of what was started last."""
    voice: str | None = None
    """That spoke last."""


class HomeAssistant:
    """One of the bridges. Turned off, it takes back what it once has published, and rests."""

    def __init__(
        self,
        config: Config,
        post: Callable[[Inbox], None],
        *,
        version: str,
        output: str,
        left: Sequence[str],
        leave: Callable[[Sequence[str]], None],
    ) -> None:
        """`output` is what `Started` calls the loudspeaker.

        `left` are the topics that hold something of ours from before; `leave` remembers them.
        """
        self._enabled = config.homeassistant.enabled
        self._prefix, self._device = config.mqtt.topic_prefix, config.device.name
        self._version = version
        self._output = output
        self._post = post
        self._topics = Topics(self._prefix, self._device)
        self._state_topic = self._topics.of("homeassistant")
        discovery_prefix = config.homeassistant.discovery_prefix
        self._config_topic = f"{discovery_prefix}/device/{object_id(self._prefix, self._device)}/config"
        self._ours = (self._config_topic, self._state_topic) if self._enabled else ()
        self._left = set(left)
        self._leave = leave
        self._removals: set[int] = set()
        """Messages on their way."""
        self._speaking: set[str] = set()
        self._state = State()
        filters = (f"{discovery_prefix}/status",) if self._enabled else ()
        self._line = Line(config, "homeassistant", filters, self, post)

    def start(self) -> None:
        """Connect in the background."""
        self._line.start()

    def stop(self) -> None:
        """Disconnect. Idempotent."""
        self._line.stop()

    def connected(self) -> None:
        """Take back what is no longer ours, and publish what is."""
        for topic in sorted(self._left - set(self._ours)):
            number = self._line.publish(topic, "", retain=True)
            if number is not None:
                self._removals.add(number)
        if self._enabled:
            if not self._left.issuperset(self._ours):
                self._remember(self._left | set(self._ours))
            self._line.publish(self._state_topic, self._state.model_dump_json(), retain=True)
            self._ask()

    def received(self, message: Received) -> None:
        """Home Assistant has started: describe the device again."""
        message.acknowledge()
        if message.payload.strip() == _ONLINE:
            self._ask()

    def published(self, number: int) -> None:
        """Forget what the broker has removed."""
        if number in self._removals:
            self._removals.discard(number)
            if not self._removals:
                self._remember(set(self._ours))
                if not self._enabled:
                    self._line.stop()

    def told(self, event: Event, origin: Origin) -> None:
        """Follow what is heard, and describe the device once its voices are known."""
        if not self._enabled:
            return
        if isinstance(event, Voices):
            if origin.route == _ROUTE:
                self._describe([voice.name for voice in event.voices])
            return
        state = self._after(event)
        if state != self._state:
            self._state = state
            self._line.publish(self._state_topic, state.model_dump_json(), retain=True)

    def _after(self, event: Event) -> State:
        """Give the state after an event. What is rendered has another output than the loudspeaker."""
        changes: dict[str, object] = {}
        match event:
            case Started(id=command_id, ttfa_ms=ttfa_ms, output=output) if output == self._output:
                self._speaking.add(command_id)
                changes["ttfa_ms"] = ttfa_ms
            case Resumed(id=command_id):
                self._speaking.add(command_id)
            case Synthesized(id=command_id, voice=voice) if command_id in self._speaking:
                changes["voice"] = voice
            case Interrupted(id=command_id):
                self._speaking.discard(command_id)
            case _ if event.event in FINAL:
                self._speaking.discard(getattr(event, "id", ""))
            case _:
                pass
        return self._state.model_copy(update={"speaking": bool(self._speaking), **changes})

    def _ask(self) -> None:
        self._post(ControlReceived(VoicesGet(), Origin(route=_ROUTE)))

    def _describe(self, voices: Sequence[str]) -> None:
        payload = discovery(
            self._topics,
            self._state_topic,
            prefix=self._prefix,
            device=self._device,
            version=self._version,
            voices=voices,
        )
        self._line.publish(self._config_topic, json.dumps(payload, ensure_ascii=False), retain=True)

    def _remember(self, topics: set[str]) -> None:
        self._left = topics
        self._leave(sorted(topics))

"""The topics of a device: where commands come in, where it says what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from daemon.commands import COMMANDS, AnyCommand, Speak

_FILTERS: Final = ("speak", "cancel", "pause", "resume", "skip", "ping", "+/set", "+/get", "stream/quality")
"""Subscribed to under each scope: nothing that we publish ourselves matches one."""

_NO_TOPIC: Final = re.compile(
    r"[+#\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
"""Wildcards, and what MQTT 5 (1.5.4) lets a broker hang up for in a topic: control characters and non-characters. Sent
again after each hang-up, one such message would keep us off the broker for good."""

_DEEPEST: Final = 64
"""Levels of a topic to answer on. mosquitto hangs up at more than 200, EMQX at more than 128."""

_RENDER: Final = "render"
_SHARE: Final = "$share/speakd-render"


class Topics:
    """`<prefix>/<device>/...` for one device, `<prefix>/all/...` and `<prefix>/group/<g>/...` for more than one."""

    def __init__(self, prefix: str, device: str, groups: Sequence[str] = (), *, renders: bool = False) -> None:
        """Make them. `renders`: whether this device takes its share of `<prefix>/render`."""
        own = f"{prefix}/{device}"
        self._own = own
        self._prefix = prefix
        self._scopes = (own, f"{prefix}/all", *(f"{prefix}/group/{group}" for group in groups))
        self._renders = renders
        self.speak: Final = f"{own}/speak"
        self.event: Final = f"{own}/event"
        self.status: Final = f"{own}/status"
        self.settings: Final = f"{own}/settings"
        self.telemetry: Final = f"{own}/telemetry"
        self.alert: Final = f"{own}/alert"
        self._audio = f"{own}/audio"

    @property
    def filters(self) -> tuple[str, ...]:
        """What to subscribe to. The broker hands each command to render to one of those who share that topic."""
        shared = (f"{_SHARE}/{self._prefix}/{_RENDER}",) if self._renders else ()
        return tuple(f"{scope}/{end}" for scope in self._scopes for end in _FILTERS) + shared

    def of(self, end: str) -> str:
        """Give the device's own topic of this end, such as `volume/set`."""
        return f"{self._own}/{end}"

    def command(self, topic: str) -> type[AnyCommand] | None:
        """Tell which command comes on a topic; None where there is no such one."""
        if self.is_render(topic):
            return Speak
        for scope in self._scopes:
            if topic.startswith(scope + "/"):
                return COMMANDS.get(topic[len(scope) + 1 :])
        return None

    def is_render(self, topic: str) -> bool:
        """Tell whether this is the shared topic of commands to render."""
        return topic == f"{self._prefix}/{_RENDER}"

    def audio(self, command_id: str) -> str:
        """Give the topic on which a stream is published: the id, as far as a topic may hold it."""
        return f"{self._audio}/{_NO_TOPIC.sub('_', command_id).replace('/', '_')}"

    def may_answer(self, reply_to: str) -> bool:
        """Tell whether this is a topic to publish answers on: one that every broker takes, and none of ours.

        There they would be taken for commands.
        """
        if _NO_TOPIC.search(reply_to) or reply_to.count("/") >= _DEEPEST:
            return False
        return not reply_to.startswith(("$", self._prefix + "/"))

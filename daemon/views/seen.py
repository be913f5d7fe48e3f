"""What is known of a device from its messages, and how bad that is. No I/O."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from enum import IntEnum
from typing import Any, Final

from pydantic import ValidationError

from daemon.events import FINAL, QueueState, Settings, Status
from daemon.telemetry_messages import Alert, Telemetry
from daemon.views.watch import Heard
from device.errors import one_line

_HISTORY: Final = 120
"""Points of a curve: two per column of a usual terminal."""

_LONGEST: Final = 300
"""Characters of a text from outside that are shown."""

_LATE: Final = 4
"""Intervals of telemetry without a message, after which a device is silent."""

_CLOCKS_S: Final = 120.0
"""By which a device's clock may be behind ours without being thought silent."""

_MOST_DEVICES: Final = 10_000
"""Whoever can publish on the broker can invent devices."""


class Rank(IntEnum):
    """How bad things are, worst last."""

    WELL = 0
    NOTICE = 1
    WARNING = 2
    CRITICAL = 3
    GONE = 4


def clean(text: object) -> str:
    """Give a text from outside as it may be shown: one line, nothing that moves a terminal's cursor, not too long."""
    return one_line(str(text)[:_LONGEST])


class Seen:
    """One device. Times are of `time.monotonic`."""

    def __init__(self, name: str) -> None:
        self.name: Final = clean(name)
        self.status: Status | None = None
        self.settings: Settings | None = None
        self.telemetry: Telemetry | None = None
        self.queue: QueueState | None = None
        self.alerts: dict[str, Alert] = {}
        """Those that are raised, as far as they were told of since we listen; see `Telemetry.alerts` for the rest."""
        self.first_sounds_ms: deque[float] = deque(maxlen=_HISTORY)
        """Of the utterances that were heard since we listen."""
        self.p95_ms: deque[float] = deque(maxlen=_HISTORY)
        self.temperatures_c: deque[float] = deque(maxlen=_HISTORY)
        """The hottest zone's."""
        self.power_w: deque[float] = deque(maxlen=_HISTORY)
        self.last_event: Mapping[str, Any] = {}
        self.speaking: OrderedDict[str, None] = OrderedDict()
        """Ids that were started and have not ended."""
        self.telemetry_at: float | None = None
        self._unread = ""

    def take(self, heard: Heard, now: float) -> None:
        """Take a message; what cannot be read is told of by `trouble`."""
        try:
            match heard.kind:
                case "status":
                    self.status = Status.model_validate_json(heard.payload)
                case "settings":
                    self.settings = Settings.model_validate_json(heard.payload)
                case "telemetry":
                    self._take_telemetry(Telemetry.model_validate_json(heard.payload), now)
                case "alert":
                    self._take_alert(Alert.model_validate_json(heard.payload))
                case "event":
                    self._take_event(json.loads(heard.payload))
                case _:
                    pass
        except (ValidationError, ValueError, TypeError, RecursionError):
            self._unread = f"its {heard.kind} cannot be read: is it another version of speakd?"
        else:
            self._unread = ""

    def trouble(self, now: float) -> tuple[Rank, str]:
        """Tell how bad it is, and what."""
        found = [*self._states(now), *self._alerts(), *self._notices()]
        if not found:
            return Rank.WELL, ""
        worst = max(rank for rank, _ in found)
        return worst, "; ".join(clean(words) for rank, words in found if rank == worst)

    @property
    def hottest(self) -> tuple[str, float] | None:
        """The hottest zone and its temperature."""
        zones = self.telemetry.temperatures_c if self.telemetry else {}
        return max(((clean(zone), t) for zone, t in zones.items()), key=lambda one: one[1], default=None)

    @property
    def response_p95_ms(self) -> float | None:
        """The 95th percentile of the time to first audio without the queue."""
        response = self.telemetry.ttfa_ms.response if self.telemetry else None
        return response.p95 if response else None

    def _take_telemetry(self, telemetry: Telemetry, now: float) -> None:
        self.telemetry, self.telemetry_at = telemetry, now
        self.alerts = {name: alert for name, alert in self.alerts.items() if name in telemetry.alerts}
        if self.response_p95_ms is not None:
            self.p95_ms.append(self.response_p95_ms)
        if self.hottest is not None:
            self.temperatures_c.append(self.hottest[1])
        if telemetry.power_mw is not None:
            self.power_w.append(telemetry.power_mw / 1000)

    def _take_alert(self, alert: Alert) -> None:
        if alert.state == "raised":
            self.alerts[alert.alert] = alert
        else:
            self.alerts.pop(alert.alert, None)

    def _take_event(self, event: Any) -> None:  # noqa: ANN401  any JSON
        kind, command_id = event["event"], str(event.get("id"))
        if kind == "queue":
            self.queue = QueueState.model_validate(event)
            return
        if kind in {"started", "resumed"}:
            self.speaking[command_id] = None
            if len(self.speaking) > _HISTORY:
                self.speaking.popitem(last=False)
        elif kind == "interrupted" or kind in FINAL:
            self.speaking.pop(command_id, None)
        if kind == "started":
            self.first_sounds_ms.append(float(event["ttfa_ms"]))
        self.last_event = event

    def _states(self, now: float) -> Iterable[tuple[Rank, str]]:
        status = self.status
        if self._unread:
            yield Rank.WARNING, self._unread
        if status is None:
            if self.telemetry is None:
                yield Rank.NOTICE, "it has told no status"
            return
        if status.state != "online":
            yield Rank.GONE if status.state == "offline" else Rank.NOTICE, status.state
            return
        for what, said in (("sound", status.audio), ("commands", status.commands), ("connection", status.connection)):
            if said not in {None, "ok"}:
                yield Rank.CRITICAL, f"{what}: {said}"
        if self.telemetry is not None and self.telemetry_at is not None:
            longest_s = _LATE * self.telemetry.interval_s
            silent_s = now - self.telemetry_at
            if silent_s <= longest_s:  # the broker may have kept what came long ago
                silent_s = (datetime.now(timezone.utc) - self.telemetry.time).total_seconds() - _CLOCKS_S
            if silent_s > longest_s:
                yield Rank.WARNING, f"no telemetry for {silent_s:.0f} s"

    def _alerts(self) -> Iterable[tuple[Rank, str]]:
        for alert in self.alerts.values():
            rank = Rank.CRITICAL if alert.severity == "critical" else Rank.WARNING
            yield rank, f"{alert.alert}: {alert.reason}"
        for name in self.telemetry.alerts if self.telemetry else ():
            if name not in self.alerts:
                yield Rank.CRITICAL if name in _CRITICAL else Rank.WARNING, name

    def _notices(self) -> Iterable[tuple[Rank, str]]:
        if self.status is not None and self.status.power not in {None, "ok"}:
            yield Rank.NOTICE, f"the board's clocks do not follow: {self.status.power}"
        if self.telemetry is not None:
            for source, reason in self.telemetry.degraded.items():
                yield Rank.NOTICE, reason if reason.startswith(source) else f"{source}: {reason}"


_CRITICAL: Final = frozenset({"ttfa_p99", "throttling", "card_lost", "self_check", "disk_refuses"})
"""Alerts of that severity, where only their names were told: in telemetry."""


class Fleet:
    """All devices that were heard of."""

    def __init__(self) -> None:
        self.devices: dict[str, Seen] = {}

    def take(self, heard: Heard, now: float) -> None:
        """Take a message of whichever device."""
        seen = self.devices.get(heard.device)
        if seen is None:
            if len(self.devices) >= _MOST_DEVICES:
                return
            seen = self.devices[heard.device] = Seen(heard.device)
        seen.take(heard, now)

    def worst_first(self, now: float) -> list[Seen]:
        """Give them, those in most trouble first, then the slower ones."""

        def badness(seen: Seen) -> tuple[float, float, str]:
            return -seen.trouble(now)[0], -(seen.response_p95_ms or 0.0), seen.name

        return sorted(self.devices.values(), key=badness)

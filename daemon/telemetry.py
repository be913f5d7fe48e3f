"""What is seen of a device: when its figures are published, and which alerts are raised. For the main thread.

Figures are counted with the messages that the main thread handles anyway, so that no other thread waits for this one.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daemon.alerts import Alerts, Facts, rules
from daemon.config import AlertsConfig, TelemetryConfig
from daemon.events import Event
from daemon.figures import Figures, Vitals
from daemon.inbox import AudioState, Inbox, ModeChanged, ReadingTaken, SelfChecked, SpeakReceived
from daemon.journal import Journal
from daemon.self_check import Moment, SelfChecks
from daemon.telemetry_messages import Alert, Telemetry
from power.mode import Mode

_LOG = logging.getLogger(__name__)

_JUDGE_S: Final = 5.0
"""Between two judgements of alerts, however seldom figures are published; one takes 0.3 ms."""

_BUDGET: Final = 150
"""Bytes per second that changes of state may cost: after each message they wait until it is paid for."""

_RUN: Final = "run"
"""The journal's fact: how often we began again without a clean end, and whether the present run has ended."""

_STATM: Final = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True)
class Durations:
    """One stage's durations since the start."""

    buckets: tuple[int, ...]
    """As `daemon.histogram.BOUNDS_MS`."""
    sum_ms: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything as it was at one moment; for any thread."""

    figures: Telemetry
    durations: dict[str, Durations]
    """By stage."""


class Desk:
    """Decides what is published when. All methods return at once."""

    def __init__(
        self,
        config: TelemetryConfig,
        alerts: AlertsConfig,
        figures: Figures,
        *,
        probe: Callable[[], Vitals],
        publish: Callable[[Telemetry], int],
        alert: Callable[[Alert], None],
        checks: SelfChecks | None = None,
    ) -> None:
        """`probe` asks others for what they know; `publish` gives how many bytes it sent."""
        self._checks = checks
        if checks is not None:
            figures.self_check = checks.last
        self._interval_s = config.interval_s
        self._figures = figures
        self._alerts = Alerts(rules(alerts))
        self._probe = probe
        self._publish = publish
        self._alert = alert
        self._audio_problem = ""
        self._due_at = -math.inf
        self._judge_at = -math.inf
        self._changes_at = -math.inf
        """Before this, changes of state wait."""
        self._changed = False
        self.latest: Snapshot | None = None
        """Replaced as a whole; any thread may read it."""

    @property
    def next_at(self) -> float:
        """When `tend` wants to be called, in seconds of `time.monotonic`."""
        change_at = max(self._changes_at, 0.0) if self._changed else math.inf
        check_at = math.inf if self._checks is None else self._checks.next_at
        return min(self._due_at, self._judge_at, change_at, check_at)

    def take(self, message: Inbox, now: float) -> None:
        """Count a message, before the speaker handles it."""
        if self._checks is not None and isinstance(message, SpeakReceived):
            self._checks.disturb(now)
        match message:
            case ReadingTaken(reading):
                before = self._figures.reading
                self._figures.read(reading, now)
                if before is None or (before.throttling, before.degraded, before.power_mode) != (
                    reading.throttling,
                    reading.degraded,
                    reading.power_mode,
                ):
                    self._note_change()
            case ModeChanged(decision):
                known, self._figures.decision = self._figures.decision, decision
                if known is None or known.mode is not decision.mode:  # other reasons for the same can wait
                    self._note_change()
            case AudioState(problem):
                if problem != self._audio_problem:
                    self._audio_problem = problem
                    self._judge_at = min(self._judge_at, now)
            case SelfChecked():
                self._checked(message, now)
            case _:
                self._figures.take(message, now)

    def hear(self, event: Event, now: float) -> None:
        """Count what becomes of a command."""
        self._figures.hear(event, now)

    def tend(self, now: float) -> None:
        """Judge and publish what is due."""
        if now < self.next_at:
            return
        vitals = self._probe()
        if self._checks is not None:
            self._checks.tend(self._moment(vitals), now)
        figures = self._figures.snapshot(vitals, now, self._interval_s)
        facts = Facts(
            figures,
            self._figures.durations["response"].count(now),
            self._figures.drop_percent(vitals, now),
            self._audio_problem,
        )
        for change in self._alerts.judge(facts, now):
            _LOG.log(
                logging.WARNING if change.state == "raised" else logging.INFO,
                "alert %s is %s: %s",
                change.alert,
                change.state,
                change.reason,
            )
            self._alert(change)
            self._changed = True
        self._judge_at = now + _JUDGE_S
        figures = figures.model_copy(update={"alerts": self._alerts.raised})
        durations = {
            stage: Durations(tuple(rolling.total), rolling.sum_ms) for stage, rolling in self._figures.durations.items()
        }
        self.latest = Snapshot(figures, durations)
        if now >= self._due_at or (self._changed and now >= self._changes_at):
            size = self._publish(figures)
            self._changed = False
            self._due_at = now + self._interval_s
            self._changes_at = now + size / _BUDGET

    def _checked(self, message: SelfChecked, now: float) -> None:
        found = None if self._checks is None else self._checks.take(message, now)
        if found is not None:
            self._figures.self_check = found
            self._judge_at = min(self._judge_at, now)
            self._note_change()

    def _moment(self, vitals: Vitals) -> Moment:
        reading, decision = self._figures.reading, self._figures.decision
        return Moment(
            idle=not (vitals.speaking or vitals.queue or vitals.rendering),
            hottest=None if reading is None else reading.hottest,
            strained=bool(reading and reading.throttling) or (decision is not None and decision.mode is Mode.PROTECT),
        )

    def _note_change(self) -> None:
        self._changed = True


def resident_bytes() -> int | None:
    """Give what this process takes of memory; None where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


def begin_run(journal: Journal) -> int:
    """Note that a run begins; gives how often one did without a clean end of the one before."""
    ended, _, count = (journal.recall(_RUN) or "ended 0").partition(" ")
    restarts = int(count) if count.isdecimal() else 0
    restarts += ended != "ended"
    journal.remember(_RUN, f"begun {restarts}")
    return restarts


def end_run(journal: Journal, restarts: int) -> None:
    """Note that this run ends as it should."""
    journal.remember(_RUN, f"ended {restarts}")

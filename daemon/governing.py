"""The governor's place in the daemon: what it is told, and who obeys. Its state is here, and the main thread's."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Final

from daemon.clock import PLAUSIBLE_WALL, Clock
from daemon.config_power import PowerConfig
from daemon.inbox import Inbox, ModeApplied, ModeChanged, ReadingTaken, SpeakReceived
from daemon.journal import Journal
from daemon.power_watch import BoardHand, SensorWatch
from daemon.speaker import Speaker
from power.busy_hours import BusyHours
from power.governor import Demand, Policy, State, decide
from power.heat import Thresholds, thresholds_below
from power.helper_client import HelperClient
from power.limits import Limits, read_limits
from power.mode import Decision
from power.modes import Modes
from power.reading import Reading
from power.sensors import Sensors

_LOG = logging.getLogger(__name__)

_FACT: Final = "busy hours"

_RESTORE_S: Final = 5.0
"""For the board's clocks to be put back. The helper does it too, once we are gone."""

_RAISES: Final = 5
"""Of the clocks whose median tells what one costs: a busy machine may be late once."""


class Governing:
    """Tells the governor what happens, and everybody what it decides. For the main thread, which handles messages."""

    def __init__(
        self,
        policy: Policy,
        speaker: Speaker,
        journal: Journal,
        watch: SensorWatch,
        hand: BoardHand,
        *,
        obey: Callable[[Decision], None],
        post: Callable[[Inbox], None],
    ) -> None:
        """`obey` makes the voice follow a decision; it must return at once."""
        self._policy = policy
        self._speaker = speaker
        self._journal = journal
        self._watch = watch
        self._hand = hand
        self._obey = obey
        self._post = post
        self._state = State()
        self._reading: Reading | None = None
        self._decision: Decision | None = None
        self._hours = _recalled(journal)
        self._kept_hour = -1
        self._busy_at = time.monotonic()
        self._raises_s: deque[float] = deque(maxlen=_RAISES)

    def start(self) -> None:
        """Start with the engines warm, as they are."""
        self._watch.start()
        self._hand.start()
        self._decide(Clock.now(), waiting=self._speaker.busy)

    def before(self, message: Inbox, at: Clock) -> None:
        """Take note of a message before anybody acts on it: a voice that is asked to speak does so quickly."""
        if isinstance(message, SpeakReceived):
            if at.wall >= PLAUSIBLE_WALL:
                day, hour = _day_and_hour(at)
                self._hours = self._hours.with_command(day, hour)
            self._watch.look_soon()
            self._decide(at, waiting=self._speaker.busy + 1)

    def after(self, message: Inbox, at: Clock) -> None:
        """Take note of a message that was acted on."""
        match message:
            case ReadingTaken(reading):
                self._reading = reading
                self._turn_hour(at)
            case ModeApplied(applied, raised):
                if raised:
                    self._raises_s.append(applied.took_s)
                return
            case ModeChanged():
                return
        self._decide(at, waiting=self._speaker.busy)

    def stop(self) -> None:
        """Have the board put back as it was found; `join` waits for it."""
        self._watch.stop()
        self._hand.stop()
        self._journal.remember(_FACT, self._hours.to_text())

    def join(self) -> None:
        """Wait a little for that; a thread that hangs is left behind."""
        deadline = time.monotonic() + _RESTORE_S
        for thread in (self._hand, self._watch):
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _decide(self, at: Clock, *, waiting: int) -> None:
        now = at.monotonic
        if waiting:
            self._busy_at = now
        demand = Demand(
            now,
            waiting=waiting,
            idle_s=max(0.0, now - self._busy_at),
            usual=self._is_usual(at),
            wanted=self._speaker.wanted_mode,
            switch_s=median(self._raises_s) if self._raises_s else None,
        )
        decision, self._state = decide(self._reading, demand, self._state, self._policy)
        if decision != self._decision:
            if self._decision is None or decision.mode is not self._decision.mode:
                _LOG.info("mode %s: %s", decision.mode.value, decision.reason)
            self._decision = decision
            self._obey(decision)
            self._hand.apply(decision)
            self._post(ModeChanged(decision))

    def _is_usual(self, at: Clock) -> bool:
        return at.wall >= PLAUSIBLE_WALL and self._hours.usual(*_day_and_hour(at))

    def _turn_hour(self, at: Clock) -> None:
        """Write down once an hour what was learned; not while a command begins, which the disk would delay."""
        day, hour = _day_and_hour(at)
        if at.wall >= PLAUSIBLE_WALL and hour != self._kept_hour:
            self._kept_hour = hour
            self._hours = self._hours.at(day)
            self._journal.remember(_FACT, self._hours.to_text())


def make_governing(
    config: PowerConfig,
    speaker: Speaker,
    journal: Journal,
    *,
    obey: Callable[[Decision], None],
    post: Callable[[Inbox], None],
) -> Governing:
    """Make it and its threads for this board. Takes about a second where its sensors hang."""
    root = Path(config.root)

    def make_modes() -> tuple[Modes, Callable[[], None]]:
        client = HelperClient(Path(config.helper), root)
        return Modes(client), client.close

    watch = SensorWatch(lambda: Sensors(root, jtop=config.jtop), post, interval_s=config.interval_s)
    policy = Policy(thresholds_of(config, read_limits(root)), config.idle_s, config.battery_low)
    return Governing(policy, speaker, journal, watch, BoardHand(make_modes, post), obey=obey, post=post)


def thresholds_of(config: PowerConfig, limits: Limits) -> Thresholds:
    """Say where protect begins: as configured, else a margin below what the board itself tells."""
    hysteresis_mc = config.hysteresis_c * 1000
    if config.protect_c is not None:
        return Thresholds(elsewhere=config.protect_c * 1000, hysteresis_mc=hysteresis_mc)
    return thresholds_below(limits, hysteresis_mc=hysteresis_mc)


def _day_and_hour(at: Clock) -> tuple[int, int]:
    """Give the day as an ordinal and the hour, both where the device is."""
    local = datetime.fromtimestamp(at.wall).astimezone()
    return local.toordinal(), local.hour


def _recalled(journal: Journal) -> BusyHours:
    kept = journal.recall(_FACT)
    try:
        return BusyHours() if kept is None else BusyHours.from_text(kept)
    except ValueError as error:
        _LOG.warning("what hours are busy is learned anew: %s", error)
        return BusyHours()

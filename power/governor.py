"""What to do now: a pure function of what the sensors say, of what is asked of the voice, and of what was before.

No clock and no I/O: time comes in as numbers. What keeps it calm, beside what `power.heat` leaves out:

* Protect begins at a threshold, or before it where the temperature will have risen there in half a minute. It ends
  only `hysteresis_mc` below. A slope counts for so little that a temperature which swings by 2 °C cannot do both.
* Someone who waits is served at once. Nobody waiting, the engines are kept for a while, and let go at most twice an
  hour; the clocks, which cost next to nothing to raise, go down after each utterance ("race to idle").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from power.heat import Heat, Temperatures, Thresholds
from power.mode import Decision, Mode
from power.reading import Reading

_ALERT_HOLD_S: Final = 60.0
_MOST_DOUBLINGS: Final = 4
"""After an alert of the kernel, as it would throttle again. Where it did so within the last hour, twice as long each
time: a supply that gives in whenever clocks are up would else have them up and down each minute."""

_DWELL_S: Final = 120.0
"""Least time in protect while nobody waits."""

_MOST_DROPS: Final = 2
_HOUR_S: Final = 3600.0
"""Times an hour that engines are let go: commands that come just after would else make the mode change for each."""

_LINGER_S: Final = 1.5
"""Clocks stay up between two sentences of one speaker."""

RACE_S: Final = 0.02
"""A raise of the clocks that takes longer would be heard: it runs beside text and phonemes, some 20 ms on a board."""

_BATTERY_OK: Final = 5
"""Percent above the least, from which a battery is no longer low."""

_BATTERY_HOLD_S: Final = 60.0
"""After it was low last: a charger's contact may be loose, and its gauge silent for a while."""

_REST_S: Final = 0.3
_LONG_REST_S: Final = 1.5
"""Between two utterances: a breath; above the threshold a pause that is heard, but that nobody takes for the end.

In the simulation rests of 1 and 3 s made the die 1 °C cooler still, and each second of a dialogue that much later."""

_WARM_MC: Final = 10_000
"""So near a threshold clocks go down between utterances whatever a raise costs: a rest would cost more."""

_COMPLEXITY: Final = {Mode.LATENCY: None, Mode.EFFICIENCY: 3, Mode.PROTECT: 1}
"""Of the Opus encoder, at most."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What this board bears and its owner wants."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    idle_s: float = 120.0
    """Without a command for so long, engines are let go, unless commands are usual at this hour."""
    battery_low: int = 20
    """Percent; not above it, and not charging, efficiency is preferred."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of the voice."""

    now_s: float
    """On the clock of `Reading.at_s`."""
    waiting: int = 0
    """Commands for which there is something to be computed, now or as soon as it is their turn."""
    idle_s: float = math.inf
    """Since there last was one; 0 while there is."""
    usual: bool = False
    """Whether commands are usual at this hour."""
    wanted: Mode | None = None
    """What somebody has asked for, for a time."""
    switch_s: float | None = None
    """What it last took to raise the clocks; None: never measured."""


@dataclass(frozen=True, slots=True)
class State:
    """What `decide` remembers; to be given to its next call and otherwise left alone."""

    decision: Decision | None = None
    since_s: float = -math.inf
    """When this mode began."""
    taken_s: float = -math.inf
    """When the newest reading was taken that is known."""
    temperatures: Temperatures = field(default_factory=Temperatures)
    alert: str = ""
    alert_until_s: float = -math.inf
    alerts: tuple[float, ...] = ()
    """When alerts came after such a time was over, within the last hour."""
    over_current: Mapping[str, int] = field(default_factory=dict)
    battery_low: bool = False
    battery_s: float = -math.inf
    """When it was low last."""
    battery_doubt: bool = False
    """Whether the last reading alone calls it low."""
    drops: tuple[float, ...] = ()
    """When engines were let go, within the last hour."""

    @property
    def mode(self) -> Mode | None:
        """The mode that was decided on last."""
        return self.decision.mode if self.decision else None


def decide(reading: Reading | None, demand: Demand, state: State, policy: Policy) -> tuple[Decision, State]:
    """Say what is to be done from now on, and what to remember.

    `reading` is the newest there is; one that was given before is not counted twice. Never raises.
    """
    state = _observed(reading, demand.now_s, state, policy)
    heat = state.temperatures.heat(demand.now_s)
    mode, reason = _mode(demand, state, heat, policy)
    before = state.decision
    if before is not None and mode is before.mode:
        # The reason is why this mode began: it stays as long as that, and so does a decision that changes nothing.
        decision = _decision(mode, before.reason, demand, heat, policy)
        return decision, replace(state, decision=decision)
    decision = _decision(mode, reason, demand, heat, policy)
    dropped = state.mode is Mode.LATENCY and mode is Mode.EFFICIENCY
    drops = (*state.drops, demand.now_s) if dropped else state.drops
    return decision, replace(state, decision=decision, since_s=demand.now_s, drops=drops)


def _observed(reading: Reading | None, now_s: float, state: State, policy: Policy) -> State:
    """Take note of a new reading, and forget what is too old."""
    state = replace(
        state,
        temperatures=state.temperatures.at(now_s),
        drops=tuple(at for at in state.drops if now_s - at < _HOUR_S),
        alerts=tuple(at for at in state.alerts if now_s - at < _HOUR_S),
        battery_low=now_s - state.battery_s < _BATTERY_HOLD_S,
    )
    if reading is None or reading.at_s <= state.taken_s:
        return state
    state = _with_battery(reading, _with_alert(reading, state), policy)
    return replace(
        state,
        taken_s=reading.at_s,
        temperatures=state.temperatures.with_reading(reading, policy.thresholds),
        over_current={**state.over_current, **reading.over_current_events},
    )


def _with_alert(reading: Reading, state: State) -> State:
    """Take note of what the kernel tells of."""
    alert = _alert(reading, state)
    if not alert:
        return state
    alerts = state.alerts if reading.at_s < state.alert_until_s else (*state.alerts, reading.at_s)
    hold_s = _ALERT_HOLD_S * 2 ** max(0, min(len(alerts) - 1, _MOST_DOUBLINGS))
    return replace(state, alert=alert, alerts=alerts, alert_until_s=max(state.alert_until_s, reading.at_s + hold_s))


def _alert(reading: Reading, state: State) -> str:
    """Say what the kernel tells of; empty where nothing is new."""
    if reading.throttling:
        return f"the kernel slows down: {', '.join(sorted(reading.throttling))}"
    for counter, events in reading.over_current_events.items():
        if events > state.over_current.get(counter, events):
            return f"the supply gave in: {counter}"
    return ""


def _with_battery(reading: Reading, state: State, policy: Policy) -> State:
    """Take note of a battery that two readings, one after another, call low."""
    battery = reading.battery
    if battery is None or battery.percent is None:
        return state
    bound = policy.battery_low + (_BATTERY_OK if state.battery_low else 0)
    if battery.charging is True or battery.percent > bound:
        return replace(state, battery_doubt=False)
    if not state.battery_doubt and not state.battery_low:
        return replace(state, battery_doubt=True)
    return replace(state, battery_low=True, battery_s=reading.at_s, battery_doubt=False)


def _mode(demand: Demand, state: State, heat: Heat, policy: Policy) -> tuple[Mode, str]:
    """Choose the mode: protect where it must be, else by what is asked."""
    since_s = demand.now_s - state.since_s
    stays = state.mode is Mode.PROTECT and (
        not heat.cool(policy.thresholds.hysteresis_mc) or (not demand.waiting and since_s < _DWELL_S)
    )
    keeps_coming = state.mode is Mode.LATENCY and len(state.drops) >= _MOST_DROPS
    rules = (
        (demand.wanted is Mode.PROTECT, Mode.PROTECT, "asked for"),
        (demand.now_s < state.alert_until_s, Mode.PROTECT, state.alert),
        (heat.hot or stays, Mode.PROTECT, str(heat)),
        (demand.wanted is Mode.EFFICIENCY, Mode.EFFICIENCY, "asked for"),
        (heat.maybe_hot and state.mode is not Mode.LATENCY, Mode.EFFICIENCY, str(heat)),
        (demand.wanted is Mode.LATENCY, Mode.LATENCY, "asked for"),
        (state.battery_low, Mode.EFFICIENCY, "the battery is low"),
        (demand.waiting > 0, Mode.LATENCY, "a command came"),
        (demand.usual, Mode.LATENCY, "commands are usual at this hour"),
        (demand.idle_s < policy.idle_s, Mode.LATENCY, "a command came a short while ago"),
        (keeps_coming, Mode.LATENCY, "commands keep coming"),
        (True, Mode.EFFICIENCY, "nobody has spoken for a while"),
    )
    return next((mode, reason) for holds, mode, reason in rules if holds)


def _decision(mode: Mode, reason: str, demand: Demand, heat: Heat, policy: Policy) -> Decision:
    """Say what belongs to a mode."""
    warm = heat.headroom is not None and heat.headroom < _WARM_MC
    cheap = demand.switch_s is not None and (warm or demand.switch_s <= RACE_S)
    resting = not demand.waiting and demand.idle_s >= _LINGER_S
    rest_s = 0.0
    if mode is Mode.PROTECT:
        rest_s = _LONG_REST_S if heat.headroom is not None and heat.headroom <= 0 else _REST_S
    return Decision(
        mode,
        reason,
        clocks_capped=mode is not Mode.LATENCY or (resting and cheap),
        engines_warm=mode is not Mode.EFFICIENCY or demand.idle_s < policy.idle_s,
        large_windows=mode is not Mode.LATENCY,
        encoder_complexity=_COMPLEXITY[mode],
        rendering_paused=mode is Mode.PROTECT,
        rest_s=rest_s,
    )

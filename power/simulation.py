"""A day of a kiosk, simulated: the governor beside a board that always runs at full clocks, and one that never does.

The governor is `power.governor.decide` itself, asked when a daemon would ask it: at each reading, each command, each
utterance's end. See `power.simulated_board` for the board, what is published of it and what is assumed.

The day: visitors come at random, most at noon and after work, and hear one to four utterances each. Outdoors it is 24
to 40 °C, and in the afternoon the sun warms the cabinet by up to 20 °C more. The day before, with visitors of its own,
has taught which hours are busy.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Final, Literal

from power.busy_hours import BusyHours
from power.governor import Demand, Policy, State, decide
from power.heat import thresholds_below
from power.mode import Decision, Mode
from power.reading import Reading
from power.simulated_board import Model, SimulatedBoard

DAY_S: Final = 86_400.0
HOUR_S: Final = 3600.0
INTERVAL_S: Final = 2.0

VISITS: Final = (0, 0, 0, 0, 0, 0, 1, 3, 12, 25, 30, 35, 45, 40, 30, 30, 35, 45, 30, 15, 6, 2, 1, 0)
"""Per hour of the day, on average."""

COOLEST_C: Final = 24.0
OUTDOORS_C: Final = 40.0
SUN_C: Final = 20.0

FIRST_S: Final = 0.03
FIRST_PER_S: Final = 0.007
REAL_TIME_FACTOR: Final = 0.15
"""Of a voice at full clocks, see `simulated_board`: computing to the first sound, its share that grows with the length
of the speech, and all of it; the latter two per second of speech."""

ON_THE_WAY_S: Final = 0.004
"""From the broker to the engine: measured with the daemon on a PC."""

RAISE_S: Final = 0.01
"""Until clocks are up, through the helper: 2 to 13 ms on a PC."""

COLD_S: Final = 0.003
"""What the first utterance costs more after engines were let go: measured on a PC."""

LARGE_FIRST: Final = 1.5
LARGE_WORK: Final = 0.84
"""Large windows: first sound and work, as shares of those with small ones; a sentence of 3.7 s."""

Strategy = Literal["governor", "always_max", "always_low"]
STRATEGIES: Final[tuple[Strategy, ...]] = ("governor", "always_max", "always_low")

_MAX: Final = Decision(Mode.LATENCY, "always")
_LOW: Final = Decision(Mode.EFFICIENCY, "always", clocks_capped=True)


@dataclass(frozen=True, slots=True)
class Command:
    """One utterance that is asked for, and how long it is heard."""

    at_s: float
    audio_s: float


@dataclass(slots=True)
class Course:
    """How one strategy fared; the lists are for pictures."""

    throttle_events: int = 0
    energy_j: float = 0.0
    max_temperature_c: float = 0.0
    switches: int = 0
    """From one mode to another."""
    first_sounds: list[tuple[float, float]] = field(default_factory=list)
    """When a command came, and what it then took to its first sound; seconds. Counted from when it came or, later, from
    when the one before it fell silent: waiting for others to have spoken is no strategy's doing, rests are."""
    temperatures: list[tuple[float, float]] = field(default_factory=list)
    energies: list[tuple[float, float]] = field(default_factory=list)
    modes: list[tuple[float, Mode]] = field(default_factory=list)
    """Since when which."""

    def first_sound_ms(self, percent: int) -> float:
        """Give a percentile of the time to first sound; milliseconds."""
        waits = [wait_s for _, wait_s in self.first_sounds]
        return 1000 * quantiles(waits, n=100)[percent - 1] if len(waits) > 1 else math.nan

    def figures(self) -> dict[str, float]:
        """Give what is compared."""
        return {
            "throttle_events": self.throttle_events,
            "first_sound_p50_ms": round(self.first_sound_ms(50), 1),
            "first_sound_p95_ms": round(self.first_sound_ms(95), 1),
            "energy_j": round(self.energy_j),
            "max_temperature_c": round(self.max_temperature_c, 1),
            "switches": self.switches,
        }


def air_c(at_s: float, sun_c: float = SUN_C) -> float:
    """Give the temperature in the cabinet at a time of the day: coolest at 3, hottest at 15, with sun from 9 to 19."""
    hour = at_s / HOUR_S % 24
    outdoors = (OUTDOORS_C + COOLEST_C) / 2 - (OUTDOORS_C - COOLEST_C) / 2 * math.cos((hour - 3) / 24 * math.tau)
    return outdoors + sun_c * max(0.0, math.sin((hour - 9) / 10 * math.pi)) if 9 <= hour <= 19 else outdoors  # noqa: PLR2004


def traffic(seed: int) -> list[Command]:
    """Draw a day's commands, in order."""
    rng = random.Random(seed)  # noqa: S311  a simulation
    commands = []
    for hour, visits in enumerate(VISITS):
        at_s = hour * HOUR_S
        while visits and (at_s := at_s + rng.expovariate(visits / HOUR_S)) < (hour + 1) * HOUR_S:
            said_s = at_s
            for _ in range(rng.randint(1, 4)):
                audio_s = min(12.0, max(0.6, rng.lognormvariate(math.log(3), 0.5)))
                commands.append(Command(said_s, audio_s))
                said_s += rng.expovariate(1 / (audio_s + 4))
    return sorted((one for one in commands if one.at_s < DAY_S), key=lambda one: one.at_s)


def simulate(model: Model, strategy: Strategy, *, seed: int = 1, sun_c: float = SUN_C) -> Course:
    """Let one strategy run a day."""
    return _Day(model, strategy, seed, sun_c).run()


class _Day:
    """One run. Commands are spoken one after another; while one is computed the board is busy."""

    def __init__(self, model: Model, strategy: Strategy, seed: int, sun_c: float) -> None:
        self._strategy = strategy
        self._sun_c = sun_c
        self._rng = random.Random(seed)  # noqa: S311  a simulation
        self._arrivals = deque(traffic(seed))
        self._waiting: deque[Command] = deque()
        self._board = SimulatedBoard(model, air_c(0, sun_c))
        self._policy = Policy(thresholds_below(model.limits))
        self._hours = BusyHours()
        for command in traffic(seed + 1):
            self._hours = self._hours.with_command(1, int(command.at_s / HOUR_S))
        self._state = State()
        self._decision = _LOW if strategy == "always_low" else _MAX
        self._reading: Reading | None = None
        self._now = 0.0
        self._next_reading = 0.0
        self._busy_until = self._speaks_until = self._rests_until = self._raised_at = -math.inf
        self._is_cold = False
        self._busy_at = 0.0
        self._course = Course(modes=[(0.0, self._decision.mode)])

    def run(self) -> Course:
        """Go from event to event until the day is over."""
        while self._now < DAY_S:
            if self._arrivals and self._arrivals[0].at_s <= self._now:
                command = self._arrivals.popleft()
                self._waiting.append(command)
                self._hours = self._hours.with_command(2, int(command.at_s / HOUR_S))
                self._decide()
            if self._now >= self._next_reading:
                self._read()
            if self._waiting and self._now >= max(self._speaks_until, self._rests_until):
                self._speak(self._waiting.popleft())
            self._advance(self._next_event())
        course, board = self._course, self._board
        course.throttle_events, course.energy_j = board.throttle_events, board.energy_j
        course.max_temperature_c = board.hottest_c
        return course

    def _next_event(self) -> float:
        events = [self._next_reading, self._busy_until, self._speaks_until]
        if self._waiting:
            events.append(self._rests_until)
        if self._arrivals:
            events.append(self._arrivals[0].at_s)
        return min(at for at in (*events, DAY_S) if at > self._now)

    def _advance(self, to_s: float) -> None:
        was_busy, was_speaking = self._now < self._busy_until, self._now < self._speaks_until
        self._board.advance(to_s - self._now, busy=was_busy)
        self._now = to_s
        if was_speaking and to_s >= self._speaks_until:
            self._rests_until = to_s + self._decision.rest_s
        if was_busy and to_s >= self._busy_until:
            self._decide()

    def _read(self) -> None:
        board, course = self._board, self._course
        self._next_reading = self._now + INTERVAL_S
        board.air_c = air_c(self._now, self._sun_c)
        shown_c = round((board.die_c + self._rng.gauss(0, 0.3)) * 2) / 2  # steps of half a degree, as the board has
        alerts = ("cpu-throttle-alert",) if board.throttled else ()
        self._reading = Reading(self._now, {"tj": round(shown_c * 1000)}, throttling=alerts)
        self._decide()
        if not course.temperatures or self._now - course.temperatures[-1][0] >= 60:  # noqa: PLR2004  each minute
            course.temperatures.append((self._now, board.die_c))
            course.energies.append((self._now, board.energy_j))

    def _decide(self) -> None:
        if self._strategy == "governor":
            waiting = len(self._waiting) + (self._now < self._busy_until)
            self._busy_at = self._now if waiting else self._busy_at
            demand = Demand(
                self._now,
                waiting=waiting,
                idle_s=self._now - self._busy_at,
                usual=self._hours.usual(2, int(self._now / HOUR_S) % 24),
                switch_s=RAISE_S,
            )
            before = self._decision
            self._decision, self._state = decide(self._reading, demand, self._state, self._policy)
            if self._decision.mode is not before.mode:
                self._course.modes.append((self._now, self._decision.mode))
                self._course.switches += 1
            self._is_cold = self._is_cold or not self._decision.engines_warm
        if self._board.capped and not self._decision.clocks_capped:
            self._raised_at = self._now + RAISE_S
        self._board.capped = self._decision.clocks_capped

    def _speak(self, command: Command) -> None:
        """Compute from now on, and be heard once the first part is there."""
        large = self._decision.large_windows and self._strategy == "governor"
        first = (FIRST_S + FIRST_PER_S * command.audio_s) * (LARGE_FIRST if large else 1) + (
            COLD_S if self._is_cold else 0
        )
        whole = max(first, REAL_TIME_FACTOR * command.audio_s * (LARGE_WORK if large else 1))
        self._is_cold = False
        turn_s = max(command.at_s, self._speaks_until)
        heard_at = self._now + ON_THE_WAY_S + self._computing_s(first)
        self._busy_until = self._now + self._computing_s(whole)
        self._speaks_until = heard_at + command.audio_s
        self._course.first_sounds.append((turn_s, heard_at - turn_s))

    def _computing_s(self, work_s: float) -> float:
        """Give how long it takes to compute what takes `work_s` at full clocks, which may only just be coming up."""
        slow_s, share = max(0.0, self._raised_at - self._now), self._board.model.capped_share
        if work_s <= slow_s * share:
            return work_s / share
        return slow_s + (work_s - slow_s * share) / self._board.speed

"""A model of a board that speaks: what it draws, how warm it becomes, how quickly it computes.

Published, of a Jetson Orin Nano Super 8 GB (JetPack 6.2, headless; https://picocluster-claw.com/reference/benchmarks/,
one report, read in an excerpt): it draws 5.2 W idle in the mode 15W and 9.1 W idle in MAXN, 11.7 and 16.0 W on average
while its GPU infers; 17 to 20 W for long, with its fan, took the die from 51 to 67-68 °C within some minutes. The mode
15W holds the GPU at 612 of 1020 MHz. Its trip points are 99 °C (passive) and 104.5 °C (critical).

Assumed, for nobody has published it or measured it yet:

* 9.1 W is what idle costs with clocks pinned at their highest, and 5.2 W with clocks capped at 0.6 of that. The same
  report has 5.7 W for idle in MAXN after a soak, which would be clocks that scale down by themselves. A saving in
  energy stands and falls with the first of these figures.
* Idle power grows by 0.5 % per degree of the die above 50 °C (leakage).
* In a cabinet there is no fan: a finned block of 100 x 70 x 30 mm in still air, 3 K/W to the air in the cabinet and 180
  J/K; from die to block 0.6 K/W, 8 J/K. With the fan of the developer kit, 0.7 K/W fit the report.
* The kernel, where it throttles, halves the clocks until the die is 5 °C below the trip point.
* A voice takes 30 ms of computing to its first sound and 7 ms more for each second that the text is long; in all 0.15
  of the speech's length. That is at full clocks, and in inverse proportion to them. It draws what GPU inference draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from power.limits import Limits, TripPoint

LEAKAGE_PER_K: Final = 0.005
LEAKAGE_FROM_C: Final = 50.0
THROTTLED_SHARE: Final = 0.5
HYSTERESIS_C: Final = 5.0


@dataclass(frozen=True, slots=True)
class Model:
    """One board in one place. Powers in W, heat resistances in K/W, heat capacities in J/K."""

    name: str
    to_air: float
    idle_pinned_w: float = 9.1
    idle_capped_w: float = 5.2
    busy_pinned_w: float = 16.0
    busy_capped_w: float = 11.7
    capped_share: float = 0.6
    """Of the highest clocks."""
    throttle_c: float = 99.0
    critical_c: float = 104.5
    sink: float = 180.0
    die: float = 8.0
    to_sink: float = 0.6

    @property
    def limits(self) -> Limits:
        """What it tells of itself."""
        points = (("passive", self.throttle_c), ("critical", self.critical_c))
        return Limits({"tj": tuple(TripPoint(kind, round(celsius * 1000)) for kind, celsius in points)})


BOARDS: Final[Mapping[str, Model]] = {
    "orin-nano-super": Model("Jetson Orin Nano Super, without a fan in a cabinet", to_air=3.0),
    "orin-nano-super-fan": Model("Jetson Orin Nano Super with its fan", to_air=0.7),
}


@dataclass(slots=True)
class SimulatedBoard:
    """Its state, which goes on by `advance`."""

    model: Model
    air_c: float
    sink_c: float = field(init=False)
    die_c: float = field(init=False)
    capped: bool = False
    throttled: bool = False
    throttle_events: int = 0
    energy_j: float = 0.0
    hottest_c: float = -math.inf

    def __post_init__(self) -> None:
        """Begin in balance, idle and capped."""
        model = self.model
        self.sink_c = self.air_c + model.idle_capped_w * model.to_air
        self.die_c = self.sink_c + model.idle_capped_w * model.to_sink

    @property
    def speed(self) -> float:
        """How fast it computes now, 1 at full clocks."""
        share = self.model.capped_share if self.capped else 1.0
        return min(share, THROTTLED_SHARE) if self.throttled else share

    def power_w(self, *, busy: bool) -> float:
        """Give what it draws now."""
        model, slow = self.model, self.capped or self.throttled
        idle_w = model.idle_capped_w if slow else model.idle_pinned_w
        leakage_w = idle_w * LEAKAGE_PER_K * max(0.0, self.die_c - LEAKAGE_FROM_C)
        busy_w = model.busy_capped_w if slow else model.busy_pinned_w
        return (busy_w if busy else idle_w) + leakage_w

    def advance(self, seconds: float, *, busy: bool) -> None:
        """Let time pass; some seconds at most, in which power is constant."""
        model, power_w = self.model, self.power_w(busy=busy)
        to_c = self.air_c + power_w * model.to_air
        self.sink_c = to_c + (self.sink_c - to_c) * math.exp(-seconds / (model.to_air * model.sink))
        to_c = self.sink_c + power_w * model.to_sink
        self.die_c = to_c + (self.die_c - to_c) * math.exp(-seconds / (model.to_sink * model.die))
        self.energy_j += power_w * seconds
        self.hottest_c = max(self.hottest_c, self.die_c)
        if not self.throttled and self.die_c >= model.throttle_c:
            self.throttled = True
            self.throttle_events += 1
        elif self.throttled and self.die_c <= model.throttle_c - HYSTERESIS_C:
            self.throttled = False

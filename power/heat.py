"""How near the board is to its thresholds, and where that leads: what is remembered of its temperatures.

A zone counts by the median of its last three values, so that one outlier changes nothing; and for a minute after its
last one, since parts that are switched off between two utterances, as a GPU, are as warm when they come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Final

from power.limits import Limits
from power.reading import Reading

LEAST_HYSTERESIS_MC: Final = 5000
"""Below its threshold a zone is cool again: by more than a swing of 2 °C with the 2 °C that its slope may add."""

_MARGIN_MC: Final = 10_000
"""Below where the kernel throttles. A Jetson's die moves by some 5 °C within a sentence, and its sensors by 1 °C."""

_CRITICAL_MARGIN_MC: Final = 15_000
"""Below where the board shuts down, for zones that only tell that: on an Orin the two are 5.5 °C apart."""

_LEAST_TRIP_MC: Final = 60_000
"""Lower ones are no limits of silicon: laptops have some for the comfort of their owners' knees."""

_MEDIAN_OF: Final = 3
_FRESH_S: Final = 60.0
"""A temperature that is older says nothing about now."""

_TREND_S: Final = 90.0
_TREND_STEP_S: Final = 1.5
_LEAST_TREND_S: Final = 30.0
"""The slope is that between the first and the last three of some 60 values, none of them an outlier. Over less than
half a minute a swing would look like a trend."""

_LOOK_AHEAD_S: Final = 30.0
"""A die follows its load within seconds, a heat sink within minutes. So late would what is done now be felt."""

_MOST_AHEAD_MC: Final = 5000
"""What a slope may count for: a board that is warming up from cold is no board that is hot."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How warm each zone of this board may become before something is done about it."""

    zones: Mapping[str, int] = field(default_factory=dict)
    """Zone -> thousandths of a degree Celsius."""
    elsewhere: int | None = None
    """For zones that are not among them; None: they do not count."""
    hysteresis_mc: int = LEAST_HYSTERESIS_MC
    """So much below, a zone is cool again."""

    def of(self, zone: str) -> int | None:
        """Give a zone's threshold, thousandths of a degree Celsius."""
        return self.zones.get(zone, self.elsewhere)


def thresholds_below(limits: Limits, *, hysteresis_mc: int = LEAST_HYSTERESIS_MC) -> Thresholds:
    """Put them below what the board itself tells; a zone that tells nothing has none."""
    zones = {zone: at for zone in limits.trips if (at := _below(limits, zone)) is not None}
    return Thresholds(zones, hysteresis_mc=hysteresis_mc)


def _below(limits: Limits, zone: str) -> int | None:
    known = [
        at - margin
        for at, margin in ((limits.throttle(zone), _MARGIN_MC), (limits.critical(zone), _CRITICAL_MARGIN_MC))
        if at is not None and at >= _LEAST_TRIP_MC
    ]
    return min(known, default=None)


@dataclass(frozen=True, slots=True)
class Heat:
    """Where the board stands, in thousandths of a degree below the threshold of the zone that is nearest to its own.

    None where no zone is known.
    """

    zone: str = ""
    headroom: int | None = None
    newest: int | None = None
    """By the last reading alone."""
    ahead: int | None = None
    """Where the slope leads, in half a minute."""
    sure: bool = False
    """Whether more than one value of that zone says so."""

    @property
    def hot(self) -> bool:
        """Tell whether something must be done now."""
        return self.sure and self.ahead is not None and self.ahead <= 0

    @property
    def maybe_hot(self) -> bool:
        """Tell whether this is no moment to become warmer: at least one reading was above."""
        return self.hot or (self.newest is not None and self.newest <= 0)

    def cool(self, hysteresis_mc: int) -> bool:
        """Tell whether nothing needs to be done any more."""
        return not self.maybe_hot and (self.headroom is None or self.headroom >= hysteresis_mc)

    def __str__(self) -> str:
        """Say it in words, for people."""
        if self.headroom is None:
            return "no temperature is known"
        if self.headroom <= 0:
            return f"{self.zone} is {-self.headroom / 1000:.1f} °C above its threshold"
        rising = " and rising" if self.ahead is not None and self.ahead < self.headroom else ""
        return f"{self.zone} is {self.headroom / 1000:.1f} °C below its threshold{rising}"


@dataclass(frozen=True, slots=True)
class Temperatures:
    """What is remembered of them."""

    recent: Mapping[str, tuple[tuple[float, int], ...]] = field(default_factory=dict)
    """Zone -> when, and its distance to its threshold; the last three."""
    trend: tuple[tuple[float, int], ...] = ()
    """When, and the least distance of all."""

    def at(self, now_s: float) -> Temperatures:
        """Forget what is too old."""
        fresh = {
            zone: tuple(one for one in values if now_s - one[0] <= _FRESH_S) for zone, values in self.recent.items()
        }
        return Temperatures(
            {zone: values for zone, values in fresh.items() if values},
            tuple(one for one in self.trend if now_s - one[0] <= _TREND_S),
        )

    def with_reading(self, reading: Reading, thresholds: Thresholds) -> Temperatures:
        """Remember a reading too. One without any zone that counts says nothing."""
        distances = {
            zone: threshold - temperature
            for zone, temperature in reading.temperatures.items()
            if (threshold := thresholds.of(zone)) is not None
        }
        if not distances:
            return self
        recent = dict(self.recent)
        for zone, distance in distances.items():
            recent[zone] = (*recent.get(zone, ()), (reading.at_s, distance))[-_MEDIAN_OF:]
        trend = self.trend
        if not trend or reading.at_s - trend[-1][0] >= _TREND_STEP_S:
            trend = (*trend, (reading.at_s, _nearest(recent)[0]))
        return Temperatures(recent, trend)

    def heat(self, now_s: float) -> Heat:
        """Say where the board stands now."""
        if not self.recent:
            return Heat()
        headroom, zone = _nearest(self.recent)
        last = [values[-1] for values in self.recent.values()]
        read_at = max(at for at, _ in last)
        newest = min(distance for at, distance in last if at == read_at)
        return Heat(zone, headroom, newest, headroom - self._rise(now_s), len(self.recent[zone]) > 1)

    def _rise(self, now_s: float) -> int:
        """Give by how much the headroom will have shrunk soon, thousandths of a degree; 0 where it grows."""
        trend = self.trend
        if len(trend) < 2 * _MEDIAN_OF or now_s - trend[-1][0] > _LEAST_TREND_S:
            return 0
        first, last = trend[:_MEDIAN_OF], trend[-_MEDIAN_OF:]
        over_s = last[1][0] - first[1][0]
        if over_s < _LEAST_TREND_S:
            return 0
        fallen = median_low(value for _, value in first) - median_low(value for _, value in last)
        return max(0, min(_MOST_AHEAD_MC, round(fallen / over_s * _LOOK_AHEAD_S)))


def _nearest(recent: Mapping[str, tuple[tuple[float, int], ...]]) -> tuple[int, str]:
    """Give the least of the zones' medians, and its zone; zones of one value only where there are no others.

    Of two values the cooler counts.
    """
    sure = {zone: values for zone, values in recent.items() if len(values) > 1} or recent
    return min((sorted(distance for _, distance in values)[len(values) // 2], zone) for zone, values in sure.items())

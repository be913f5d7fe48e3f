"""At which temperatures and currents the board itself slows down or gives up, as it tells itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from power import hwmon, zones
from power.sysfs import Reader, integer

LOWEST: Final = 1
HIGHEST: Final = 150_000
"""Thousandths of a degree. A trip point that is switched off shows 0, a negative or a huge number."""

MOST_TRIPS: Final = 12
"""Of one zone: what the kernel allows."""


@dataclass(frozen=True, slots=True)
class TripPoint:
    """A temperature at which the kernel does something to a zone."""

    kind: str
    """active: fans; passive: it throttles; hot: it tells; critical: it shuts down."""
    temperature: int
    """Thousandths of a degree Celsius."""


@dataclass(frozen=True, slots=True)
class Limits:
    """All that the board tells; empty where it tells nothing. Zones and rails are named as in a Reading."""

    trips: Mapping[str, tuple[TripPoint, ...]] = field(default_factory=dict)
    rails_warn_ma: Mapping[str, int] = field(default_factory=dict)
    """Rail -> the current beyond which its monitor warns."""

    def throttle(self, zone: str) -> int | None:
        """Give the temperature at which the kernel throttles because of this zone; None where it does not tell."""
        return self._lowest(zone, {"passive", "hot"})

    def critical(self, zone: str) -> int | None:
        """Give the temperature at which the board shuts down because of this zone; None where it does not tell."""
        return self._lowest(zone, {"critical"})

    @property
    def throttle_at(self) -> int | None:
        """The lowest at which it throttles because of any zone; where none tells, at which it shuts down."""
        known = [at for zone in self.trips if (at := self.throttle(zone)) is not None]
        return min(known, default=self.critical_at)

    @property
    def critical_at(self) -> int | None:
        """The lowest at which it shuts down because of any zone."""
        return min((at for zone in self.trips if (at := self.critical(zone)) is not None), default=None)

    def _lowest(self, zone: str, kinds: set[str]) -> int | None:
        return min((trip.temperature for trip in self.trips.get(zone, ()) if trip.kind in kinds), default=None)


def read_limits(root: Path = Path("/")) -> Limits:
    """Read them once. Bounded in time, as all reading here; what cannot be read is not among them."""
    reader = Reader()
    trips = {zone.name: _trips(zone.folder, reader) for zone in zones.find(root, reader)}
    for sensor in hwmon.find_temperatures(root, reader):
        trips[sensor.name] = _hwmon_trips(sensor, reader)
    return Limits(
        trips={zone: points for zone, points in trips.items() if points},
        rails_warn_ma=hwmon.read_warnings(hwmon.find_rails(root, reader), reader),
    )


def _trips(folder: Path, reader: Reader) -> tuple[TripPoint, ...]:
    files = [
        (folder / f"trip_point_{number}_type", folder / f"trip_point_{number}_temp") for number in range(MOST_TRIPS)
    ]
    texts = reader.read(file for pair in files for file in pair)
    points = [(texts.get(kind), integer(texts.get(at), LOWEST, HIGHEST)) for kind, at in files]
    return tuple(TripPoint(kind, at) for kind, at in points if kind is not None and at is not None)


def _hwmon_trips(sensor: hwmon.Temperature, reader: Reader) -> tuple[TripPoint, ...]:
    """Take a PC's own words for them: it throttles at `crit`, which is the processor's TjMax."""
    limit = sensor.file.with_name(sensor.file.name.replace("_input", "_crit"))
    at = integer(reader.read([limit]).get(limit), LOWEST, HIGHEST)
    return () if at is None else (TripPoint("passive", at),)

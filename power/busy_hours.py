"""At which hours of the day commands are usual: learned, forgotten within weeks, kept as a short text."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Final

_HOURS: Final = 24

_DAILY_WEIGHT: Final = 1 / 7
"""Of the newest day in the average: about a week counts, so that weekends and new opening hours are followed."""

_USUAL: Final = 2.0
"""Commands in an hour of an average day, from which they are usual then."""

_FORGOTTEN_DAYS: Final = 30
"""Away for so long, the device starts anew."""


@dataclass(frozen=True, slots=True)
class BusyHours:
    """Commands per hour of the day, on average; immutable. Hours are those of the wall clock where the device is."""

    day: int = 0
    """The day that is being counted, as an ordinal."""
    average: tuple[float, ...] = (0.0,) * _HOURS
    today: tuple[int, ...] = (0,) * _HOURS

    def with_command(self, day: int, hour: int) -> BusyHours:
        """Count a command at this `hour`, 0 to 23, of this `day`."""
        counted = self.at(day)
        today = tuple(count + (at == hour) for at, count in enumerate(counted.today))
        return replace(counted, today=today)

    def at(self, day: int) -> BusyHours:
        """Go on to this day, where it is another one. A clock that was set back starts a day anew."""
        if day == self.day:
            return self
        passed = day - self.day
        if not self.day or not 0 < passed <= _FORGOTTEN_DAYS:
            return BusyHours(day, self.average if self.day and passed < 0 else (0.0,) * _HOURS)
        first = not any(self.average)
        weight = 1.0 if first else _DAILY_WEIGHT
        average = (old + weight * (new - old) for old, new in zip(self.average, self.today, strict=True))
        kept = (1 - _DAILY_WEIGHT) ** (passed - 1)  # days without a command
        return BusyHours(day, tuple(kept * value for value in average))

    def usual(self, day: int, hour: int) -> bool:
        """Tell whether commands are usual at this `hour`, 0 to 23."""
        return self.at(day).average[hour] >= _USUAL

    def to_text(self) -> str:
        """Give it as JSON."""
        return json.dumps([self.day, [round(value, 3) for value in self.average], list(self.today)])

    @classmethod
    def from_text(cls, text: str) -> BusyHours:
        """Read what `to_text` gave. ValueError where it is something else."""
        try:
            day, average, today = json.loads(text)
            known = cls(int(day), tuple(float(value) for value in average), tuple(int(value) for value in today))
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"these are no busy hours: {error}") from None
        sound = len(known.average) == len(known.today) == _HOURS and known.day >= 0
        if not sound or not all(math.isfinite(value) and value >= 0 for value in (*known.average, *known.today)):
            raise ValueError("these are no busy hours: 24 counts that are not negative are wanted, twice")
        return known

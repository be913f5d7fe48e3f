"""The kernel's thermal zones, and which of their values are to be believed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from power.sysfs import Reader, integer

COLDEST: Final = -40_000
HOTTEST: Final = 125_000
"""Thousandths of a degree that silicon bears. Zones whose part is switched off say -256000, an error or nothing."""

_NEVER_REAL: Final = ("pmic", "fan-est")
"""A PMIC that says 100 °C whatever happens, and a mean of other zones that the fan is steered by."""

_SUFFIX: Final = re.compile(r"[-_]therm(al)?$")

FAR_ABOVE: Final = 40_000
"""Above all others, in thousandths of a degree. Zones of one chip differ by some degrees; more is a sensor that is
stuck, or one far from the others, such as a PMIC's."""

STUCK_AFTER: Final = 300
"""Readings without any change, some minutes; a zone that works changes with nearly each. One that has not changed since
the first reading counts as stuck until it does."""


@dataclass(frozen=True, slots=True)
class Zone:
    """One thermal zone; `name` is its type without "-thermal", in small letters: cpu, gpu, tj, soc0."""

    name: str
    folder: Path


def find(root: Path, reader: Reader) -> list[Zone]:
    """Find the zones that measure something, by their types; the same type again gets a number behind it."""
    folders = sorted((root / "sys/class/thermal").glob("thermal_zone*"), key=lambda path: (len(path.name), path.name))
    types = reader.read(folder / "type" for folder in folders)
    zones: dict[str, Zone] = {}
    for folder in folders:
        kind = types.get(folder / "type", "").lower()
        if not kind or any(word in kind for word in _NEVER_REAL):
            continue
        name = kind = _SUFFIX.sub("", kind)
        again = 1
        while name in zones:
            again += 1
            name = f"{kind}-{again}"
        zones[name] = Zone(name, folder)
    return list(zones.values())


class Trust:
    """Drops temperatures that cannot be true: out of bounds, or far above all others without ever moving."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._unmoved: dict[str, int] = {}

    def believed(self, texts: Mapping[str, str]) -> dict[str, int]:
        """Give the temperatures, in thousandths of a degree, that can be true among what the zones said."""
        values = {name: value for name, text in texts.items() if (value := integer(text, COLDEST, HOTTEST)) is not None}
        for name, value in values.items():
            moved = name in self._last and self._last[name] != value
            self._unmoved[name] = 0 if moved else self._unmoved.get(name, STUCK_AFTER) + 1
        self._last.update(values)
        suspects = {name for name in values if self._unmoved[name] >= STUCK_AFTER}
        return {
            name: value
            for name, value in values.items()
            if name not in suspects or not _is_far_above(value, values, suspects)
        }


def _is_far_above(value: int, values: Mapping[str, int], suspects: set[str]) -> bool:
    """Compare with those that move; where none does, as in a first reading, with the coolest."""
    moving = [other for name, other in values.items() if name not in suspects]
    others = [max(moving)] if moving else [min(values.values())]
    return any(value > other + FAR_ABOVE for other in others)

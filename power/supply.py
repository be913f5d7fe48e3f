"""Batteries that feed the machine itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from power.reading import Battery
from power.sysfs import Reader, integer

_CHARGING: Final = {"Charging": True, "Full": True, "Discharging": False}
"""What is called "Not charging" is fed from outside or is not: it does not say."""


@dataclass(frozen=True, slots=True)
class BatteryFiles:
    """One battery and the files that tell of it."""

    percent: Path
    status: Path
    present: Path

    @property
    def all(self) -> tuple[Path, Path, Path]:
        """Give every file."""
        return self.percent, self.status, self.present


def find(root: Path, reader: Reader) -> list[BatteryFiles]:
    """Find the batteries; those of a mouse or a headset have the scope "Device" and do not count."""
    folders = sorted((root / "sys/class/power_supply").glob("*"))
    texts = reader.read(folder / file for folder in folders for file in ("type", "scope"))
    return [
        BatteryFiles(folder / "capacity", folder / "status", folder / "present")
        for folder in folders
        if texts.get(folder / "type") == "Battery" and texts.get(folder / "scope") != "Device"
    ]


def battery_of(batteries: Sequence[BatteryFiles], texts: Mapping[Path, str]) -> Battery | None:
    """Make one Battery of all that are there: the mean charge; charging where any of them is."""
    there = [battery for battery in batteries if texts.get(battery.present) != "0"]
    if not there:
        return None
    known = [integer(texts.get(battery.percent), 0, 100) for battery in there]
    charges = [charge for charge in known if charge is not None]
    states = [_CHARGING.get(texts.get(battery.status, "")) for battery in there]
    told = [state for state in states if state is not None]
    return Battery(
        percent=round(sum(charges) / len(charges)) if charges else None, charging=any(told) if told else None
    )

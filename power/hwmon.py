"""The kernel's hardware monitors: supplies behind INA chips, counters of over-current, a PC's own temperatures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from power.reading import Rail
from power.sysfs import Reader, integer

_POWER_MONITORS: Final = ("ina3221", "ina238", "ina226", "ina219", "ina2xx")

_PC_SENSORS: Final = {
    "coretemp": re.compile(r"Package id \d+"),
    "k10temp": re.compile("Tdie|Tctl"),
    "zenpower": re.compile("Tdie"),
}
"""Driver -> labels of what stands for the whole processor. Other monitors are of disks, or repeat a thermal zone."""

_SHUNT_SUM: Final = 7
"""The INA3221's channel that adds up the shunts' voltages: no supply."""

_TOTALS: Final = ("VIN", "POM_5V_IN", "VDD_IN")
"""Rails behind which the whole board hangs, in the order of how much they hold: carrier with module, or module."""

MOST_MV: Final = 100_000
MOST_MA: Final = 200_000
MOST_MW: Final = 2_000_000
"""Beyond any board. What shows more, or less than nothing, is no measurement."""


@dataclass(frozen=True, slots=True)
class RailFiles:
    """One supply and the files that tell of it, whether or not they exist."""

    name: str
    millivolts: Path
    milliamperes: Path
    microwatts: Path
    warn_milliamperes: Path


@dataclass(frozen=True, slots=True)
class Temperature:
    """A PC's processor; `file` is in thousandths of a degree."""

    name: str
    file: Path


def _monitors(root: Path, reader: Reader) -> dict[Path, str]:
    """Give each monitor's folder and its driver's name."""
    folders = sorted((root / "sys/class/hwmon").glob("hwmon*"), key=lambda path: (len(path.name), path.name))
    names = reader.read(folder / "name" for folder in folders)
    return {folder: names[folder / "name"].lower() for folder in folders if folder / "name" in names}


def find_rails(root: Path, reader: Reader) -> list[RailFiles]:
    """Find the supplies that are measured. Those that a board names NC are not connected."""
    rails: dict[str, RailFiles] = {}
    for folder, driver in _monitors(root, reader).items():
        if driver not in _POWER_MONITORS:
            continue
        labels = reader.read(folder.glob("in*_label"))
        channels = {int(path.name[2:-6]): label for path, label in labels.items() if path.name[2:-6].isdigit()}
        if not channels and driver != "ina3221":
            # A carrier board's monitor of its whole input has one channel and no label.
            channels = {1: "VIN"}
        for channel, label in sorted(channels.items()):
            if channel == _SHUNT_SUM or label in ("", "NC") or label in rails:
                continue
            rails[label] = RailFiles(
                label,
                folder / f"in{channel}_input",
                folder / f"curr{channel}_input",
                folder / f"power{channel}_input",
                folder / f"curr{channel}_max",
            )
    return list(rails.values())


def rails_of(files: Sequence[RailFiles], texts: Mapping[Path, str]) -> tuple[Rail, ...]:
    """Make Rails of what the files said: power as measured, or voltage times current."""
    rails = []
    for file in files:
        volt = integer(texts.get(file.millivolts), 0, MOST_MV)
        current = integer(texts.get(file.milliamperes), 0, MOST_MA)
        micro = integer(texts.get(file.microwatts), 0, MOST_MW * 1000)
        power = micro // 1000 if micro is not None else None
        if power is None and volt is not None and current is not None:
            power = volt * current // 1000
        rails.append(Rail(file.name, power_mw=power, voltage_mv=volt, current_ma=current))
    return tuple(rails)


def total_mw(rails: Sequence[Rail]) -> int | None:
    """Give the whole board's power: the rail that feeds all others, or the sum where every rail told."""
    by_name = {rail.name: rail.power_mw for rail in rails}
    for name in _TOTALS:
        if name in by_name:
            return by_name[name]
    powers = [power for power in by_name.values() if power is not None]
    return sum(powers) if powers and len(powers) == len(by_name) else None


def read_warnings(files: Sequence[RailFiles], reader: Reader) -> dict[str, int]:
    """Give the currents in mA beyond which a rail's monitor warns."""
    texts = reader.read(file.warn_milliamperes for file in files)
    known = {file.name: integer(texts.get(file.warn_milliamperes), 1, MOST_MA) for file in files}
    return {name: limit for name, limit in known.items() if limit is not None}


def find_over_current(root: Path) -> dict[str, Path]:
    """Find the counters of how often a supply gave in: "oc1" -> its file."""
    counters = sorted((root / "sys/class/hwmon").glob("hwmon*/oc[0-9]*_event_cnt"))
    return {path.name.removesuffix("_event_cnt"): path for path in counters}


def find_temperatures(root: Path, reader: Reader) -> list[Temperature]:
    """Find a PC's processors: cpu, cpu-2 and so on."""
    found: list[Path] = []
    for folder, driver in _monitors(root, reader).items():
        if driver in _PC_SENSORS:
            labels = reader.read(sorted(folder.glob("temp*_label")))
            fitting = {label: path for path, label in labels.items() if _PC_SENSORS[driver].fullmatch(label)}
            if "Tdie" in fitting:  # Tctl is what the fan is steered by, up to 27 degrees more
                fitting.pop("Tctl", None)
            found += [path.with_name(path.name.replace("_label", "_input")) for path in fitting.values()]
    return [Temperature("cpu" if number == 1 else f"cpu-{number}", path) for number, path in enumerate(found, 1)]

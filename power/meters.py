"""What is told as a difference between two readings: processor load, a PC's energy, its throttling."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from power.hwmon import MOST_MW
from power.reading import Rail
from power.sysfs import Reader, integer

_IDLE: Final = (3, 4)
"""Columns of /proc/stat: idle, and waiting for a disk."""

_COLUMNS: Final = 8
"""user, nice, system, idle, iowait, irq, softirq, steal; what guests took is in user already."""

_MOST_UJ: Final = 2**63


class CpuLoad:
    """The share of time that the processor was busy between two readings."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None

    def update(self, stat: str | None) -> float | None:
        """Give it, 0 to 1, from the text of /proc/stat; None at first, or where it cannot be told."""
        found = re.match(r"cpu +((?:\d+ ?)+)", stat or "")
        columns = [int(word) for word in found[1].split()[:_COLUMNS]] if found else []
        if len(columns) < _COLUMNS:
            return None
        total, idle = sum(columns), sum(columns[column] for column in _IDLE)
        last, self._last = self._last, (total, idle)
        if last is None or total <= last[0]:
            return None
        return min(max(1 - (idle - last[1]) / (total - last[0]), 0.0), 1.0)


class Energy:
    """A PC's supplies by RAPL: counters of microjoules that begin again at their range."""

    def __init__(self, root: Path, reader: Reader) -> None:
        folders = sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
        files = {folder: (folder / "name", folder / "max_energy_range_uj") for folder in folders}
        texts = reader.read(file for pair in files.values() for file in pair)
        self.counters: dict[str, Path] = {}
        self._ranges: dict[str, int] = {}
        for folder, (name_file, range_file) in files.items():
            name = texts.get(name_file)
            span = integer(texts.get(range_file), 1, _MOST_UJ)
            # A core's or a graphics unit's part is in its package's.
            is_whole = folder.name.count(":") == 1 or name == "dram"
            if name is not None and span is not None and is_whole:
                again = sum(known.split("/")[0] == name for known in self.counters)
                name = f"{name}/{again + 1}" if again else name
                self.counters[name] = folder / "energy_uj"
                self._ranges[name] = span
        self._last: dict[str, tuple[float, int]] = {}

    def update(self, texts: Mapping[Path, str], at_s: float) -> tuple[Rail, ...]:
        """Give the mean power since the last reading; none at first."""
        rails = []
        for name, path in self.counters.items():
            value = integer(texts.get(path), 0, _MOST_UJ)
            if value is None:
                self._last.pop(name, None)
                continue
            last = self._last.get(name)
            self._last[name] = (at_s, value)
            if last is None or at_s <= last[0]:
                continue
            micro = (value - last[1]) % (self._ranges[name] + 1)
            power_mw = round(micro / (at_s - last[0]) / 1000)
            if power_mw <= MOST_MW:  # more: the counter began again because the machine slept
                rails.append(Rail(name, power_mw=power_mw))
        return tuple(rails)

    @staticmethod
    def total_mw(rails: tuple[Rail, ...]) -> int | None:
        """Give the whole machine's power: the platform's own counter, or else packages and memory."""
        platform = [rail.power_mw for rail in rails if rail.name == "psys"]
        powers = platform or [rail.power_mw for rail in rails]
        known = [power for power in powers if power is not None]
        return sum(known) if known else None


class PackageThrottling:
    """Whether a PC's processor has slowed down since the last reading, by its own count."""

    def __init__(self, root: Path) -> None:
        self.counters: Final = sorted(
            (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/package_throttle_count")
        )[:1]
        self._last: int | None = None

    def update(self, texts: Mapping[Path, str]) -> tuple[str, ...]:
        """Give "cpu" where it has."""
        count = integer(texts.get(self.counters[0]), 0, _MOST_UJ) if self.counters else None
        last, self._last = self._last, count
        return ("cpu",) if count is not None and last is not None and count > last else ()

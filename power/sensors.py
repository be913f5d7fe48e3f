"""All that a board or a PC says of itself at one moment, as one Reading."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from power import clocks, hwmon, nvpmodel, supply, zones
from power.jetson import Jtop, JtopSample
from power.meters import CpuLoad, Energy, PackageThrottling
from power.reading import Clock, Reading
from power.sysfs import ABSENT, Reader, integer

FIND_AGAIN_S: Final = 60.0
"""A GPU's driver may come up after us at boot, and a USB battery at any time. Looking takes some ms."""

_ALERT: Final = re.compile(r".+-throttle-alert|hot-surface-alert")
"""Cooling devices by which a Jetson's kernel tells that it slows down. Fans and governors are cooling devices too."""

_MEM_AVAILABLE: Final = re.compile(r"^MemAvailable:[ \t]+(\d{1,15}) kB$", re.MULTILINE)

_GPU_LOAD_FULL: Final = 1000


class Sensors:
    """Reads a machine's sensors. For one thread.

    A reading takes some ms; where drivers hang, about a second at most, and their files are left out from then on. On a
    Jetson a child process with jtop adds what sysfs does not tell.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        *,
        jtop: bool = True,
        reader: Reader | None = None,
        make_jtop: Callable[[], Jtop] = Jtop,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`root` is what every path starts with. `jtop`: run it, where this is a Jetson."""
        self._root = root
        self._clock = clock
        self._reader = reader or Reader()
        self._jtop = make_jtop() if jtop and is_jetson(root) else None
        self._cpu_load = CpuLoad()
        self._trust = zones.Trust()
        self._energy = Energy(root, self._reader)
        self._package = PackageThrottling(root)
        self._found: _Found | None = None
        self._found_at = 0.0

    def read(self) -> Reading:
        """Read all of it now."""
        now = self._clock()
        if self._found is None or now - self._found_at > FIND_AGAIN_S:
            self._found, self._found_at = _Found(self._root, self._reader), now
        found = self._found
        texts = self._reader.read([*found.files, *self._energy.counters.values(), *self._package.counters])
        errors = self._reader.errors
        rails = hwmon.rails_of(found.rails, texts)
        energy_rails = self._energy.update(texts, now)
        rates = {domain.name: clocks.clock_of(domain, texts) for domain in found.domains}
        reading = Reading(
            at_s=now,
            temperatures=self._trust.believed(
                {name: texts[file] for name, file in found.temperatures.items() if file in texts}
            ),
            rails=(*rails, *energy_rails),
            total_power_mw=hwmon.total_mw(rails) if rails else Energy.total_mw(energy_rails),
            clocks=_known(rates | found.emc_clock(texts, rates.get("emc"))),
            loads=self._loads(found, texts),
            throttling=(*found.alerts_of(texts), *self._package.update(texts)),
            over_current_events={
                name: count
                for name, file in found.over_current.items()
                if (count := integer(texts.get(file), 0, 2**63)) is not None
            },
            battery=supply.battery_of(found.batteries, texts),
            memory_available=_memory_available(texts.get(found.meminfo)),
            power_mode=found.modes.name_of(texts.get(found.modes.status)) if found.modes else None,
            degraded=self._degraded(errors),
        )
        return reading if self._jtop is None else self._with_jtop(reading, self._jtop)

    def close(self) -> None:
        """End what runs for it. Idempotent."""
        if self._jtop is not None:
            self._jtop.close()

    def _loads(self, found: _Found, texts: Mapping[Path, str]) -> dict[str, float]:
        load = integer(texts.get(found.gpu_load), 0, _GPU_LOAD_FULL) if found.gpu_load else None
        known = {
            "gpu": None if load is None else load / _GPU_LOAD_FULL,
            "cpu": self._cpu_load.update(texts.get(found.stat)),
        }
        return {name: share for name, share in known.items() if share is not None}

    def _degraded(self, errors: Mapping[Path, str]) -> dict[str, str]:
        """Tell of files that block or may not be read. One that says EAGAIN is a part that is switched off."""
        told: dict[str, str] = {}
        for path in self._energy.counters.values():
            if path in errors and errors[path] != ABSENT:
                told["rapl"] = f"{path}: {errors[path]} (the kernel lets only root read it)"
        for path in self._reader.skipped:
            told[str(path.relative_to(self._root))] = "does not answer, and is skipped"
        return told

    @staticmethod
    def _with_jtop(reading: Reading, jtop: Jtop) -> Reading:
        sample = jtop.poll() or JtopSample()
        loads, rates = dict(reading.loads), dict(reading.clocks)
        if "gpu" not in loads and sample.gpu_load is not None:
            loads["gpu"] = sample.gpu_load
        if sample.gpu_hz is not None and rates.get("gpu", Clock()).current_hz is None:
            rates["gpu"] = replace(rates.get("gpu", Clock()), current_hz=sample.gpu_hz)
        degraded = reading.degraded if jtop.reason is None else {**reading.degraded, "jtop": jtop.reason}
        return replace(
            reading,
            loads=loads,
            clocks=rates,
            fans=sample.fans,
            power_mode=reading.power_mode or sample.power_mode,
            degraded=degraded,
        )


class _Found:
    """What there is to be read, by its files."""

    def __init__(self, root: Path, reader: Reader) -> None:
        self.temperatures = {zone.name: zone.folder / "temp" for zone in zones.find(root, reader)}
        self.temperatures |= {sensor.name: sensor.file for sensor in hwmon.find_temperatures(root, reader)}
        self.rails = hwmon.find_rails(root, reader)
        self.domains = clocks.find(root)
        self.gpu_load = clocks.gpu_load_file(self.domains)
        self.alerts = _find_alerts(root, reader)
        self.over_current = hwmon.find_over_current(root)
        self.batteries = supply.find(root, reader)
        self.modes = nvpmodel.read_file(root)
        self.meminfo = root / "proc/meminfo"
        self.stat = root / "proc/stat"
        self._emc_cap = clocks.emc_cap(root)
        self._emc_rate = clocks.emc_rate(root)
        self.files: Final = list(self._files())

    def _files(self) -> Sequence[Path]:
        rails = [path for rail in self.rails for path in (rail.millivolts, rail.milliamperes, rail.microwatts)]
        return [
            self.meminfo,
            self.stat,
            *self.temperatures.values(),
            *rails,
            *(path for domain in self.domains for path in domain.files),
            *([self.gpu_load] if self.gpu_load else []),
            *self.alerts.values(),
            *self.over_current.values(),
            *(path for battery in self.batteries for path in battery.all),
            *([self.modes.status] if self.modes else []),
            *([self._emc_cap, self._emc_rate] if self._emc_cap else []),
        ]

    def emc_clock(self, texts: Mapping[Path, str], clock: Clock | None) -> dict[str, Clock]:
        """Give the memory's clock, where the board has no files for it as for the others."""
        if clock is not None or self._emc_cap is None:
            return {}
        current, cap = (clocks.hertz(texts.get(path), 1) for path in (self._emc_rate, self._emc_cap))
        return {"emc": Clock(current_hz=current, max_hz=cap)}

    def alerts_of(self, texts: Mapping[Path, str]) -> tuple[str, ...]:
        """Give the names of the alerts that are on."""
        return tuple(name for name, file in self.alerts.items() if (integer(texts.get(file), 0, 2**31) or 0) > 0)


def is_jetson(root: Path) -> bool:
    """Tell whether this is a Jetson, by what NVIDIA's system writes, or by the device tree."""
    if (root / "etc/nv_tegra_release").exists():
        return True
    try:
        return b"nvidia,tegra" in (root / "proc/device-tree/compatible").read_bytes()
    except OSError:
        return False


def _find_alerts(root: Path, reader: Reader) -> dict[str, Path]:
    folders = sorted((root / "sys/class/thermal").glob("cooling_device*"), key=lambda path: (len(path.name), path.name))
    types = reader.read(folder / "type" for folder in folders)
    return {
        types[folder / "type"]: folder / "cur_state"
        for folder in folders
        if _ALERT.fullmatch(types.get(folder / "type", ""))
    }


def _known(rates: Mapping[str, Clock]) -> dict[str, Clock]:
    return {name: clock for name, clock in rates.items() if clock != Clock()}


def _memory_available(meminfo: str | None) -> int | None:
    found = _MEM_AVAILABLE.search(meminfo or "")
    return None if found is None else int(found[1]) * 1024

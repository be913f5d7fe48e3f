"""A folder with a board's files, and the parts that several boards have."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from simulators.nvpmodel import Model, Param, write_nvpmodel

Trips = Sequence[tuple[str, int]]


@dataclass
class BoardTree:
    """One board's files. Paths are relative to `root`."""

    name: str
    root: Path
    gpu: str | None = None
    """The folder with the GPU's min_freq and max_freq."""
    policies: tuple[str, ...] = ()
    """The folders with scaling_min_freq and scaling_max_freq."""
    emc_cap: str | None = None
    zones: dict[str, str] = field(default_factory=dict)
    """Type of a thermal zone -> its folder."""
    coolers: dict[str, str] = field(default_factory=dict)

    def write(self, path: str, text: str) -> None:
        """Put a value there, as the kernel would show it."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="ascii")

    def read(self, path: str) -> str:
        """Give the value, without the line's end."""
        return (self.root / path).read_text(encoding="ascii").strip()

    def link(self, path: str, target: str) -> None:
        """Make `path` a relative link to `target`."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(os.path.relpath(self.root / target, file.parent))

    def set_temperature(self, zone: str, milli_celsius: int | str) -> None:
        """Let a zone show this."""
        self.write(f"{self.zones[zone]}/temp", str(milli_celsius))

    def set_temperatures(self, milli_celsius: int) -> None:
        """Let every zone that shows a temperature show this one."""
        for zone, folder in self.zones.items():
            if self.read(f"{folder}/temp").lstrip("-").isdigit() and zone != "PMIC-Die":
                self.set_temperature(zone, milli_celsius)

    def set_throttling(self, cooler: str, *, on: bool = True) -> None:
        """Raise or clear the kernel's own alert, such as cpu-throttle-alert."""
        self.write(f"{self.coolers[cooler]}/cur_state", "1" if on else "0")

    def block(self, path: str) -> Path:
        """Let whoever opens this file wait, as for a sensor whose driver hangs. `unblock` lets them go."""
        file = self.root / path
        file.unlink(missing_ok=True)
        os.mkfifo(file)
        return file

    def unblock(self, path: str, text: str) -> None:
        """Let go who waits in `path`, which shows `text` from then on."""
        fifo = self.root / path
        parked = fifo.with_name(fifo.name + ".parked")
        fifo.rename(parked)
        self.write(path, text)
        os.close(os.open(parked, os.O_RDWR | os.O_NONBLOCK))
        parked.unlink()

    def caps(self) -> dict[str, tuple[int, int]]:
        """Give (min, max) of everything that has a clock's limits, in the file's own unit."""
        limits = dict.fromkeys(self.policies, ("scaling_min_freq", "scaling_max_freq"))
        if self.gpu:
            limits[self.gpu] = ("min_freq", "max_freq")
        return {
            path: (int(self.read(f"{path}/{low}")), int(self.read(f"{path}/{high}")))
            for path, (low, high) in limits.items()
        }

    def nvpmodel_does(self, what: str = "") -> None:
        """Choose what nvpmodel does when asked for a mode.

        "": as told. fail: ends with 255. partial: sets the CPU only, and ends with 0. ignore: says that it is in a
        chroot, touches nothing and ends with 0. hang: never ends. refuse: cannot be run (EACCES).
        """
        (self.root / "usr/sbin/nvpmodel").chmod(0o644 if what == "refuse" else 0o755)
        self.write("nvpmodel-does", what)


def jetson(tree: BoardTree, model: str, compatible: str, release: str) -> None:
    tree.write("proc/device-tree/model", model)
    tree.write("proc/device-tree/compatible", compatible)
    tree.write("etc/nv_tegra_release", f"# {release} (release), REVISION: 4.3")


def thermal_zones(tree: BoardTree, zones: Mapping[str, int | str], trips: Mapping[str, Trips]) -> None:
    for number, (kind, value) in enumerate(zones.items()):
        folder = f"sys/devices/virtual/thermal/thermal_zone{number}"
        tree.link(f"sys/class/thermal/thermal_zone{number}", folder)
        tree.zones[kind] = folder
        tree.write(f"{folder}/type", kind)
        tree.write(f"{folder}/temp", str(value))
        for trip, (what, at) in enumerate(trips.get(kind, ())):
            tree.write(f"{folder}/trip_point_{trip}_type", what)
            tree.write(f"{folder}/trip_point_{trip}_temp", str(at))


def cooling_devices(tree: BoardTree, kinds: Sequence[str]) -> None:
    # The fan runs and a governor slows clocks down all the time: neither is an alert.
    for number, kind in enumerate(("pwm-fan", "cpufreq-cpu0", *kinds)):
        folder = f"sys/devices/virtual/thermal/cooling_device{number}"
        tree.link(f"sys/class/thermal/cooling_device{number}", folder)
        tree.coolers[kind] = folder
        tree.write(f"{folder}/type", kind)
        tree.write(f"{folder}/max_state", "3")
        tree.write(f"{folder}/cur_state", "0" if kind in kinds else "2")


def ina3221(tree: BoardTree, number: int, address: str, rails: Sequence[tuple[str, int, int, int]]) -> None:
    """`rails`: name, mV, mA, warning mA of channels 1 to 3."""
    folder = f"sys/bus/i2c/devices/{address}/hwmon/hwmon{number}"
    tree.link(f"sys/class/hwmon/hwmon{number}", folder)
    tree.write(f"sys/bus/i2c/devices/{address}/name", "ina3221")
    tree.write(f"{folder}/name", "ina3221")
    for channel, (name, volt, current, warn) in enumerate(rails, 1):
        tree.write(f"{folder}/in{channel}_label", name)
        tree.write(f"{folder}/in{channel}_input", str(volt))
        tree.write(f"{folder}/curr{channel}_input", str(current))
        tree.write(f"{folder}/curr{channel}_max", str(warn))
        tree.write(f"{folder}/curr{channel}_crit", str(warn * 2))
    tree.write(f"{folder}/in7_label", "sum of shunt voltages")
    tree.write(f"{folder}/in7_input", "123")
    tree.write(f"{folder}/curr4_input", "456")


def over_current(tree: BoardTree, number: int) -> None:
    tree.write(f"sys/class/hwmon/hwmon{number}/name", "soctherm_oc")
    for alarm in (1, 2, 3):
        tree.write(f"sys/class/hwmon/hwmon{number}/oc{alarm}_event_cnt", "0")


def gpu(tree: BoardTree, device: str, of_name: str, frequencies: Sequence[int], *, name: str = "") -> None:
    folder = f"{device}/devfreq/{name or Path(device).name}"
    tree.gpu = folder
    tree.link(f"sys/class/devfreq/{Path(folder).name}", folder)
    tree.link(f"{folder}/device", device)
    tree.write(f"{device}/of_node/name", of_name)
    tree.write(f"{folder}/cur_freq", str(frequencies[0]))
    tree.write(f"{folder}/min_freq", str(frequencies[0]))
    tree.write(f"{folder}/max_freq", str(frequencies[-1]))
    tree.write(f"{folder}/available_frequencies", " ".join(map(str, frequencies)))
    tree.write(f"{folder}/available_governors", "nvhost_podgov performance")
    tree.write(f"{folder}/governor", "nvhost_podgov")


def cpus(tree: BoardTree, numbers: Sequence[int], frequencies: Sequence[int], governor: str = "schedutil") -> None:
    for number in numbers:
        folder = f"sys/devices/system/cpu/cpufreq/policy{number}"
        tree.policies = (*tree.policies, folder)
        tree.link(f"sys/devices/system/cpu/cpu{number}/cpufreq", folder)
        tree.write(f"{folder}/cpuinfo_min_freq", str(frequencies[0]))
        tree.write(f"{folder}/cpuinfo_max_freq", str(frequencies[-1]))
        tree.write(f"{folder}/scaling_min_freq", str(frequencies[0]))
        tree.write(f"{folder}/scaling_max_freq", str(frequencies[-1]))
        tree.write(f"{folder}/scaling_cur_freq", str(frequencies[1]))
        tree.write(f"{folder}/scaling_governor", governor)
        tree.write(f"{folder}/scaling_available_frequencies", " ".join(map(str, frequencies)))


def power_modes(tree: BoardTree, models: Sequence[Model], default: int, now: int) -> None:
    params = [
        Param("FILE", "TPC_POWER_GATING", {"TPC_PG_MASK": "/sys/devices/gpu.0/tpc_pg_mask"}),
        Param("CLOCK", "GPU", {"MIN_FREQ": f"/{tree.gpu}/min_freq", "MAX_FREQ": f"/{tree.gpu}/max_freq"}),
        Param("CLOCK", "EMC", {"MAX_FREQ": f"/{tree.emc_cap}"}),
    ]
    for number, policy in enumerate(tree.policies):
        files = {"MIN_FREQ": f"/{policy}/scaling_min_freq", "MAX_FREQ": f"/{policy}/scaling_max_freq"}
        params.append(Param("CLOCK", f"CPU_{number}", files))
    if tree.emc_cap is None:
        params = [param for param in params if param.name != "EMC"]
    if all(model.mask is None for model in models):
        params = [param for param in params if param.name != "TPC_POWER_GATING"]
    tree.write("sys/devices/gpu.0/tpc_pg_mask", "0")
    write_nvpmodel(tree.root, params, models, default=default, now=now, policies=len(tree.policies))

"""Copies of what boards and a PC show under /sys, /proc, /etc and /var: a folder to be given as the root of every path.

    tree = boards.make("orin-nano-super", tmp_path)
    tree.set_temperature("cpu-thermal", 71_500)
    tree.write("sys/class/hwmon/hwmon1/curr1_input", "1200")
    Sensors(tree.root).read()

Paths, names, units and the tables of power modes follow what is known of the real boards. The numbers of frequencies
and currents are plausible ones. `nvpmodel` is a shell script that behaves as the real one; see
`BoardTree.nvpmodel_does`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from simulators import board_parts as parts
from simulators.board_parts import BoardTree
from simulators.nvpmodel import Model

JETSONS: Final = ("orin-nano-super", "agx-orin", "xavier-nx", "thor")
NAMES: Final = (*JETSONS, "pc")


def make(name: str, root: Path) -> BoardTree:
    """Make the files of one of NAMES under `root`, a new or an empty folder."""
    root.mkdir(parents=True, exist_ok=True)
    tree = BoardTree(name, root)
    tree.write("proc/stat", "cpu  1000 0 500 8000 500 0 0 0 0 0\ncpu0 1000 0 500 8000 500 0 0 0 0 0")
    tree.write("proc/meminfo", "MemTotal:  7990140 kB\nMemFree:  310288 kB\nMemAvailable:  5120000 kB")
    tree.write("proc/sys/kernel/random/boot_id", "5a5e8a2c-2c7b-4b0e-9d86-0d6f0ad4f001")
    {
        "orin-nano-super": _orin_nano_super,
        "agx-orin": _agx_orin,
        "xavier-nx": _xavier_nx,
        "thor": _thor,
        "pc": _pc,
    }[name](tree)
    return tree


# Boards ---------------------------------------------------------------------------------------------------------------

_ORIN_CPU: Final = (115200, 729600, 960000, 1190400, 1420800, 1510400, 1728000)
_ORIN_GPU: Final = (306000000, 408000000, 510000000, 612000000, 714000000, 816000000, 918000000, 1020000000)
_ORIN_TRIPS: Final = {
    "cpu-thermal": (("active", 85000), ("passive", 99000), ("critical", 104500)),
    "gpu-thermal": (("passive", 99000), ("critical", 104500)),
    "soc0-thermal": (("passive", 99000), ("critical", 104500)),
    "tj-thermal": (("active", 74000), ("active", 95000), ("critical", 104500)),
}
_ORIN_ZONES: Final = {
    "cpu-thermal": 48500,
    "gpu-thermal": 47250,
    "cv0-thermal": -256000,  # gated
    "cv1-thermal": "",  # neither
    "soc0-thermal": 46900,
    "soc1-thermal": 47100,
    "tj-thermal": 48500,
}
_ORIN_COOLERS: Final = (
    *(f"{part}-throttle-alert" for part in ("cpu", "gpu", "cv0", "cv1", "cv2", "soc0", "soc1", "soc2")),
    "hot-surface-alert",
)


def _orin_nano_super(tree: BoardTree) -> None:
    """JetPack 6, profile "super": mode 0 is not the greatest, and one mode switches parts of the GPU off."""
    parts.jetson(tree, "NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super", "nvidia,tegra234", "R36")
    parts.thermal_zones(tree, _ORIN_ZONES, _ORIN_TRIPS)
    parts.cooling_devices(tree, _ORIN_COOLERS)
    parts.ina3221(
        tree,
        1,
        "1-0040",
        [("VDD_IN", 5080, 1104, 4000), ("VDD_CPU_GPU_CV", 5072, 264, 3000), ("VDD_SOC", 5072, 288, 2000)],
    )
    parts.over_current(tree, 2)
    device = "sys/devices/platform/bus@0/17000000.gpu"
    parts.gpu(tree, device, "gpu", _ORIN_GPU)
    tree.write(f"{device}/load", "137")
    parts.cpus(tree, (0, 4), _ORIN_CPU)
    tree.emc_cap = "sys/kernel/nvpmodel_clk_cap/emc"
    tree.write(tree.emc_cap, "0")
    tree.write("sys/kernel/debug/bpmp/debug/clk/emc/rate", "2133000000")
    parts.power_modes(
        tree,
        [
            Model(0, "15W", cpu=1510400, gpu=612000000, emc=2133000000, mask=240),
            Model(1, "25W", cpu=1344000, gpu=918000000, mask=240),
            Model(2, "MAXN_SUPER", mask=240),
            Model(3, "7W", cpu=960000, gpu=408000000, emc=2133000000, mask=252),
        ],
        default=1,
        now=2,
    )


def _agx_orin(tree: BoardTree) -> None:
    """JetPack 5: no rail for the total; only two of the modes can follow one another without a reboot."""
    parts.jetson(tree, "Jetson AGX Orin Developer Kit", "nvidia,tegra234", "R35")
    parts.thermal_zones(tree, _ORIN_ZONES, _ORIN_TRIPS)
    parts.cooling_devices(tree, _ORIN_COOLERS)
    parts.ina3221(
        tree,
        2,
        "1-0040",
        [("VDD_GPU_SOC", 19000, 200, 8000), ("VDD_CPU_CV", 19000, 100, 6000), ("VIN_SYS_5V0", 5000, 800, 9000)],
    )
    parts.ina3221(tree, 3, "1-0041", [("NC", 0, 0, 0), ("VDDQ_VDD2_1V8AO", 19000, 40, 3000), ("NC", 0, 0, 0)])
    parts.over_current(tree, 4)
    device = "sys/devices/17000000.ga10b"
    parts.gpu(tree, device, "ga10b", (*_ORIN_GPU, 1122000000, 1300500000))
    tree.write(f"{device}/load", "0")
    parts.cpus(tree, (0, 4, 8), (*_ORIN_CPU, 1971200, 2201600))
    tree.emc_cap = "sys/kernel/nvpmodel_emc_cap/emc_iso_cap"
    tree.write(tree.emc_cap, "0")
    parts.power_modes(
        tree,
        [
            Model(0, "MAXN", mask=0),
            Model(1, "MODE_15W", cpu=1113600, gpu=420750000, emc=2133000000, mask=248),
            Model(2, "MODE_30W", cpu=1728000, gpu=624750000, emc=2133000000, mask=240),
            Model(3, "MODE_50W", cpu=1497600, gpu=828750000, mask=0),
        ],
        default=2,
        now=0,
    )


def _xavier_nx(tree: BoardTree) -> None:
    """JetPack 5: old names of zones, a PMIC that always says 100 °C."""
    parts.jetson(tree, "NVIDIA Jetson Xavier NX Developer Kit", "nvidia,p3668-0000 nvidia,tegra194", "R35")
    zones = {"CPU-therm": 41500, "GPU-therm": 40000, "AUX-therm": 39500, "AO-therm": 40500, "PMIC-Die": 100000}
    passive = (("passive", 95500), ("hot", 96000), ("critical", 96500))
    parts.thermal_zones(tree, zones, {"CPU-therm": passive, "GPU-therm": passive})
    parts.cooling_devices(tree, ("cpu-throttle-alert", "gpu-throttle-alert", "hot-surface-alert"))
    parts.ina3221(
        tree,
        3,
        "7-0040",
        [("VDD_IN", 5104, 780, 3600), ("VDD_CPU_GPU_CV", 5104, 112, 2400), ("VDD_SOC", 5104, 224, 2400)],
    )
    device = "sys/devices/17000000.gv11b"
    parts.gpu(
        tree, device, "gv11b", (114750000, 204000000, 306000000, 408000000, 510000000, 599250000, 803250000, 1109250000)
    )
    tree.write(f"{device}/load", "1000")
    parts.cpus(tree, (0, 2, 4), (115200, 268800, 806400, 1190400, 1420800, 1651200, 1907200))
    tree.emc_cap = "sys/kernel/nvpmodel_emc_cap/emc_iso_cap"
    tree.write(tree.emc_cap, "0")
    names = (
        "15W_2CORE",
        "15W_4CORE",
        "15W_6CORE",
        "10W_2CORE",
        "10W_4CORE",
        "10W_DESKTOP",
        "20W_2CORE",
        "20W_4CORE",
        "20W_6CORE",
    )
    caps = {"10": (1190400, 510000000), "15": (1420800, 1109250000), "20": (1420800, 1109250000)}
    models = [
        Model(number, f"MODE_{name}", *caps[name[:2]], emc=1600000000, mask=1, cores=_cores(name))
        for number, name in enumerate(names)
    ]
    parts.power_modes(tree, models, default=2, now=8)


def _cores(mode: str) -> int:
    return int(mode[4]) if mode.endswith("CORE") else 4


def _thor(tree: BoardTree) -> None:
    """JetPack 7: other names of nearly everything, an idle GPU at 0 Hz, its load known to NVML only."""
    parts.jetson(tree, "NVIDIA Jetson AGX Thor Developer Kit", "nvidia,tegra264", "R38")
    trips = (("passive", 109000), ("critical", 114500))
    zones = {
        "cpu-thermal": 39875,
        "tj-thermal": 41468,
        "soc012-thermal": 41468,
        "gpu-thermal": 39125,
        "soc345-thermal": 40281,
    }
    parts.thermal_zones(tree, zones, dict.fromkeys(zones, trips))
    parts.cooling_devices(
        tree, ("cpu-throttle-alert", "gpu-throttle-alert", "soc012-throttle-alert", "soc345-throttle-alert")
    )
    parts.ina3221(
        tree,
        2,
        "2-0040",
        [("VDD_GPU", 11904, 40, 9000), ("VDD_CPU_SOC_MSS", 11888, 320, 9000), ("VIN_SYS_5V0", 4992, 960, 9000)],
    )
    ina238 = "sys/bus/i2c/devices/2-0044/hwmon/hwmon3"
    for file, text in (
        ("name", "ina238"),
        ("in1_input", "19968"),
        ("curr1_input", "1300"),
        ("power1_input", "26112000"),
    ):
        tree.write(f"{ina238}/{file}", text)
    tree.link("sys/class/hwmon/hwmon3", ina238)
    parts.over_current(tree, 4)
    device = "sys/devices/platform/bus@0/gpu-gpc-0"
    parts.gpu(tree, device, "gpu-gpc-0", (315000000, 630000000, 945000000, 1260000000, 1575000000))
    tree.write(f"{tree.gpu}/cur_freq", "0")
    bandwidth = "sys/devices/platform/bus@0/bwmgr/devfreq/bwmgr"
    tree.link("sys/class/devfreq/bwmgr", bandwidth)
    for file, rate in (("cur_freq", 2133000000), ("min_freq", 665600000), ("max_freq", 4266000000)):
        tree.write(f"{bandwidth}/{file}", str(rate))
    parts.cpus(tree, (0, 4, 8, 12), (864000, 1188000, 1566000, 1998000, 2322000, 2601000))
    parts.power_modes(
        tree,
        [
            Model(0, "MAXN"),
            Model(1, "120W", cpu=2322000, gpu=1260000000),
            Model(2, "90W", cpu=1998000, gpu=945000000),
            Model(3, "70W", cpu=1566000, gpu=945000000),
        ],
        default=1,
        now=1,
    )


def _pc(tree: BoardTree) -> None:
    """A laptop: no GPU of ours, RAPL, a battery, and a mouse with one of its own."""
    parts.thermal_zones(
        tree,
        {"acpitz": 27800, "x86_pkg_temp": 52000},
        {"x86_pkg_temp": (("passive", 0),), "acpitz": (("critical", 119000),)},
    )
    parts.cooling_devices(tree, ("Processor",))
    for file, text in {
        "name": "coretemp",
        "temp1_label": "Package id 0",
        "temp1_input": "53000",
        "temp1_max": "80000",
        "temp1_crit": "100000",
        "temp2_label": "Core 0",
        "temp2_input": "51000",
    }.items():
        tree.write(f"sys/class/hwmon/hwmon5/{file}", text)
    parts.cpus(tree, (0, 1, 2, 3), (400000, 1200000, 2800000, 4200000), governor="powersave")
    for policy in tree.policies:  # intel_pstate has no table
        (tree.root / policy / "scaling_available_frequencies").unlink()
    for zone, name, energy in (
        ("intel-rapl:0", "package-0", 1000),
        ("intel-rapl:0:2", "dram", 50),
        ("intel-rapl:1", "psys", 9000),
    ):
        tree.write(f"sys/class/powercap/{zone}/name", name)
        tree.write(f"sys/class/powercap/{zone}/energy_uj", str(energy))
        tree.write(f"sys/class/powercap/{zone}/max_energy_range_uj", "262143328850")
    for supply, files in {
        "BAT0": {"type": "Battery", "present": "1", "capacity": "76", "status": "Discharging"},
        "AC": {"type": "Mains", "online": "0"},
        "hidpp_battery_0": {
            "type": "Battery",
            "scope": "Device",
            "present": "1",
            "capacity": "5",
            "status": "Discharging",
        },
    }.items():
        for file, text in files.items():
            tree.write(f"sys/class/power_supply/{supply}/{file}", text)

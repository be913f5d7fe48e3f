from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from simulators import boards
from simulators.board_parts import BoardTree

from power.limits import read_limits
from power.reading import Battery, Clock, Rail, Reading
from power.sensors import Sensors, is_jetson

EXPECTED = {
    "orin-nano-super": (
        {"cpu": 48500, "gpu": 47250, "soc0": 46900, "soc1": 47100, "tj": 48500},
        5608,
        "MAXN_SUPER",
        {"gpu": 0.137},
    ),
    "agx-orin": ({"cpu": 48500, "gpu": 47250, "soc0": 46900, "soc1": 47100, "tj": 48500}, 10460, "MAXN", {"gpu": 0.0}),
    "xavier-nx": ({"cpu": 41500, "gpu": 40000, "aux": 39500, "ao": 40500}, 3981, "MODE_20W_6CORE", {"gpu": 1.0}),
    "thor": ({"cpu": 39875, "tj": 41468, "soc012": 41468, "gpu": 39125, "soc345": 40281}, 26112, "120W", {}),
    "pc": ({"acpitz": 27800, "x86_pkg_temp": 52000, "cpu": 53000}, None, None, {}),
}
"""Temperatures, total power in mW, power mode and loads, at first."""


def read(tree: BoardTree) -> Reading:
    return Sensors(tree.root, jtop=False).read()


def test_every_board_is_read_in_our_units(any_board: BoardTree) -> None:
    reading = read(any_board)
    temperatures, total, mode, loads = EXPECTED[any_board.name]
    assert reading.temperatures == temperatures
    assert reading.total_power_mw == total
    assert reading.power_mode == mode
    assert reading.loads == loads
    assert reading.memory_available == 5_120_000 * 1024
    assert (reading.throttling, reading.degraded) == ((), {})
    for name, clock in reading.clocks.items():
        assert name == "emc" or 100_000_000 < (clock.max_hz or 0) < 5_000_000_000, f"{name} is not in Hz"


def test_clocks_of_gpu_processor_and_memory(orin: BoardTree) -> None:
    assert read(orin).clocks == {
        "gpu": Clock(306_000_000, 306_000_000, 1_020_000_000),
        "cpu0": Clock(729_600_000, 115_200_000, 1_728_000_000),
        "cpu4": Clock(729_600_000, 115_200_000, 1_728_000_000),
        "emc": Clock(2_133_000_000, None, None),
    }


def test_an_idle_gpu_at_0_hz_has_no_clock_now(tmp_path: Path) -> None:
    clock = read(boards.make("thor", tmp_path / "root")).clocks["gpu"]
    assert clock == Clock(None, 315_000_000, 1_260_000_000)


def test_rails_leave_out_what_is_no_supply(tmp_path: Path) -> None:
    rails = read(boards.make("agx-orin", tmp_path / "root")).rails
    assert [rail.name for rail in rails] == ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0", "VDDQ_VDD2_1V8AO"]
    assert rails[0] == Rail("VDD_GPU_SOC", power_mw=3800, voltage_mv=19_000, current_ma=200)


def test_a_rail_that_says_nothing_makes_no_zero_of_the_sum(tmp_path: Path) -> None:
    tree = boards.make("agx-orin", tmp_path / "root")
    (tree.root / "sys/class/hwmon/hwmon3/curr2_input").unlink()
    reading = read(tree)
    assert reading.rails[-1] == Rail("VDDQ_VDD2_1V8AO", power_mw=None, voltage_mv=19_000, current_ma=None)
    assert reading.total_power_mw is None


def test_the_rail_that_feeds_all_is_the_total_or_nothing_is(orin: BoardTree) -> None:
    orin.write("sys/class/hwmon/hwmon1/curr1_input", "-650788")
    assert read(orin).total_power_mw is None


@pytest.mark.parametrize("bad", ["-256000", "-256001", "-650788", "125001", "", "nan", "48.5", "2147483647"])
def test_what_a_sensor_that_is_off_says_is_no_temperature(orin: BoardTree, bad: str) -> None:
    orin.set_temperature("gpu-thermal", bad)
    assert "gpu" not in read(orin).temperatures


def test_frost_is_a_temperature(orin: BoardTree) -> None:
    orin.set_temperatures(-12_000)
    assert set(read(orin).temperatures.values()) == {-12_000}
    assert read(orin).hottest == -12_000


def test_a_zone_that_blocks_is_skipped_and_told_of(orin: BoardTree) -> None:
    path = f"{orin.zones['cv0-thermal']}/temp"
    orin.block(path)
    sensors = Sensors(orin.root, jtop=False)
    began = time.monotonic()
    first = sensors.read()
    assert time.monotonic() - began < 10
    assert first.temperatures == EXPECTED["orin-nano-super"][0]
    assert list(first.degraded.values()) == ["does not answer, and is skipped"]
    assert "thermal" in next(iter(first.degraded))
    began = time.monotonic()
    second = sensors.read()
    assert time.monotonic() - began < 10
    assert second.degraded == first.degraded
    orin.unblock(path, "41000")


def test_alerts_are_told_and_fans_are_none(orin: BoardTree) -> None:
    sensors = Sensors(orin.root, jtop=False)
    assert sensors.read().throttling == ()
    orin.set_throttling("cpu-throttle-alert")
    orin.set_throttling("hot-surface-alert")
    assert sensors.read().throttling == ("cpu-throttle-alert", "hot-surface-alert")
    orin.set_throttling("cpu-throttle-alert", on=False)
    assert sensors.read().throttling == ("hot-surface-alert",)


def test_thors_own_names_of_alerts(tmp_path: Path) -> None:
    tree = boards.make("thor", tmp_path / "root")
    tree.set_throttling("soc012-throttle-alert")
    assert read(tree).throttling == ("soc012-throttle-alert",)


def test_over_current_is_counted(orin: BoardTree) -> None:
    orin.write("sys/class/hwmon/hwmon2/oc2_event_cnt", "3")
    assert read(orin).over_current_events == {"oc1": 0, "oc2": 3, "oc3": 0}


def test_processor_load_is_what_was_busy_since(orin: BoardTree) -> None:
    sensors = Sensors(orin.root, jtop=False)
    assert "cpu" not in sensors.read().loads
    orin.write("proc/stat", "cpu  1020 0 510 8050 520 0 0 0 0 0")  # 30 of 100 ticks were busy
    assert sensors.read().loads["cpu"] == pytest.approx(0.3)
    assert "cpu" not in sensors.read().loads  # no tick has passed


def test_a_pcs_energy_becomes_power(pc: BoardTree) -> None:
    seconds = iter([100.0, 102.0, 104.0, 106.0])
    sensors = Sensors(pc.root, jtop=False, clock=lambda: next(seconds))
    assert sensors.read().rails == ()
    for zone, energy in (("intel-rapl:0", 30_001_000), ("intel-rapl:0:2", 2_000_050), ("intel-rapl:1", 50_009_000)):
        pc.write(f"sys/class/powercap/{zone}/energy_uj", str(energy))
    reading = sensors.read()
    assert reading.rails == (Rail("package-0", 15_000), Rail("dram", 1_000), Rail("psys", 25_000))
    assert reading.total_power_mw == 25_000


def test_energy_that_begins_again_at_its_range_is_no_leap(pc: BoardTree) -> None:
    seconds = iter([0.0, 1.0])
    pc.write("sys/class/powercap/intel-rapl:0/energy_uj", "262143328850")
    sensors = Sensors(pc.root, jtop=False, clock=lambda: next(seconds))
    sensors.read()
    pc.write("sys/class/powercap/intel-rapl:0/energy_uj", "9999999")
    assert sensors.read().rails[0] == Rail("package-0", 10_000)


def test_energy_that_only_root_may_read_is_told_of(pc: BoardTree) -> None:
    if os.geteuid() == 0:  # root reads everything: let it be what cannot be read at all
        for zone in ("intel-rapl:0", "intel-rapl:0:2", "intel-rapl:1"):
            path = pc.root / f"sys/class/powercap/{zone}/energy_uj"
            path.unlink()
            path.mkdir()
    else:
        for zone in ("intel-rapl:0", "intel-rapl:0:2", "intel-rapl:1"):
            (pc.root / f"sys/class/powercap/{zone}/energy_uj").chmod(0)
    reading = read(pc)
    assert "only root" in reading.degraded["rapl"]
    assert reading.total_power_mw is None


def test_a_pcs_processor_tells_that_it_throttled(pc: BoardTree) -> None:
    counter = "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"
    pc.write(counter, "7")
    sensors = Sensors(pc.root, jtop=False)
    assert sensors.read().throttling == ()
    pc.write(counter, "9")
    assert sensors.read().throttling == ("cpu",)
    assert sensors.read().throttling == ()


def test_the_battery_of_a_mouse_does_not_count(pc: BoardTree) -> None:
    assert read(pc).battery == Battery(percent=76, charging=False)
    pc.write("sys/class/power_supply/BAT0/status", "Charging")
    assert read(pc).battery == Battery(percent=76, charging=True)
    pc.write("sys/class/power_supply/BAT0/capacity", "250")
    assert read(pc).battery == Battery(percent=None, charging=True)
    pc.write("sys/class/power_supply/BAT0/present", "0")
    assert read(pc).battery is None


def test_a_gpu_that_comes_up_later_is_found(tmp_path: Path) -> None:
    tree = boards.make("agx-orin", tmp_path / "root")
    assert tree.gpu is not None
    link = tree.root / "sys/class/devfreq" / Path(tree.gpu).name
    link.rename(tmp_path / "later")
    now = [0.0]
    sensors = Sensors(tree.root, jtop=False, clock=lambda: now[0])
    assert "gpu" not in sensors.read().clocks
    (tmp_path / "later").rename(link)
    now[0] = 61.0
    assert "gpu" in sensors.read().clocks


def test_a_machine_that_has_nothing_of_all_this(tmp_path: Path) -> None:
    reading = Sensors(tmp_path, jtop=False).read()
    assert reading == Reading(at_s=reading.at_s)
    assert read_limits(tmp_path).throttle_at is None


def test_this_machine_can_be_read() -> None:
    reading = Sensors(jtop=False).read()
    assert reading.memory_available


def test_reading_again_and_again_leaves_no_descriptor_and_no_thread(orin: BoardTree) -> None:
    sensors = Sensors(orin.root, jtop=False)
    sensors.read()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(int(os.environ.get("SPEAKD_POLLS", "300"))):
        sensors.read()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before  # fewer where what other tests left was collected


def test_which_machine_is_a_jetson(any_board: BoardTree) -> None:
    assert is_jetson(any_board.root) == (any_board.name != "pc")
    (any_board.root / "etc/nv_tegra_release").unlink(missing_ok=True)
    assert is_jetson(any_board.root) == (any_board.name != "pc")


LIMITS = {
    "orin-nano-super": (99_000, 104_500),
    "agx-orin": (99_000, 104_500),
    "xavier-nx": (95_500, 96_500),
    "thor": (109_000, 114_500),
    "pc": (100_000, 119_000),
}


def test_limits_are_those_that_the_board_tells(any_board: BoardTree) -> None:
    limits = read_limits(any_board.root)
    assert (limits.throttle_at, limits.critical_at) == LIMITS[any_board.name]
    assert limits.trips.keys() <= read(any_board).temperatures.keys()


def test_limits_of_one_zone_and_of_rails(orin: BoardTree) -> None:
    limits = read_limits(orin.root)
    assert limits.throttle("cpu") == 99_000
    assert limits.throttle("tj") is None, "a fan's trip point throttles nothing"
    assert limits.critical("tj") == 104_500
    assert limits.rails_warn_ma == {"VDD_IN": 4000, "VDD_CPU_GPU_CV": 3000, "VDD_SOC": 2000}


def test_another_boards_limits_are_others(orin: BoardTree) -> None:
    orin.write(f"{orin.zones['gpu-thermal']}/trip_point_0_temp", "88000")
    assert read_limits(orin.root).throttle_at == 88_000


@pytest.mark.parametrize("off", ["0", "-256000", "2147483647", "?"])
def test_a_trip_point_that_is_switched_off_is_none(orin: BoardTree, off: str) -> None:
    for zone in ("cpu-thermal", "gpu-thermal", "soc0-thermal"):
        for trip in range(3):
            if (orin.root / f"{orin.zones[zone]}/trip_point_{trip}_temp").exists():
                orin.write(f"{orin.zones[zone]}/trip_point_{trip}_temp", off)
    assert read_limits(orin.root).throttle_at == 104_500, "the critical one of tj is left"

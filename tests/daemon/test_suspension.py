"""How it is noticed that the machine was suspended."""

from __future__ import annotations

from daemon.suspension import Suspension


class Clocks:
    def __init__(self) -> None:
        self.running = 100.0
        self.all_along = 5000.0
        self.put_aside_s = 0.0

    def read_running(self) -> float:
        return self.running

    def read_all_along(self) -> float:
        self.pass_by(self.put_aside_s)
        return self.all_along

    def pass_by(self, seconds: float) -> None:
        self.running += seconds
        self.all_along += seconds

    def sleep(self, seconds: float) -> None:
        self.all_along += seconds


def test_a_suspension_is_told_once_and_for_as_long_as_it_lasted() -> None:
    clocks = Clocks()
    suspension = Suspension(clocks.read_running, clocks.read_all_along)
    clocks.pass_by(1000)
    assert suspension.slept_s() == 0
    clocks.sleep(3600)
    clocks.pass_by(5)
    assert suspension.slept_s() == 3600
    clocks.pass_by(5)
    assert suspension.slept_s() == 0
    clocks.sleep(40)
    clocks.sleep(20)
    assert suspension.slept_s() == 60


def test_a_process_that_is_put_aside_has_not_slept() -> None:
    clocks = Clocks()
    clocks.put_aside_s = 30
    suspension = Suspension(clocks.read_running, clocks.read_all_along)
    clocks.put_aside_s = 0
    assert suspension.slept_s() == 0
    clocks.put_aside_s = 30
    assert suspension.slept_s() == 0
    clocks.sleep(3600)
    assert suspension.slept_s() == 0, "not now"
    clocks.put_aside_s = 0
    assert suspension.slept_s() == 3600


def test_this_machine_is_awake() -> None:
    assert Suspension().slept_s() == 0

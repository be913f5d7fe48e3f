"""A daemon that governs a copied board: real commands through a real broker change real files, by the real helper."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median

import pytest
from integration.conftest import MakeDaemon
from simulators import boards
from simulators.board_parts import BoardTree
from simulators.controller import Controller
from simulators.daemon_process import DaemonProcess
from simulators.power_helper import HelperProcess
from simulators.waiting import wait_until

TIMEOUT_S = 60.0

FIRST_MS = 2000
"""On a machine that is busy with other things; what hangs here hangs until the end of the test."""


def caps(tree: BoardTree) -> dict[str, tuple[int, int]]:
    """Give each clock's limits. A file that is being written is empty for a moment, which the kernel's are not."""
    while True:
        with suppress(ValueError):
            return tree.caps()


def wait_for_mode(controller: Controller, mode: str, *, after: int = 0) -> dict[str, object]:
    def found() -> list[dict[str, object]]:
        return [status for status in controller.statuses[after:] if status.get("mode") == mode]

    controller.wait_until(lambda: bool(found()), f"no mode {mode}", TIMEOUT_S)
    return found()[0]


def speak_until_mode(controller: Controller, mode: str, *, after: int) -> None:
    """Give one command after another until the daemon is in a mode: some readings later, as one may be an outlier."""
    for number in range(20):
        controller.speak({"id": f"{mode}-{number}", "text": "Go."})
        if any(status.get("mode") == mode for status in controller.statuses[after:]):
            return
    raise AssertionError(f"no mode {mode} after 20 commands; the last status was {controller.statuses[-1]}")


@contextmanager
def governed(
    tree: BoardTree, make_daemon: MakeDaemon, controller: Controller, **power: object
) -> Iterator[DaemonProcess]:
    """Give a daemon on a board, with its helper."""
    settings = {"root": str(tree.root), "interval_s": 0.5, "idle_s": 10, "jtop": False, **power}
    with ExitStack() as opened:
        helper = opened.enter_context(HelperProcess(tree))
        daemon = opened.enter_context(make_daemon(power={"helper": str(helper.socket), **settings}))
        controller.wait_for_status("online")
        yield daemon


@pytest.mark.parametrize("name", boards.JETSONS)
def test_clocks_follow_commands_and_are_put_back(
    name: str, make_daemon: MakeDaemon, controller: Controller, tmp_path: Path
) -> None:
    tree = boards.make(name, tmp_path / "board")
    found = caps(tree)

    def pinned() -> bool:
        return all(low == high == found[clock][1] for clock, (low, high) in caps(tree).items())

    def capped() -> bool:
        return all(high < found[clock][1] for clock, (_, high) in caps(tree).items())

    with governed(tree, make_daemon, controller):
        assert wait_for_mode(controller, "latency")["power"] == "ok"
        controller.publish({"id": "one", "text": "One, two, three, four."})
        controller.wait_for("one", "started")
        wait_until(pinned, lambda: f"someone is spoken to, and the clocks are {caps(tree)}, not {found}")
        controller.wait_for_final("one")
        if name != "orin-nano-super":  # how long it then waits is no matter of the board
            controller.publish("efficiency", command="mode/set")
        wait_until(capped, lambda: f"nobody speaks, and the clocks are {caps(tree)}")
        controller.publish("auto", command="mode/set")
        controller.publish({"id": "two", "text": "One, two, three, four."})
        controller.wait_for("two", "started")
        wait_until(pinned, lambda: f"the clocks are {caps(tree)}")
        statuses = len(controller.statuses)
        tree.set_temperatures(104_000)
        reason = wait_for_mode(controller, "protect", after=statuses)["mode_reason"]
        assert "above its threshold" in str(reason)
        wait_until(capped, lambda: f"it is too hot, and the clocks are {caps(tree)}")
        controller.wait_for_final("two")
        assert controller.speak({"id": "three", "text": "Go."})[-1]["event"] == "finished"
        if name == "orin-nano-super":  # what it does then is no matter of the board
            statuses = len(controller.statuses)
            tree.set_temperatures(45_000)
            speak_until_mode(controller, "latency", after=statuses)
    assert caps(tree) == found


def test_a_daemon_that_is_killed_leaves_the_board_as_it_was(
    make_daemon: MakeDaemon, controller: Controller, tmp_path: Path
) -> None:
    tree = boards.make("orin-nano-super", tmp_path / "board")
    found = caps(tree)
    with governed(tree, make_daemon, controller) as daemon:
        wait_until(lambda: caps(tree) != found, lambda: "nothing is changed")
        daemon.kill()
        daemon.wait()
        wait_until(lambda: caps(tree) == found, lambda: f"the clocks are {caps(tree)}, not {found}")


JTOP_THAT_HANGS = """
import threading

class JtopException(Exception):
    pass

class jtop:
    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        threading.Event().wait()

    start = __enter__
"""


def test_a_jtop_that_hangs_delays_no_sound(make_daemon: MakeDaemon, controller: Controller, tmp_path: Path) -> None:
    tree = boards.make("thor", tmp_path / "board")
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub/jtop.py").write_text(JTOP_THAT_HANGS)
    path = os.pathsep.join([str(tmp_path / "stub"), str(Path(__file__).parents[2])])
    power = {"root": str(tree.root), "interval_s": 0.5, "helper": str(tmp_path / "none.sock"), "jtop": True}
    with make_daemon(power=power, environment={"PYTHONPATH": path}):
        controller.wait_for_status("online")
        firsts = [controller.speak({"id": f"s{i}", "text": f"Number {i}."})[1]["ttfa_ms"] for i in range(5)]
        assert median(firsts) < FIRST_MS, firsts
        tree.set_temperatures(104_000)
        wait_for_mode(controller, "protect")


def test_a_mode_may_be_set_for_a_time(make_daemon: MakeDaemon, controller: Controller, tmp_path: Path) -> None:
    tree = boards.make("orin-nano-super", tmp_path / "board")
    with governed(tree, make_daemon, controller):
        wait_for_mode(controller, "latency")
        controller.publish({"mode": "efficiency", "for_s": 2, "request": "r1"}, command="mode/set")
        controller.wait_until(lambda: any(e.get("request") == "r1" for e in controller.events), "no answer", TIMEOUT_S)
        status = wait_for_mode(controller, "efficiency")
        assert status["mode_reason"] == "asked for"
        settings = controller.settings[-1]
        assert (settings["mode"], "mode_until" in settings) == ("efficiency", True)
        statuses = len(controller.statuses)
        wait_for_mode(controller, "latency", after=statuses)
        assert controller.settings[-1]["mode"] == "auto"
        controller.publish("protect", command="mode/set")
        wait_for_mode(controller, "protect", after=statuses)


def test_without_a_governor_no_mode_is_promised(make_daemon: MakeDaemon, controller: Controller) -> None:
    with make_daemon(power={"enabled": False}):
        assert "mode" not in controller.wait_for_status("online")
        controller.publish({"mode": "protect", "request": "r1"}, command="mode/set")
        assert controller.wait_for("r1", "rejected")["code"] == "topic"


def test_without_a_helper_it_watches_and_says_so(
    make_daemon: MakeDaemon, controller: Controller, tmp_path: Path
) -> None:
    tree = boards.make("agx-orin", tmp_path / "board")
    found = caps(tree)
    power = {"root": str(tree.root), "interval_s": 0.5, "helper": str(tmp_path / "none.sock"), "jtop": False}
    with make_daemon(power=power) as daemon:
        controller.wait_for_status("online")
        controller.wait_until(
            lambda: "cannot be reached" in str(controller.statuses[-1].get("power")), "nothing is said of it", TIMEOUT_S
        )
        assert controller.speak({"id": "one", "text": "Go."})[-1]["event"] == "finished"
        tree.set_temperatures(104_000)
        wait_for_mode(controller, "protect")
        assert daemon.log.count("do not follow") == 1
    assert caps(tree) == found


def test_files_wait_while_it_is_too_hot_and_streams_do_not(
    make_daemon: MakeDaemon, controller: Controller, tmp_path: Path
) -> None:
    tree = boards.make("orin-nano-super", tmp_path / "board")
    with governed(tree, make_daemon, controller):
        tree.set_temperatures(104_000)
        wait_for_mode(controller, "protect")
        controller.publish({"id": "file", "text": "Go.", "output": "file"})
        assert controller.speak({"id": "stream", "text": "Go.", "output": "stream"})[-1]["event"] == "finished"
        assert controller.speak({"id": "aloud", "text": "Go."})[-1]["event"] == "finished"
        assert [event["event"] for event in controller.events_of("file")] == ["accepted"]
        statuses = len(controller.statuses)
        tree.set_temperatures(45_000)
        speak_until_mode(controller, "latency", after=statuses)
        assert controller.wait_for_final("file")[-1]["event"] == "finished"


def test_what_hangs_delays_no_sound(make_daemon: MakeDaemon, controller: Controller, tmp_path: Path) -> None:
    """A sensor that blocks, and a helper that takes the connection and never answers."""
    tree = boards.make("orin-nano-super", tmp_path / "board")
    tree.block("sys/class/hwmon/hwmon1/curr1_input")
    silent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    silent.bind(str(tmp_path / "silent.sock"))
    silent.listen()
    power = {"root": str(tree.root), "interval_s": 0.5, "helper": str(tmp_path / "silent.sock"), "jtop": False}
    with silent, make_daemon(power=power):
        controller.wait_for_status("online")
        firsts = [controller.speak({"id": f"s{i}", "text": f"Number {i}."})[1]["ttfa_ms"] for i in range(5)]
        assert median(firsts) < FIRST_MS, firsts
        tree.set_temperatures(104_000)
        wait_for_mode(controller, "protect")

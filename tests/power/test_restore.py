"""Boards are put back as they were found, whatever happens to the daemon and its helper."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from simulators.board_parts import BoardTree
from simulators.governed import EFFICIENCY, LATENCY, PROTECT, Connect, whole
from simulators.power_helper import HelperProcess
from simulators.waiting import wait_until

from power import sysfs
from power.actions import SetEmcCap, SetLimits, SetPowerMode
from power.actor import Actor
from power.errors import BoardChangedError, StateError
from power.mode import Decision
from power.modes import Modes
from power.saved import SnapshotFile


@pytest.mark.parametrize("decision", [LATENCY, EFFICIENCY, PROTECT], ids=lambda decision: str(decision.mode.value))
def test_restored_at_the_next_start_after_both_were_killed(
    connect: Connect, jetson: BoardTree, helper: HelperProcess, decision: Decision
) -> None:
    before = whole(jetson)
    daemon = connect(helper, jetson)
    daemon.apply(decision)
    helper.kill()
    assert whole(jetson) != before
    daemon.client.close()
    helper.start()
    wait_until(lambda: not helper.state.exists(), "all is put back")
    assert whole(jetson) == before


@pytest.mark.parametrize("content", ["whole", "{"], ids=["whole", "damaged"])
def test_a_disk_that_takes_no_change_any_more_ends_no_helper(
    orin: BoardTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    """As the kernel leaves a file system on a card that fails: mounted read-only."""
    before = whole(orin)
    state = tmp_path / "state.json"
    Modes(Actor(orin.root, state)).apply(EFFICIENCY)
    if content != "whole":
        state.write_text(content)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    for change in ("unlink", "replace"):
        monkeypatch.setattr(Path, change, refuse)
    (problem,) = Actor(orin.root, state).restore()
    assert "Read-only file system" in problem
    assert (whole(orin) == before) == (content == "whole")


class KilledError(BaseException):
    """Ends whatever runs, as SIGKILL would."""


def test_restored_whichever_write_it_dies_at(orin: BoardTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = whole(orin)
    state = tmp_path / "state.json"
    write = sysfs.write
    for survived in itertools.count():
        left = iter(range(survived))

        def write_until_killed(path: Path, text: str, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise KilledError
            write(path, text)

        monkeypatch.setattr(sysfs, "write", write_until_killed)
        modes = Modes(Actor(orin.root, state))
        try:
            for decision in (LATENCY, EFFICIENCY, PROTECT, LATENCY):
                assert modes.apply(decision).refused == ()
        except KilledError:
            is_over = False
        else:
            is_over = True
        monkeypatch.setattr(sysfs, "write", write)
        assert Actor(orin.root, state).restore() == []
        assert whole(orin) == before, f"killed at write {survived + 1}"
        assert not state.exists()
        if is_over:
            assert survived > 10
            break


def test_restored_when_the_helper_is_told_to_end(connect: Connect, jetson: BoardTree, helper: HelperProcess) -> None:
    before = whole(jetson)
    connect(helper, jetson).apply(PROTECT)
    assert helper.stop() == 0
    assert whole(jetson) == before


def test_restored_when_the_daemon_is_killed(orin: BoardTree, orin_helper: HelperProcess) -> None:
    before = whole(orin)
    code = (
        "import sys, time; from pathlib import Path\n"
        "from power.helper_client import HelperClient; from power.modes import Modes\n"
        "from power.mode import Decision, Mode\n"
        "modes = Modes(HelperClient(Path(sys.argv[1]), Path(sys.argv[2])))\n"
        "print(modes.apply(Decision(Mode.PROTECT, 'hot', clocks_capped=True)).refused, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, orin_helper.socket, orin.root]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == b"()\n"
        assert whole(orin) != before
        daemon.kill()
    wait_until(lambda: not orin_helper.state.exists(), "all is put back")
    assert whole(orin) == before


def test_restored_on_request(connect: Connect, orin: BoardTree, orin_helper: HelperProcess) -> None:
    before = whole(orin)
    daemon = connect(orin_helper, orin)
    daemon.apply(PROTECT)
    assert daemon.modes.restore().refused == ()
    assert whole(orin) == before
    assert not orin_helper.state.exists()
    assert daemon.apply(EFFICIENCY).changed, "and from there on again"


def test_what_cannot_be_kept_is_not_changed(orin: BoardTree, tmp_path: Path) -> None:
    before = whole(orin)
    actor = Actor(orin.root, tmp_path / "no such folder/state.json")
    for action in (SetLimits("gpu", 306000000, 612000000), SetEmcCap(2133000000), SetPowerMode(1)):
        with pytest.raises(StateError, match="nothing is changed"):
            actor.do(action)
    assert whole(orin) == before


def test_clocks_that_jetson_clocks_had_pinned_are_pinned_again(
    connect: Connect, orin: BoardTree, orin_helper: HelperProcess
) -> None:
    for policy in orin.policies:
        orin.write(f"{policy}/scaling_min_freq", "1728000")
    orin.write(f"{orin.gpu}/min_freq", "1020000000")
    before = whole(orin)
    daemon = connect(orin_helper, orin)
    daemon.apply(EFFICIENCY)
    assert orin.caps()[str(orin.gpu)] == (306000000, 612000000)
    orin_helper.stop()
    assert whole(orin) == before


def test_after_a_reboot_the_power_mode_is_put_back_and_the_limits_are_the_kernels(
    connect: Connect, orin: BoardTree, orin_helper: HelperProcess
) -> None:
    mode = orin.read("var/lib/nvpmodel/status")
    connect(orin_helper, orin).apply(PROTECT)
    orin_helper.kill()
    orin.write("proc/sys/kernel/random/boot_id", "another")
    orin.write(f"{orin.gpu}/min_freq", "408000000")  # as the new boot has set it
    orin_helper.forget_writes()
    orin_helper.start()
    wait_until(lambda: not orin_helper.state.exists(), "the mode is put back")
    assert orin.read("var/lib/nvpmodel/status") == mode
    assert orin_helper.writes() == []


def test_a_mode_that_somebody_else_chooses_holds(connect: Connect, orin: BoardTree, orin_helper: HelperProcess) -> None:
    daemon = connect(orin_helper, orin)
    daemon.apply(EFFICIENCY)
    subprocess.run([orin.root / "usr/sbin/nvpmodel", "-m", "0"], check=True, stdin=subprocess.DEVNULL)
    theirs = whole(orin)
    assert "somebody else has chosen power mode 0" in daemon.modes.apply(LATENCY).refused[0]
    assert whole(orin) == theirs
    daemon.apply(LATENCY)
    assert orin.caps()[str(orin.gpu)] == (612000000, 612000000), "within what they chose"
    orin_helper.stop()
    assert orin.read("var/lib/nvpmodel/status").startswith("pmode:0000")


def test_nor_does_a_disk_that_fails_hide_that_the_board_has_changed(
    orin: BoardTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor = Actor(orin.root, tmp_path / "state.json")
    actor.do(SetLimits("gpu", 306000000, 612000000))
    orin.write("var/lib/nvpmodel/status", "pmode:0000 fmode:quiet")

    def fail(_file: SnapshotFile) -> None:
        raise StateError("the disk takes no change")

    monkeypatch.setattr(SnapshotFile, "forget", fail)
    with pytest.raises(BoardChangedError, match="power mode 0: its limits hold now; the disk takes no change"):
        actor.do(SetLimits("gpu", 306000000, 612000000))


def test_what_cannot_be_put_back_is_kept_for_the_next_start(
    connect: Connect, orin: BoardTree, orin_helper: HelperProcess
) -> None:
    before = whole(orin)
    connect(orin_helper, orin).apply(PROTECT)
    orin.nvpmodel_does("refuse")
    orin_helper.stop()
    assert "not put back (at the end): power mode MAXN_SUPER: nvpmodel -m 2 cannot be run" in orin_helper.log()
    assert orin_helper.state.exists()
    orin.nvpmodel_does("")
    orin_helper.start()
    wait_until(lambda: not orin_helper.state.exists(), "all is put back")
    assert whole(orin) == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"limits": 7}',
        b'{"limits": {"gpu": ["1"]}}',
        b"\xff\x00",
        b'{"boot": "b", "limits": {}, "emc_cap": 7, "mode": 2}',
        b'{"boot": "b", "limits": {}, "emc_cap": "0", "mode": "two", "mode_asked": [1]}',
    ],
)
def test_a_state_file_that_is_damaged_is_put_aside(
    connect: Connect, orin: BoardTree, orin_helper: HelperProcess, content: bytes
) -> None:
    before = whole(orin)
    orin_helper.stop()
    orin_helper.state.write_bytes(content)
    orin_helper.start()
    wait_until(lambda: not orin_helper.state.exists(), "it is put aside")
    connect(orin_helper, orin).apply(EFFICIENCY)
    orin_helper.stop()
    assert whole(orin) == before
    assert "reboot" in orin_helper.log()


def test_old_values_are_on_the_disk_before_anything_is_written(
    connect: Connect, orin: BoardTree, orin_helper: HelperProcess
) -> None:
    connect(orin_helper, orin).apply(PROTECT)
    kept = json.loads(orin_helper.state.read_text())
    assert kept["limits"]["gpu"] == ["306000000", "1020000000"]
    assert kept["limits"]["cpu4"] == ["115200", "1728000"]
    assert (kept["emc_cap"], kept["mode"], kept["mode_asked"]) == ("0", 2, 1)

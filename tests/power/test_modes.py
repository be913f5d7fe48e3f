"""Decisions on copied boards, through the helper as a real process over its real socket."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulators import boards
from simulators.board_parts import BoardTree
from simulators.governed import AS_FOUND, EFFICIENCY, LATENCY, PROTECT, Connect, whole
from simulators.power_helper import HelperProcess
from simulators.waiting import wait_until

from power.actions import SetEmcCap, SetLimits, SetPowerMode
from power.board import Board, read_board
from power.helper_client import HelperClient
from power.mode import Decision, Mode
from power.modes import CAPPED_SHARE, FIRST_WAIT_S, MOST_TRIES, UNKNOWN, Applied, Modes, plan

EXPECTED = {
    # board: (GPU's highest in Hz, its cap, its lowest, the same of the processor in kHz, power mode, EMC's cap)
    "orin-nano-super": (1020000000, 612000000, 306000000, 1728000, 960000, 115200, "25W", "2133000000"),
    "agx-orin": (1300500000, 714000000, 306000000, 2201600, 1190400, 115200, "MODE_50W", "2133000000"),
    "xavier-nx": (1109250000, 599250000, 114750000, 1420800, 806400, 115200, "MODE_15W_6CORE", None),
    "thor": (1260000000, 630000000, 315000000, 2322000, 1188000, 864000, "90W", None),
}


def test_the_right_files_in_the_right_order_in_the_right_units(
    connect: Connect, jetson: BoardTree, helper: HelperProcess
) -> None:
    top, cap, low, cpu_top, cpu_cap, cpu_low, lower_mode, emc = EXPECTED[jetson.name]
    gpu, policies = str(jetson.gpu), jetson.policies
    before = whole(jetson)
    daemon = connect(helper, jetson)

    daemon.apply(LATENCY)  # the lower limit rises to the upper one
    assert helper.writes() == [
        (f"{gpu}/min_freq", str(top)),
        *((f"{policy}/scaling_min_freq", str(cpu_top)) for policy in policies),
    ]
    helper.forget_writes()

    daemon.apply(EFFICIENCY)  # both fall: the lower one first
    falling = [
        (f"{gpu}/min_freq", str(low)),
        (f"{gpu}/max_freq", str(cap)),
        *(
            write
            for policy in policies
            for write in ((f"{policy}/scaling_min_freq", str(cpu_low)), (f"{policy}/scaling_max_freq", str(cpu_cap)))
        ),
    ]
    memory = [(str(jetson.emc_cap), emc)] if emc else []
    assert helper.writes() == falling + memory
    helper.forget_writes()

    daemon.apply(LATENCY)  # both rise: the upper one first
    rising = [
        (f"{gpu}/max_freq", str(top)),
        (f"{gpu}/min_freq", str(top)),
        *(
            write
            for policy in policies
            for write in ((f"{policy}/scaling_max_freq", str(cpu_top)), (f"{policy}/scaling_min_freq", str(cpu_top)))
        ),
    ]
    assert helper.writes() == rising + ([(str(jetson.emc_cap), "0")] if emc else [])

    assert daemon.apply(PROTECT).power_mode == lower_mode
    assert jetson.caps()[gpu][1] == cap
    daemon.client.close()
    wait_until(lambda: not helper.state.exists(), "all is put back")
    assert whole(jetson) == before


def test_clocks_stay_capped_whatever_a_change_of_power_mode_writes(
    connect: Connect, orin: BoardTree, orin_helper: HelperProcess
) -> None:
    daemon = connect(orin_helper, orin)
    for decision in (EFFICIENCY, PROTECT, EFFICIENCY):  # nvpmodel writes its own limits each time
        daemon.apply(decision)
        assert orin.caps()[str(orin.gpu)] == (306000000, 612000000)
        assert orin.caps()[orin.policies[1]] == (115200, 960000)
        assert orin.read(str(orin.emc_cap)) == "2133000000"


def test_a_pc_is_capped_too(connect: Connect, pc: BoardTree) -> None:
    before = pc.caps()
    with HelperProcess(pc) as helper:
        daemon = connect(helper, pc)
        daemon.apply(EFFICIENCY)
        assert set(pc.caps().values()) == {(400000, 2520000)}
        assert daemon.apply(PROTECT).power_mode is None
    assert pc.caps() == before


def test_what_is_so_already_is_not_asked_for_again(
    connect: Connect, orin: BoardTree, orin_helper: HelperProcess
) -> None:
    daemon = connect(orin_helper, orin)
    assert daemon.apply(AS_FOUND).changed == ()
    daemon.apply(EFFICIENCY)
    orin_helper.forget_writes()
    assert daemon.apply(EFFICIENCY).changed == ()
    assert orin_helper.writes() == []


def test_without_a_helper_the_board_stays_as_it_is(orin: BoardTree, tmp_path: Path) -> None:
    before = whole(orin)
    modes = Modes(HelperClient(tmp_path / "none.sock", orin.root))
    for decision in (LATENCY, EFFICIENCY, PROTECT):
        applied = modes.apply(decision)
        assert applied.changed == ()
        assert applied.refused == (
            f"the power helper cannot be reached: {tmp_path}/none.sock: No such file or directory",
        )
    assert modes.restore() == Applied()
    assert whole(orin) == before


def test_a_helper_that_comes_back_is_used_again(connect: Connect, orin: BoardTree, orin_helper: HelperProcess) -> None:
    daemon = connect(orin_helper, orin)
    daemon.apply(EFFICIENCY)
    orin_helper.stop()
    assert daemon.modes.apply(LATENCY).refused
    orin_helper.start()
    daemon.apply(EFFICIENCY)
    assert orin.caps()[str(orin.gpu)] == (306000000, 612000000)


def test_a_decision_holds_though_the_helper_was_restarted(
    connect: Connect, orin: BoardTree, orin_helper: HelperProcess
) -> None:
    daemon = connect(orin_helper, orin)
    found = orin.caps()
    daemon.apply(EFFICIENCY)
    capped = orin.caps()
    orin_helper.stop()
    assert orin.caps() == found
    orin_helper.start()
    assert daemon.modes.apply(EFFICIENCY).refused == ()
    assert orin.caps() == capped


def test_what_was_refused_is_told_for_as_long_as_it_is_so(
    connect: Connect, orin: BoardTree, orin_helper: HelperProcess
) -> None:
    daemon = connect(orin_helper, orin)
    daemon.apply(LATENCY)
    file = orin.root / str(orin.gpu) / "max_freq"
    kept = file.read_text()
    file.unlink()
    file.mkdir()
    for decision in (EFFICIENCY, EFFICIENCY, LATENCY, EFFICIENCY):
        refused = daemon.modes.apply(decision).refused
        assert len(refused) == 1
        assert "max_freq" in refused[0]
    file.rmdir()
    file.write_text(kept)
    daemon.apply(LATENCY)
    assert daemon.modes.apply(EFFICIENCY).refused == ()


@pytest.mark.parametrize("does", ["fail", "partial", "ignore", "refuse"])
def test_a_power_mode_that_fails_is_tried_ever_more_rarely(
    connect: Connect, orin: BoardTree, orin_helper: HelperProcess, does: str
) -> None:
    orin.nvpmodel_does(does)
    before = whole(orin)
    daemon = connect(orin_helper, orin)
    for _ in range(400):
        applied = daemon.modes.apply(PROTECT)
        assert applied.power_mode == UNKNOWN
        assert any("nvpmodel" in refusal for refusal in applied.refused), "it is so still"
        daemon.now += FIRST_WAIT_S / 4
    assert sum(line.startswith("failed nvpmodel") for line in orin_helper.log().splitlines()) == MOST_TRIES
    assert orin.caps()[str(orin.gpu)][1] <= 612000000, "the clocks are capped all the same"
    orin.nvpmodel_does("")
    daemon.client.close()
    wait_until(lambda: not orin_helper.state.exists(), "all is put back")
    assert whole(orin) == before


DECISIONS = st.builds(Decision, st.sampled_from(Mode), st.just("any"), clocks_capped=st.booleans())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(decision=DECISIONS)
def test_a_plan_stays_within_what_was_found(any_board: BoardTree, decision: Decision) -> None:
    board = known_board(any_board)
    for action in plan(board, decision):
        if isinstance(action, SetLimits):
            found = board.ranges[action.domain]
            assert found.lowest_hz <= action.min_hz <= action.max_hz <= found.max_hz
            assert found.offers(action.min_hz)
            assert found.offers(action.max_hz)
            if decision.clocks_capped:
                assert action.max_hz <= max(found.max_hz * CAPPED_SHARE, found.lowest_hz)
        elif isinstance(action, SetEmcCap):
            assert action.cap_hz in (*board.emc_caps, board.emc_cap_hz)
        elif isinstance(action, SetPowerMode):
            assert board.modes is not None
            assert board.mode is not None
            chosen = board.modes.by_id(action.mode_id)
            assert chosen is not None
            assert chosen.gating == board.mode.gating
            assert chosen.rank <= board.mode.rank


_BOARDS: dict[Path, Board] = {}


def known_board(tree: BoardTree) -> Board:
    """Read a board once for all examples."""
    return _BOARDS.setdefault(tree.root, read_board(tree.root))


def test_every_board_has_clocks_to_cap(any_board: BoardTree) -> None:
    ranges = read_board(any_board.root).ranges
    assert ("gpu" in ranges) == (any_board.name in boards.JETSONS)
    assert "cpu0" in ranges

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulators.board_parts import BoardTree

from power.errors import NvpmodelError
from power.nvpmodel import Nvpmodel, PowerMode, PowerModes, id_of, parse, read_file

NAMES = st.from_regex(r"\A[A-Z0-9_]{1,16}\Z")
VALUES = st.integers(-1, 2**40).map(str)
MODES = st.builds(
    PowerMode, st.integers(0, 999_999), NAMES, st.dictionaries(st.tuples(NAMES, NAMES), VALUES, max_size=4)
)
NOISE = st.sampled_from(["", "#", "# < POWER_MODEL ID=77 NAME=COMMENTED >", "   ", "junk", "< UNKNOWN THING=1 >"])


def text_of(modes: list[PowerMode], noise: list[str]) -> str:
    lines = [*noise]
    for mode in modes:
        lines += [f"< POWER_MODEL ID={mode.id} NAME={mode.name} >", "# of this mode"]
        lines += [f"{parameter} {argument} {value}" for (parameter, argument), value in mode.settings.items()]
        lines += noise
    return "\n".join([*lines, "< PM_CONFIG DEFAULT=3 >"])


@given(st.lists(MODES, unique_by=lambda mode: mode.id, max_size=6), st.lists(NOISE, max_size=3))
def test_modes_are_read_whatever_stands_between(modes: list[PowerMode], noise: list[str]) -> None:
    parsed = parse(text_of(modes, noise))
    assert list(parsed.modes) == modes
    assert parsed.default == 3


@given(st.text(alphabet=st.sampled_from("<>=# \nPARMOWEDLINCFGTUXYK_0123456789-/"), max_size=300) | st.text())
def test_takes_any_text(text: str) -> None:
    parsed = parse(text)
    for mode in parsed.modes:
        assert mode.rank >= 0
        assert parsed.lower(mode) is None or parsed.lower(mode) in parsed.modes


@given(st.lists(MODES, unique_by=lambda mode: mode.id, min_size=1, max_size=6))
def test_no_mode_behind_a_reboot_is_ever_lower(modes: list[PowerMode]) -> None:
    known = PowerModes(tuple(modes), None, {})
    for mode in modes:
        lower = known.lower(mode)
        if lower is not None:
            assert lower.gating == mode.gating
            assert lower.rank < mode.rank


@given(st.text() | st.binary().map(lambda data: data.decode("utf-8", "replace")))
def test_takes_any_status(text: str) -> None:
    assert id_of(text) is None or id_of(text) >= 0  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "watts"),
    [("15W", 15), ("MODE_30W", 30), ("MODE_20W_6CORE", 20), ("30W_ALL", 30), ("MAXN", None), ("POWER", None)],
)
def test_watts_stand_in_the_name(name: str, watts: int | None) -> None:
    assert PowerMode(0, name).watts == watts


def test_maxn_super_is_above_maxn_above_any_watts() -> None:
    names = ["7W", "MODE_50W", "MAXN", "120W", "MAXN_SUPER", "MODE_15W"]
    modes = sorted((PowerMode(0, name) for name in names), key=lambda mode: mode.rank)
    assert [mode.name for mode in modes] == ["7W", "MODE_15W", "MODE_50W", "120W", "MAXN", "MAXN_SUPER"]


LOWER = {
    "orin-nano-super": {"MAXN_SUPER": "25W", "25W": "15W", "15W": None, "7W": None},
    "agx-orin": {"MAXN": "MODE_50W", "MODE_50W": None, "MODE_30W": None, "MODE_15W": None},
    "xavier-nx": {"MODE_20W_6CORE": "MODE_15W_6CORE", "MODE_15W_2CORE": "MODE_10W_4CORE", "MODE_10W_2CORE": None},
    "thor": {"MAXN": "120W", "120W": "90W", "90W": "70W", "70W": None},
}


def test_the_next_lower_mode_needs_no_reboot(jetson: BoardTree) -> None:
    modes = read_file(jetson.root)
    assert modes is not None
    by_name = {mode.name: mode for mode in modes.modes}
    for name, lower in LOWER[jetson.name].items():
        found = modes.lower(by_name[name])
        assert (found.name if found else None) == lower


def test_a_pc_has_no_modes(pc: BoardTree) -> None:
    assert read_file(pc.root) is None


@pytest.fixture
def modes(orin: BoardTree) -> PowerModes:
    """Give those of the Orin Nano."""
    found = read_file(orin.root)
    assert found is not None
    return found


def program(tree: BoardTree, modes: PowerModes) -> Nvpmodel:
    return Nvpmodel(tree.root, modes, time_limit_s=2.0)


def mode_named(modes: PowerModes, name: str) -> PowerMode:
    return next(mode for mode in modes.modes if mode.name == name)


def test_changes_and_sees_that_it_is_so(orin: BoardTree, modes: PowerModes) -> None:
    nvpmodel = program(orin, modes)
    assert nvpmodel.current().name == "MAXN_SUPER"
    nvpmodel.change(mode_named(modes, "15W"))
    assert nvpmodel.current().name == "15W"
    assert orin.caps()[str(orin.gpu)][1] == 612_000_000


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("fail", "ended with 255: NVPM ERROR: failed to set"),
        ("partial", "and the board is in mode MAXN_SUPER"),
        ("ignore", "and the board is in mode MAXN_SUPER"),
        ("refuse", "cannot be run: Permission denied"),
    ],
)
def test_what_fails_is_told(orin: BoardTree, modes: PowerModes, does: str, reason: str) -> None:
    orin.nvpmodel_does(does)
    with pytest.raises(NvpmodelError, match=reason):
        program(orin, modes).change(mode_named(modes, "15W"))


def test_one_that_never_ends_is_left(orin: BoardTree, modes: PowerModes) -> None:
    orin.nvpmodel_does("hang")
    with pytest.raises(NvpmodelError, match=r"did not end within 0\.3 s"):
        Nvpmodel(orin.root, modes, time_limit_s=0.3).change(mode_named(modes, "15W"))


def test_it_is_never_told_to_reboot(orin: BoardTree, modes: PowerModes) -> None:
    with pytest.raises(NvpmodelError, match="Reboot required"):
        program(orin, modes).change(mode_named(modes, "7W"))
    assert orin.read("nvpmodel-calls") == "3", "and nothing more"


def test_without_the_program(orin: BoardTree, modes: PowerModes) -> None:
    (orin.root / "usr/sbin/nvpmodel").unlink()
    with pytest.raises(NvpmodelError, match="No such file"):
        program(orin, modes).current()


def test_caps_that_were_not_written_are_noticed(orin: BoardTree, modes: PowerModes) -> None:
    script = orin.root / "usr/sbin/nvpmodel"
    script.write_text(script.read_text().replace("echo 612000000", "echo 918000000"))
    with pytest.raises(NvpmodelError, match="says 918000000 instead of 612000000"):
        program(orin, modes).change(mode_named(modes, "15W"))


def test_ids_with_gaps(orin: BoardTree) -> None:
    file = orin.root / "etc/nvpmodel.conf"
    file.write_text(file.read_text().replace("ID=1 ", "ID=9 "))
    modes = read_file(orin.root)
    assert modes is not None
    assert [mode.id for mode in modes.modes] == [0, 9, 2, 3]
    assert modes.by_id(1) is None

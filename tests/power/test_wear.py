from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from power.wear import read_wear


def emmc(root: Path, name: str = "mmcblk0", **files: str) -> None:
    device = root / "sys/block" / name / "device"
    device.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (device / file).write_text(text)


@pytest.mark.parametrize(
    ("life_time", "pre_eol_info", "percent"),
    [
        ("0x01 0x01\n", "0x01\n", 10),
        ("0x02 0x05\n", "0x01\n", 50),
        ("0x0a 0x01\n", "0x01\n", 100),
        ("0x0B 0x0b\n", "0x01\n", 110),
        ("0x03 0x03\n", "0x02\n", 90),
        ("0x03 0x03\n", "0x03\n", 100),
        ("0x00 0x00\n", "0x00\n", None),
        ("0x00 0x04\n", "", 40),
        ("", "", None),
        ("0xff\n", "wear\n", None),
    ],
)
def test_the_upper_end_of_the_worst_step_is_told(
    tmp_path: Path, life_time: str, pre_eol_info: str, percent: int | None
) -> None:
    emmc(tmp_path, life_time=life_time, pre_eol_info=pre_eol_info)
    assert read_wear(tmp_path) == percent


def test_the_most_worn_of_several_counts_and_a_card_that_says_nothing_does_not(tmp_path: Path) -> None:
    assert read_wear(tmp_path) is None
    emmc(tmp_path, "mmcblk1", type="SD\n")
    assert read_wear(tmp_path) is None
    emmc(tmp_path, "mmcblk0", life_time="0x02 0x01\n")
    emmc(tmp_path, "mmcblk2", life_time="0x04 0x01\n")
    assert read_wear(tmp_path) == 40


@given(st.binary(max_size=40), st.binary(max_size=10))
def test_whatever_stands_there_it_is_a_share_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, life_time: bytes, pre_eol_info: bytes
) -> None:
    root = tmp_path_factory.mktemp("board")
    emmc(root)
    (root / "sys/block/mmcblk0/device/life_time").write_bytes(life_time)
    (root / "sys/block/mmcblk0/device/pre_eol_info").write_bytes(pre_eol_info)
    assert read_wear(root) in {None, *range(10, 111, 10)}

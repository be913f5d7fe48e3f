"""How worn the board's flash memory is, as far as it tells: eMMC does, in tenths; SD cards and NVMe do not in sysfs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_STEP_PERCENT: Final = 10
"""JEDEC eMMC 5.0, DEVICE_LIFE_TIME_EST_TYP_A and _B: 1 is up to 10 % of its life used, 10 up to 100 %, 11 beyond."""

_MOST: Final = 11

_RESERVE_PERCENT: Final = {2: 90, 3: 100}
"""PRE_EOL_INFO: of the blocks kept in reserve 80 % are used (2), or 90 % (3); told as the upper end, as above."""


def read_wear(root: Path = Path("/")) -> int | None:
    """Give how much of its life the most worn eMMC has used at most, percent; None where none tells.

    The kernel answers with what it read when it found the device, so that asking again before the next boot is of no
    use, and never waits for the device.
    """
    told = [
        wear
        for device in sorted((root / "sys/block").glob("mmcblk*/device"))
        if (wear := _wear_of(_numbers(device / "life_time"), _numbers(device / "pre_eol_info"))) is not None
    ]
    return max(told, default=None)


def _wear_of(lives: list[int], reserve: list[int]) -> int | None:
    steps = [number * _STEP_PERCENT for number in lives if 1 <= number <= _MOST]
    steps += [_RESERVE_PERCENT[number] for number in reserve if number in _RESERVE_PERCENT]
    return max(steps, default=None)


def _numbers(file: Path) -> list[int]:
    """Read hexadecimal numbers; none where the file is not there or says something else."""
    try:
        return [int(word, 16) for word in file.read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return []

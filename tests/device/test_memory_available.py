from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device import memory_available
from device.errors import MemoryLowError, MemoryUnknownError

MEMINFO = b"""\
MemTotal:        7990140 kB
MemFree:          310288 kB
MemAvailable:    5120000 kB
Buffers:          120000 kB
"""

OTHER_LINES = st.lists(
    st.from_regex(r"\A[A-Z][A-Za-z()_]{0,20}: +[0-9]{1,12} kB\n\Z").filter(lambda line: "MemAvailable" not in line)
)


def test_reads_the_kernels_own_figure() -> None:
    available = memory_available.available_bytes()
    total = memory_available.parse(
        Path("/proc/meminfo").read_bytes().replace(b"MemAvailable", b"x").replace(b"MemTotal", b"MemAvailable")
    )
    assert total is not None
    assert 0 < available < total


@given(kilobytes=st.integers(0, 10**14), before=OTHER_LINES, after=OTHER_LINES)
def test_finds_it_among_any_other_lines(kilobytes: int, before: list[str], after: list[str]) -> None:
    text = "".join([*before, f"MemAvailable: {kilobytes:>10} kB\n", *after])
    assert memory_available.parse(text.encode()) == kilobytes * 1024


@given(st.binary())
def test_takes_any_bytes(text: bytes) -> None:
    value = memory_available.parse(text)
    assert value is None or value >= 0


@pytest.mark.parametrize("text", [b"", b"MemFree: 12 kB\n", b"MemAvailable: 12 MB\n", b"xMemAvailable: 12 kB\n"])
def test_a_system_that_does_not_say_is_an_error(tmp_path: Path, text: bytes) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_bytes(text)
    with pytest.raises(MemoryUnknownError, match="MemAvailable"):
        memory_available.available_bytes(meminfo)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MemoryUnknownError, match="No such file"):
        memory_available.available_bytes(tmp_path / "none")


def test_the_reserve_is_kept(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_bytes(MEMINFO)
    most = (5_120_000 - 1_000_000) * 1024
    memory_available.require(most, reserve_bytes=1_000_000 * 1024, meminfo=meminfo)
    with pytest.raises(MemoryLowError, match=r"5000 MiB that are available.*stop other programs") as caught:
        memory_available.require(most + 1, reserve_bytes=1_000_000 * 1024, meminfo=meminfo)
    assert caught.value.wanted_bytes == most + 1
    assert caught.value.available_bytes == 5_120_000 * 1024

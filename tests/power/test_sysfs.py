from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from power import sysfs
from power.sysfs import LATE, MOST_STUCK, REST_S, STUCK, Reader, integer


class Fifos:
    """Files that block whoever opens them, until let go."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: list[Path] = []

    def make(self) -> Path:
        path = self._folder / f"fifo{len(self._paths)}"
        os.mkfifo(path)
        self._paths.append(path)
        return path

    def let_go(self) -> None:
        paths, self._paths = self._paths, []
        for path in paths:
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


@pytest.fixture
def fifos(tmp_path: Path) -> Iterator[Fifos]:
    """Give the maker, and see that no thread stays behind."""
    made = Fifos(tmp_path)
    yield made
    made.let_go()
    wait_for_threads()


def stuck_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sysfs"]


def wait_for_threads() -> None:
    for thread in stuck_threads():
        thread.join(10)
        assert not thread.is_alive()


def file_of(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_gives_texts_and_reasons(tmp_path: Path) -> None:
    good, none, folder = file_of(tmp_path / "a", " 42\n"), tmp_path / "none", tmp_path
    reader = Reader()
    assert reader.read([good, none, folder]) == {good: "42"}
    assert reader.errors == {none: "is not there", folder: "Is a directory"}


def test_a_file_that_blocks_costs_the_others_nothing(tmp_path: Path, fifos: Fifos) -> None:
    before, after = file_of(tmp_path / "a", "1"), file_of(tmp_path / "b", "2")
    blocked = fifos.make()
    reader = Reader(file_limit_s=0.05)
    began = time.monotonic()
    assert reader.read([before, blocked, after]) == {before: "1", after: "2"}
    assert time.monotonic() - began < 10
    assert reader.errors == {blocked: STUCK}
    assert reader.skipped == (blocked,)


def test_it_is_not_opened_again_until_it_has_let_go_and_rested(tmp_path: Path, fifos: Fifos) -> None:
    offset = [0.0]
    reader = Reader(file_limit_s=0.05, clock=lambda: time.monotonic() + offset[0])
    blocked = fifos.make()
    for _ in range(50):
        assert reader.read([blocked]) == {}
    assert len(stuck_threads()) == 1, "each reading left a thread behind"
    fifos.let_go()
    wait_for_threads()
    blocked.unlink()
    file_of(blocked, "7")
    assert reader.read([blocked]) == {}
    offset[0] = REST_S + 1
    assert reader.read([blocked]) == {blocked: "7"}
    assert reader.skipped == ()


def test_many_that_block_take_a_bounded_time(tmp_path: Path, fifos: Fifos) -> None:
    blocked = [fifos.make() for _ in range(3 * MOST_STUCK)]
    last = file_of(tmp_path / "last", "1")
    reader = Reader(file_limit_s=0.02, sweep_limit_s=0.2)
    began = time.monotonic()
    reader.read([*blocked, last])
    assert time.monotonic() - began < 10
    assert reader.errors[last] == LATE
    for _ in range(10):
        reader.read([*blocked, last])
    assert len(stuck_threads()) <= MOST_STUCK


def test_reading_leaves_no_descriptor_open(tmp_path: Path) -> None:
    paths = [file_of(tmp_path / str(number), "1") for number in range(20)]
    reader = Reader()
    reader.read(paths)
    wait_for_threads()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(100):
        reader.read(paths)
    wait_for_threads()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before  # fewer where what other tests left was collected


def test_a_write_replaces_what_was_there(tmp_path: Path) -> None:
    path = file_of(tmp_path / "x", "1020000000\n")
    sysfs.write(path, "306000000")
    assert path.read_text() == "306000000"


def test_a_write_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sysfs.write(tmp_path / "none", "1")


@given(st.text(), st.integers(-(2**70), 2**70), st.integers(-(2**70), 2**70))
def test_any_text_is_a_number_within_bounds_or_nothing(text: str, least: int, most: int) -> None:
    value = integer(text, least, most)
    assert value is None or least <= value <= most


@given(st.integers(-(2**40), 2**40))
def test_numbers_are_taken(value: int) -> None:
    assert integer(f"{value}", -(2**40), 2**40) == value
    assert integer(f"{value}", value + 1, 2**41) is None

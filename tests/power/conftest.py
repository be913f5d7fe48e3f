from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from simulators import boards
from simulators.board_parts import BoardTree
from simulators.governed import Connect, Daemon
from simulators.power_helper import HelperProcess


@pytest.fixture(params=boards.NAMES)
def any_board(request: pytest.FixtureRequest, tmp_path: Path) -> BoardTree:
    """Give the files of each board in turn."""
    return boards.make(request.param, tmp_path / "root")


@pytest.fixture(params=boards.JETSONS)
def jetson(request: pytest.FixtureRequest, tmp_path: Path) -> BoardTree:
    """Give the files of each Jetson in turn."""
    return boards.make(request.param, tmp_path / "root")


@pytest.fixture
def orin(tmp_path: Path) -> BoardTree:
    """Give those of an Orin Nano Super, which stands for all where they do not differ."""
    return boards.make("orin-nano-super", tmp_path / "root")


@pytest.fixture
def pc(tmp_path: Path) -> BoardTree:
    """Give those of a PC."""
    return boards.make("pc", tmp_path / "root")


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Give what makes a Daemon; it hangs up at the end."""
    made: list[Daemon] = []

    def make(helper: HelperProcess, tree: BoardTree) -> Daemon:
        made.append(Daemon(helper, tree))
        return made[-1]

    yield make
    for daemon in made:
        daemon.client.close()


@pytest.fixture
def helper(jetson: BoardTree) -> Iterator[HelperProcess]:
    """Run it on each Jetson."""
    with HelperProcess(jetson) as running:
        yield running


@pytest.fixture
def orin_helper(orin: BoardTree) -> Iterator[HelperProcess]:
    """Run it on the Orin Nano."""
    with HelperProcess(orin) as running:
        yield running

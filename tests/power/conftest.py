from __future__ import annotations

from pathlib import Path

import pytest
from simulators import boards
from simulators.board_parts import BoardTree


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

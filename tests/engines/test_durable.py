from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

import pytest

from engines import durable


def test_who_writes_at_the_same_time_is_not_taken_for_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one comes between the moment at which the half-written file is there and its lock."""
    file = tmp_path / "file"
    lock = fcntl.flock
    others = iter([b"another's"])

    def flock(opened: IO[bytes], how: int) -> None:
        if how == fcntl.LOCK_EX and (content := next(others, None)):
            durable.write_whole(file, content)
        lock(opened, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    durable.write_whole(file, b"last")
    assert file.read_bytes() == b"last"
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        durable.write_whole(tmp_path / "gone" / "file", b"")

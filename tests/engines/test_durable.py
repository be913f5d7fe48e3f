from __future__ import annotations

import fcntl
import os
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for others")
def test_what_root_writes_belongs_to_whom_the_folder_belongs(tmp_path: Path) -> None:
    """Whoever runs `sudo speakd voice add` under a strict umask; the service could not read it."""
    os.chown(tmp_path, 12345, 12346)
    before = os.umask(0o077)
    try:
        durable.make_folder(tmp_path / "packs/.new")
        durable.write_flushed(tmp_path / "packs/.new/a", b"a")
        durable.write_whole(tmp_path / "packs/b", b"b")
        durable.copy_flushed(tmp_path / "packs/b", tmp_path / "packs/c")
    finally:
        os.umask(before)
    made = list(tmp_path.rglob("*"))
    assert len(made) == 5
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(12345, 12346)}

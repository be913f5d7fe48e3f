"""The links of a folder: as they are now, and as they were where its disk does not answer."""

from __future__ import annotations

import os
import re
import shutil
import threading
from pathlib import Path

import pytest
from simulators.waiting import wait_until

from engines import links as links_module
from engines.links import Links

TIMEOUT_S = 60


def age(folder: Path) -> None:
    """Let the next change be in another step of the clock than the last one."""
    os.utime(folder, (0, 0))


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Links:
    """Those of the folder `here`, however busy the machine is."""
    monkeypatch.setattr(links_module, "PATIENCE_S", TIMEOUT_S)
    (tmp_path / "here").mkdir()
    (tmp_path / "here/a").symlink_to("x")
    return Links(tmp_path / "here", re.compile("[a-z]"))


@pytest.fixture
def settled(links: Links, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Links:
    """Those of a folder that is not read again before it changes."""
    age(tmp_path / "here")
    links.now()
    monkeypatch.setattr(links_module, "_SETTLES_S", 0.0)
    assert links.now() is links.now()
    return links


def test_only_links_that_fit_count_and_none_where_there_is_no_folder(links: Links, tmp_path: Path) -> None:
    (tmp_path / "here/b").mkdir()
    (tmp_path / "here/cc").symlink_to("x")
    assert links.now().names == ("a",)
    shutil.rmtree(tmp_path / "here")
    assert links.now().names == ()


def test_each_change_is_seen_at_once_also_within_one_step_of_the_clock(links: Links, tmp_path: Path) -> None:
    for name in "bcdefghi":
        (tmp_path / "here" / name).symlink_to("x")
        assert name in links.now().names
    for name in "bcdefghi":
        (tmp_path / "here" / name).unlink()
        assert name not in links.now().names


def test_what_is_settled_is_not_read_again_until_it_changes(
    settled: Links, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, iterdir = [], Path.iterdir

    def count(folder: Path) -> object:
        reads.append(folder)
        return iterdir(folder)

    monkeypatch.setattr(Path, "iterdir", count)
    for _ in range(5):
        assert settled.now().names == ("a",)
    assert not reads
    (tmp_path / "here/b").symlink_to("x")
    assert settled.now().names == ("a", "b")
    (tmp_path / "here").rename(tmp_path / "there")
    assert settled.now().names == ()
    (tmp_path / "there").rename(tmp_path / "here")
    assert settled.now().names == ("a", "b")
    age(tmp_path / "here")
    fresh = settled.now()
    (tmp_path / "new").symlink_to("y")
    (tmp_path / "new").replace(tmp_path / "here/b")
    assert settled.now() is not fresh, "what a link points to may count too"


def test_a_disk_that_does_not_answer_leaves_what_was_there(
    links: Links, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, stat = threading.Event(), Path.stat
    assert links.now().names == ("a",)

    def hang(path: Path, **more: bool) -> object:
        assert path != tmp_path / "here" or go.wait(TIMEOUT_S)
        return stat(path, **more)

    monkeypatch.setattr(Path, "stat", hang)
    monkeypatch.setattr(links_module, "PATIENCE_S", 0.05)
    for _ in range(20):
        assert links.now().names == ("a",)
    with pytest.raises(TimeoutError):
        Links(tmp_path / "here", re.compile("[a-z]")).now()
    go.set()
    (tmp_path / "here/b").symlink_to("x")
    wait_until(lambda: links.now().names == ("a", "b"), "it does not come back")

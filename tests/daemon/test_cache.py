from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import queue
import shutil
import threading
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulators.waiting import wait_until

from daemon import cache as cache_module
from daemon.cache import Keeper, Phrase, PhraseCache, pieces
from device.format import PERIOD, Samples

MIB = 2**20
TIMEOUT_S = 60


def key(name: str) -> str:
    """Phrases are named by hashes."""
    return hashlib.sha256(name.encode()).hexdigest()


def sound(frames: int, seed: int = 0) -> Samples:
    return np.random.default_rng(seed).standard_normal(frames).astype(np.float32)


def make(folder: Path, *, limit: int = MIB, keep_free: int = 0) -> PhraseCache:
    return PhraseCache(folder, limit_bytes=limit, keep_free_bytes=keep_free, patience_s=TIMEOUT_S)


def same(one: Phrase | None, other: Samples) -> bool:
    return one is not None and np.array_equal(one.samples, other) and (one.words, one.sentences) == ((0, 7), (0,))


def test_a_phrase_comes_back_as_it_was_also_after_a_restart(tmp_path: Path) -> None:
    make(tmp_path).put(key("a"), Phrase(sound(1_000), (0, 7), (0,)))
    again = make(tmp_path)
    assert len(again) == 1
    assert same(again.get(key("a")), sound(1_000))
    assert again.get(key("b")) is None


def test_only_what_is_said_twice_is_wanted(tmp_path: Path) -> None:
    cache = make(tmp_path)
    assert [cache.wants(key("a")), cache.wants(key("a"))] == [False, True]
    cache.put(key("a"), Phrase(sound(10), (0, 7), (0,)))
    assert not cache.wants(key("a")), "it is there"


def test_a_pinned_phrase_is_wanted_at_once_and_goes_last(tmp_path: Path) -> None:
    cache = make(tmp_path, limit=10_200)
    cache.pin(key("pinned"))
    assert cache.wants(key("pinned"))
    cache.put(key("pinned"), Phrase(sound(1_000), (0, 7), (0,)))
    for i in range(5):
        cache.put(key(f"other {i}"), Phrase(sound(1_000, i), (0, 7), (0,)))
    assert same(cache.get(key("pinned")), sound(1_000))
    assert same(cache.get(key("other 4")), sound(1_000, 4))
    assert cache.get(key("other 0")) is None


def test_what_was_not_said_for_longest_makes_room(tmp_path: Path) -> None:
    cache = make(tmp_path, limit=13_200)
    for name in "abc":
        cache.put(key(name), Phrase(sound(1_000), (0, 7), (0,)))
    cache.get(key("a"))
    cache.put(key("d"), Phrase(sound(1_000), (0, 7), (0,)))
    assert [cache.get(key(name)) is not None for name in "abcd"] == [True, False, True, True]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 13_200


def test_a_full_disk_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")  # noqa: PYI024  as shutil's own
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100, 95, 5_000))
    cache = make(tmp_path, keep_free=4_500)
    cache.put(key("small"), Phrase(sound(50), (0, 7), (0,)))
    cache.put(key("large"), Phrase(sound(500), (0, 7), (0,)))
    assert (cache.get(key("small")) is not None, cache.get(key("large")) is not None) == (True, False)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:-4],
        lambda content: content + b"\0\0\0\0",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: b"x" + content[1:],
    ],
)
def test_a_spoilt_file_is_forgotten_not_played(tmp_path: Path, spoil) -> None:  # noqa: ANN001
    make(tmp_path).put(key("a"), Phrase(sound(1_000), (0, 7), (0,)))
    (path,) = tmp_path.iterdir()
    path.write_bytes(spoil(path.read_bytes()))
    cache = make(tmp_path)
    assert cache.get(key("a")) is None
    assert len(cache) == 0
    assert not list(tmp_path.iterdir())


def test_a_file_damaged_while_it_runs_is_not_played_however_it_comes_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = make(tmp_path)
    for below_the_file_system in (False, True):
        cache.put(key("a"), Phrase(sound(1_000), (0, 7), (0,)))
        (path,) = tmp_path.iterdir()
        for _ in range(3):
            assert same(cache.get(key("a")), sound(1_000))
        before, content = path.stat(), bytearray(path.read_bytes())
        content[700] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        with monkeypatch.context() as patch:
            if below_the_file_system:
                patch.setattr(os, "fstat", lambda _, before=before: before)
            assert cache.get(key("a")) is None
        assert not list(tmp_path.iterdir())


def test_a_phrase_is_hashed_once_and_again_when_its_file_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path).put(key("a"), Phrase(sound(1_000), (0, 7), (0,)))
    (path,) = tmp_path.iterdir()
    cache, hashed, sha256 = make(tmp_path), [], hashlib.sha256

    def count(data: bytes) -> object:
        hashed.append(len(data))
        return sha256(data)

    monkeypatch.setattr(cache_module.hashlib, "sha256", count)
    name = path.stem
    for _ in range(3):
        assert same(cache.get(name), sound(1_000))
    assert len(hashed) == 1
    path.write_bytes(path.read_bytes())
    for _ in range(3):
        assert same(cache.get(name), sound(1_000))
    assert len(hashed) == 2


def test_only_its_own_files_are_counted_or_deleted(tmp_path: Path) -> None:
    others = {".profile": b"x", ".git.123": b"x", "holiday.pcm": bytes(5_000), "ab12.pcm": bytes(5_000)}
    for name, content in others.items():
        (tmp_path / name).write_bytes(content)
    cache = make(tmp_path, limit=4_100)
    assert len(cache) == 0
    for number in range(3):
        cache.put(key(str(number)), Phrase(sound(1_000), (0, 7), (0,)))
    assert len(cache) == 1
    assert {name: (tmp_path / name).read_bytes() for name in others} == others


@contextlib.contextmanager
def hung(folder: Path, name: str) -> Iterator[None]:
    """Have whoever opens a phrase wait, as for a server that is gone: a pipe into which nobody writes."""
    path = folder / f"{key(name)}.pcm"
    kept = path.with_suffix(".aside")
    path.rename(kept)
    os.mkfifo(path)
    try:
        yield
    finally:
        writer = os.open(path, os.O_RDWR)
        kept.replace(path)
        os.close(writer)


def test_a_disk_that_does_not_answer_costs_a_moment_once_and_is_used_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path).put(key("a"), Phrase(sound(1_000), (0, 7), (0,)))
    make(tmp_path).put(key("b"), Phrase(sound(1_000), (0, 7), (0,)))
    cache = PhraseCache(tmp_path, limit_bytes=MIB, keep_free_bytes=0, patience_s=0.05)
    with caplog.at_level(logging.WARNING):
        with hung(tmp_path, "a"):
            for _ in range(20):
                assert cache.get(key("a")) is None
                assert cache.get(key("b")) is None
        assert caplog.text.count("does not answer") == 1
    wait_until(lambda: same(cache.get(key("b")), sound(1_000)), "it does not come back")


def test_a_disk_that_does_not_answer_at_the_start_is_used_once_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path).put(key("a"), Phrase(sound(1_000), (0, 7), (0,)))
    go, mkdir = threading.Event(), Path.mkdir

    def hang(self: Path, *rest: object, **more: object) -> None:
        assert go.wait(TIMEOUT_S)
        mkdir(self, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", hang)
    cache = PhraseCache(tmp_path, limit_bytes=MIB, keep_free_bytes=0, patience_s=0.05)
    cache.put(key("b"), Phrase(sound(1_000), (0, 7), (0,)))
    assert cache.get(key("a")) is None
    assert len(list(tmp_path.iterdir())) == 1
    go.set()
    wait_until(lambda: same(cache.get(key("a")), sound(1_000)), "it does not come back")


def test_what_waits_for_a_disk_that_stalls_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, go, fsync = make(tmp_path), threading.Event(), os.fsync

    def stall(descriptor: int) -> None:
        assert go.wait(TIMEOUT_S)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", stall)
    monkeypatch.setattr(cache_module, "_MOST_WAITING", 5_000)
    keeper = Keeper(cache, queue.SimpleQueue().put)
    keeper.start()
    for number in range(100):
        keeper.keep(key(str(number)), Phrase(sound(1_000), (0, 7), (0,)))
    assert keeper._waiting.qsize() <= 6
    go.set()
    keeper.stop()
    keeper.join(TIMEOUT_S)
    assert len(cache) == 6


def test_what_an_interrupted_write_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / f".{key('a')}.123").write_bytes(b"half")
    assert len(make(tmp_path)) == 0
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_costs_the_phrase_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = make(tmp_path)

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        cache.put(key("a"), Phrase(sound(10), (0, 7), (0,)))
    assert cache.get(key("a")) is None
    cache.put(key("a"), Phrase(sound(10), (0, 7), (0,)))
    assert same(cache.get(key("a")), sound(10))


def test_a_folder_that_cannot_be_made_costs_the_cache_only(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = make(tmp_path / "file" / "phrases")
    cache.put(key("a"), Phrase(sound(10), (0, 7), (0,)))
    assert cache.get(key("a")) is None


@given(frames=st.integers(1, 20_000), capacity=st.integers(PERIOD, 5_000))
def test_pieces_are_the_phrase_in_whole_periods(frames: int, capacity: int) -> None:
    samples = sound(frames)
    parts = list(pieces(samples, capacity))
    assert np.array_equal(np.concatenate(parts), samples)
    assert all(0 < part.size <= capacity for part in parts)
    assert all(part.size % PERIOD == 0 for part in parts[:-1])
    assert all(part.base is samples for part in parts), "views, no copies"

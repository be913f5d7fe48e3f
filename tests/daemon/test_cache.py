from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.cache import Phrase, PhraseCache, pieces
from device.format import PERIOD, Samples

MIB = 2**20


def sound(frames: int, seed: int = 0) -> Samples:
    return np.random.default_rng(seed).standard_normal(frames).astype(np.float32)


def make(folder: Path, *, limit: int = MIB, keep_free: int = 0) -> PhraseCache:
    return PhraseCache(folder, limit_bytes=limit, keep_free_bytes=keep_free)


def same(one: Phrase | None, other: Samples) -> bool:
    return one is not None and np.array_equal(one.samples, other) and (one.words, one.sentences) == ((0, 7), (0,))


def test_a_phrase_comes_back_as_it_was_also_after_a_restart(tmp_path: Path) -> None:
    make(tmp_path).put("a", Phrase(sound(1_000), (0, 7), (0,)))
    again = make(tmp_path)
    assert len(again) == 1
    assert same(again.get("a"), sound(1_000))
    assert again.get("b") is None


def test_only_what_is_said_twice_is_wanted(tmp_path: Path) -> None:
    cache = make(tmp_path)
    assert [cache.wants("a"), cache.wants("a")] == [False, True]
    cache.put("a", Phrase(sound(10), (0, 7), (0,)))
    assert not cache.wants("a"), "it is there"


def test_a_pinned_phrase_is_wanted_at_once_and_goes_last(tmp_path: Path) -> None:
    cache = make(tmp_path, limit=10_200)
    cache.pin("pinned")
    assert cache.wants("pinned")
    cache.put("pinned", Phrase(sound(1_000), (0, 7), (0,)))
    for i in range(5):
        cache.put(f"other {i}", Phrase(sound(1_000, i), (0, 7), (0,)))
    assert same(cache.get("pinned"), sound(1_000))
    assert same(cache.get("other 4"), sound(1_000, 4))
    assert cache.get("other 0") is None


def test_what_was_not_said_for_longest_makes_room(tmp_path: Path) -> None:
    cache = make(tmp_path, limit=13_200)
    for name in "abc":
        cache.put(name, Phrase(sound(1_000), (0, 7), (0,)))
    cache.get("a")
    cache.put("d", Phrase(sound(1_000), (0, 7), (0,)))
    assert [cache.get(name) is not None for name in "abcd"] == [True, False, True, True]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 13_200


def test_a_full_disk_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")  # noqa: PYI024  as shutil's own
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100, 95, 5_000))
    cache = make(tmp_path, keep_free=4_500)
    cache.put("small", Phrase(sound(50), (0, 7), (0,)))
    cache.put("large", Phrase(sound(500), (0, 7), (0,)))
    assert (cache.get("small") is not None, cache.get("large") is not None) == (True, False)


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
    make(tmp_path).put("a", Phrase(sound(1_000), (0, 7), (0,)))
    (path,) = tmp_path.iterdir()
    path.write_bytes(spoil(path.read_bytes()))
    cache = make(tmp_path)
    assert cache.get("a") is None
    assert len(cache) == 0
    assert not list(tmp_path.iterdir())


def test_what_an_interrupted_write_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".a.123").write_bytes(b"half")
    assert len(make(tmp_path)) == 0
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_costs_the_phrase_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = make(tmp_path)

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        cache.put("a", Phrase(sound(10), (0, 7), (0,)))
    assert cache.get("a") is None
    cache.put("a", Phrase(sound(10), (0, 7), (0,)))
    assert same(cache.get("a"), sound(10))


def test_a_folder_that_cannot_be_made_costs_the_cache_only(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = make(tmp_path / "file" / "phrases")
    cache.put("a", Phrase(sound(10), (0, 7), (0,)))
    assert cache.get("a") is None


@given(frames=st.integers(1, 20_000), capacity=st.integers(PERIOD, 5_000))
def test_pieces_are_the_phrase_in_whole_periods(frames: int, capacity: int) -> None:
    samples = sound(frames)
    parts = list(pieces(samples, capacity))
    assert np.array_equal(np.concatenate(parts), samples)
    assert all(0 < part.size <= capacity for part in parts)
    assert all(part.size % PERIOD == 0 for part in parts[:-1])
    assert all(part.base is samples for part in parts), "views, no copies"

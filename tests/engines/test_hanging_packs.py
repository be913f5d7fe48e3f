"""Packs on a disk that does not answer: whoever asks for them is told so in time, and what is loaded speaks on."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from simulators.waiting import wait_until

from engines import pack_store
from engines.backends import Wanted
from engines.errors import VoiceError
from engines.importer import import_voice
from engines.pack import INFO_FILE, VOCODER_FILE, BrokenPack
from engines.pack_store import PackStore
from engines.piper import find
from engines.shelf import Preferences, VoiceShelf, unmet

LATE_S = 5.0
"""What twenty questions take at most on a busy machine: one of them waits, for a second."""


@contextlib.contextmanager
def hanging(file: Path) -> Iterator[None]:
    """Have whoever reads a file wait, as on such a disk: it is a pipe that nobody writes to."""
    content = file.read_bytes()
    file.unlink()
    os.mkfifo(file)
    try:
        yield
    finally:
        # Open for both, which waits for nobody, whether or not there is still a reader.
        with os.fdopen(os.open(file, os.O_RDWR), "r+b", buffering=0) as pipe:
            file.unlink()
            file.write_bytes(content)
            pipe.write(content[: 1 << 12])


@pytest.fixture
def store(tmp_path: Path, tiny_model: Path) -> PackStore:
    store = PackStore(tmp_path / "packs")
    tiny = import_voice(find(str(tiny_model)), store)
    content = {file: (tiny.folder / file).read_bytes() for file in tiny.info.files}
    store.put("other", tiny.info.model_copy(update={"name": "other"}), content)
    return store


def names(store: PackStore) -> list[str]:
    return [pack.info.name for pack in store.list() if not isinstance(pack, BrokenPack)]


def test_what_is_known_of_voices_is_told_as_before(store: PackStore) -> None:
    assert names(store) == ["other", "tiny"]
    known = store.info("other")
    with hanging(store.folder / "other" / INFO_FILE):
        begun = time.monotonic()
        for _ in range(10):
            assert names(store) == ["other", "tiny"]
            assert store.info("other") == known
        assert time.monotonic() - begun < LATE_S
    store.remove("other")
    wait_until(lambda: names(store) == ["tiny"], "it is not looked at once the disk answers")


def test_who_asks_for_the_first_time_is_told(store: PackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_store, "ANSWER_S", 0.5)
    store = PackStore(store.folder)
    with hanging(store.folder / "other" / INFO_FILE):
        begun = time.monotonic()
        for _ in range(10):
            with pytest.raises(VoiceError, match="its disk does not answer"):
                store.list()
            with pytest.raises(VoiceError, match="its disk does not answer"):
                store.info("other")
            (told,) = unmet(store, Preferences("tiny"))
            assert "its disk does not answer" in told, "a start is not kept from speaking"
        assert time.monotonic() - begun < LATE_S


def test_a_voice_that_cannot_be_read_silences_no_other(store: PackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_store, "ANSWER_S", 0.5)
    with contextlib.closing(VoiceShelf(store, Preferences("tiny", engine=Wanted(threads=1)))) as shelf:
        tiny = shelf.get()
        monkeypatch.setattr(Path, "is_file", Path.exists)  # a pipe is one
        with hanging(store.folder / "other" / VOCODER_FILE):
            begun = time.monotonic()
            for _ in range(10):
                with pytest.raises(VoiceError, match="does not answer"):
                    shelf.get("other")
                assert shelf.get("tiny") is tiny
            assert time.monotonic() - begun < LATE_S
        wait_until(lambda: can_be_had(shelf, "other"), "it cannot be loaded once the disk answers")


def test_which_languages_there_are_is_not_waited_for(store: PackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    (store.folder / "other" / "vocoder.onnx").unlink()  # while one is broken, each is looked at again
    known = store.languages()
    assert known
    answers = threading.Event()
    readlink = Path.readlink
    monkeypatch.setattr(Path, "readlink", lambda path: answers.wait() and readlink(path))
    begun = time.monotonic()
    for _ in range(10):
        assert store.languages() == known
    assert time.monotonic() - begun < LATE_S
    answers.set()


def can_be_had(shelf: VoiceShelf, name: str) -> bool:
    try:
        return shelf.get(name).info.name == name
    except VoiceError:
        return False

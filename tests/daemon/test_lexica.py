from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from simulators.waiting import wait_until

from daemon import lexica as lexica_module
from daemon.commands import LexiconGet, LexiconSet
from daemon.journal import Journal
from daemon.lexica import Lexica
from engines.text.lexicon import Entry

TIMEOUT_S = 60
FILE = '[[entry]]\nwritten = "Ode"\nspoken = "Oddie"\n'
SET = (Entry(written="Ode", spoken="Owed"),)


def spoken(lexica: Lexica, text: str = "Ode") -> str:
    return lexica.current().replaced(text, "en-us", lambda reading: reading.words)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "names.toml").write_text(FILE)
    return tmp_path


def test_what_is_set_counts_before_files_and_outlasts_a_restart(folder: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    lexica = Lexica(folder, journal)
    assert spoken(lexica) == "Oddie"
    assert lexica.answer(LexiconSet(request="r", entries=SET, version=7)).request == "r"
    assert spoken(lexica) == "Owed"
    journal.close()
    journal = Journal(tmp_path / "journal.db")
    again = Lexica(folder, journal)
    assert spoken(again) == "Owed"
    state = again.answer(LexiconGet())
    assert state.model_dump(include={"version", "entries", "in_files"}) == {
        "version": 7,
        "entries": ({"written": "Ode", "spoken": "Owed"},),
        "in_files": 1,
    }
    assert again.answer(LexiconSet()).event == "done"
    assert again.answer(LexiconGet()).model_dump()["version"] == 8
    assert spoken(again) == "Oddie"
    journal.close()


def test_a_file_counts_from_when_it_is_there(folder: Path) -> None:
    lexica = Lexica(folder, Journal(None))
    (folder / "more.toml").write_text('[[entry]]\nwritten = "Kay"\nspoken = "K"\n')
    assert spoken(lexica, "Kay") == "K"
    (folder / "more.toml").unlink()
    assert spoken(lexica, "Kay") == "Kay"


def test_a_disk_that_does_not_answer_leaves_what_was_read_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lexica, go, stat = Lexica(folder, Journal(None)), threading.Event(), Path.stat
    assert spoken(lexica) == "Oddie"

    def hang(path: Path, **more: bool) -> os.stat_result:
        assert path != folder or go.wait(TIMEOUT_S)
        return stat(path, **more)

    monkeypatch.setattr(Path, "stat", hang)
    monkeypatch.setattr(lexica_module, "PATIENCE_S", 0.05)
    for _ in range(20):
        assert spoken(lexica) == "Oddie"
        assert lexica.answer(LexiconGet()).model_dump()["in_files"] == 1
    assert caplog.text.count("does not answer") == 1
    (folder / "names.toml").unlink()
    go.set()
    monkeypatch.undo()
    wait_until(lambda: spoken(lexica) == "Ode", "it does not come back")


def test_a_folder_need_not_exist(tmp_path: Path) -> None:
    assert spoken(Lexica(tmp_path / "none", Journal(None))) == "Ode"


def test_a_folder_that_cannot_be_looked_at_costs_nobody_a_word(folder: Path) -> None:
    assert spoken(Lexica(folder / "names.toml" / "lexicon.d", Journal(None))) == "Ode"


def test_every_reader_sees_a_whole_lexicon(tmp_path: Path) -> None:
    lexica = Lexica(tmp_path, Journal(None))
    pairs = [tuple(Entry(written=w, spoken=s) for w in ("a", "b")) for s in ("1", "2")]
    lexica.answer(LexiconSet(entries=pairs[0]))
    seen: set[str] = set()
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            seen.add(spoken(lexica, "a b"))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(200):
        lexica.answer(LexiconSet(entries=pairs[i % 2]))
    ended.set()
    for thread in threads:
        thread.join()
    assert seen <= {"1 1", "2 2"}

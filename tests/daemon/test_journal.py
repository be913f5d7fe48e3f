from __future__ import annotations

import contextlib
import errno
import math
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulators.waiting import wait_until

from daemon import journal as journal_module
from daemon import journal_file
from daemon.clock import PLAUSIBLE_WALL, Clock
from daemon.commands import Speak
from daemon.errors import JournalError
from daemon.inbox import Origin
from daemon.journal import Journal

TIMEOUT_S = 60
AT = Clock("boot", 10.0, PLAUSIBLE_WALL + 10)
ORIGIN = Origin("reply/here", b"\x00\xff", (("trace", "t"), ("trace", "u")))


FULL = OSError(errno.ENOSPC, "No space left on device")


def refuse(*_: object) -> None:
    raise sqlite3.OperationalError("disk I/O error")


def filled(path: Path) -> Journal:
    journal = Journal(path)
    for command_id in "abc":
        journal.accept(Speak(id=command_id, text=f"text {command_id}", expires_s=5), ORIGIN, AT)
    journal.begin("b")
    journal.end("c", '{"event": "finished"}')
    return journal


def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    filled(tmp_path / "j.db").close()
    journal = Journal(tmp_path / "j.db")
    first, second = journal.open_entries()
    assert (first.command, first.origin, first.accepted, first.begun) == (
        Speak(id="a", text="text a", expires_s=5),
        ORIGIN,
        AT,
        False,
    )
    assert (second.command.id, second.begun) == ("b", True)
    assert journal.final("c") == '{"event": "finished"}'
    assert journal.final("a") is None
    assert [(untold.id, untold.origin) for untold in journal.untold()] == [("c", ORIGIN)]


@pytest.mark.parametrize("text", ["half a \ud800", "\0", "ü😂", "'; DROP TABLE commands; --"])
def test_any_text_comes_back(tmp_path: Path, text: str) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.accept(Speak(id="a", text=text), Origin(), AT)
    assert journal.open_entries()[0].command.text == text


def test_a_process_that_is_killed_has_written_what_it_accepted(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        "from daemon.clock import Clock\nfrom daemon.journal import Journal\n"
        "from daemon.commands import Speak\nfrom daemon.inbox import Origin\n"
        "journal = Journal(pathlib.Path(sys.argv[1]))\n"
        "journal.accept(Speak(id='a', text='x'), Origin(), Clock.now())\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "j.db")], check=False, timeout=60)
    assert done.returncode == -9
    assert [entry.command.id for entry in Journal(tmp_path / "j.db").open_entries()] == ["a"]


_ON_A_FULL_DISK = """
import pathlib, resource, sys
from daemon import journal
from daemon.clock import Clock
from daemon.commands import Speak
from daemon.inbox import Origin

def accept(into, name):
    into.accept(Speak(id=name, text="x"), Origin(), Clock.now())

def ids(of):
    return [entry.command.id for entry in of.open_entries()]

journal._BACK_S = journal._PAUSE = 0
path, when = pathlib.Path(sys.argv[1]), sys.argv[2]
one = journal.Journal(path)
for name in ("done", "spoken", "waits"):
    accept(one, name)
one.end("done", "{}")
one.told("done")
one.remember("settings", "loud")
if when == "at the start":
    one.close()
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, unlimited[1]))
if when == "at the start":
    one = journal.Journal(path)
accept(one, "while")
assert "journal" in one.problem
assert one.recall("settings") == "loud"
assert one.final("done") == "{}", "what the disk knows is not spoken again"
assert ids(one) == ["spoken", "waits", "while"]
one.begin("spoken")
one.end("spoken", "[]")
one.end("while", "[]")
accept(one, "later")
one.remember("restarts", "3")
one.recover()
assert one.problem
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
one.recover()
assert one.problem == ""
accept(one, "after")
assert (one.final("done"), one.final("spoken"), one.final("while")) == ("{}", "[]", "[]")
assert sorted(ids(one)) == ["after", "later", "waits"]
"""


@pytest.mark.parametrize("when", ["at the start", "while it runs"])
def test_a_disk_that_is_full_costs_no_memory_once_it_takes_again(tmp_path: Path, when: str) -> None:
    """No file of that process may grow, which SQLite takes for a disk that fails."""
    subprocess.run([sys.executable, "-c", _ON_A_FULL_DISK, str(tmp_path / "j.db"), when], check=True, timeout=60)
    journal = Journal(tmp_path / "j.db")
    assert sorted(entry.command.id for entry in journal.open_entries()) == ["after", "later", "waits"]
    assert sorted(untold.id for untold in journal.untold()) == ["spoken", "while"], "and not the one that was told"
    assert (journal.recall("settings"), journal.recall("restarts")) == ("loud", "3")


def test_a_disk_that_is_mounted_read_only_can_be_read_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite opens no such file there, and what came last is in its log."""
    crashed = filled(tmp_path / "j.db")
    crashed.remember("settings", "loud")
    for suffix in ("", "-wal"):
        content = (tmp_path / f"j.db{suffix}").read_bytes()
        (tmp_path / f"read-only.db{suffix}").write_bytes(content)
    crashed.close()
    opened = journal_file.open_file

    def refuse(path: Path) -> sqlite3.Connection:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(journal_module, "open_file", refuse)
    monkeypatch.setattr(journal_module, "_BACK_S", 0.0)
    monkeypatch.setattr(journal_module, "_PAUSE", 0)
    journal = Journal(tmp_path / "read-only.db")
    assert "disk I/O error" in journal.problem
    assert journal.recall("settings") == "loud"
    assert journal.final("c") == '{"event": "finished"}'
    assert [entry.command.id for entry in journal.open_entries()] == ["a", "b"]
    journal.end("a", "{}")
    journal.recover()
    assert journal.problem
    monkeypatch.setattr(journal_module, "open_file", opened)
    journal.recover()
    journal.close()
    again = Journal(tmp_path / "read-only.db")
    assert [entry.command.id for entry in again.open_entries()] == ["b"]
    assert [untold.id for untold in again.untold()] == ["a", "c"]


def test_a_large_journal_is_not_copied_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MOST_COPIED", 3)
    monkeypatch.setattr(journal_module, "_RECENT", 2)
    monkeypatch.setattr(journal_module, "_BACK_S", 0.0)
    monkeypatch.setattr(journal_module, "_PAUSE", 0)
    journal = filled(tmp_path / "j.db")
    for number in range(20):
        journal.accept(Speak(id=str(number), text="x"), ORIGIN, AT)
        journal.end(str(number), "{}")
        journal.told(str(number))
    journal.remember("settings", "loud")
    assert len(journal._read("SELECT id FROM commands")) == 3, "those that are alive"
    journal._leave_disk(FULL)
    assert (journal.final("19"), journal.final("0")) == ("{}", None), "the newest are known"
    assert [entry.command.id for entry in journal.open_entries()] == ["a", "b"]
    journal.end("a", "{}")
    journal.recover()
    assert journal.problem == ""
    assert (journal.final("0"), journal.final("19"), journal.final("a")) == ("{}", "{}", "{}")
    journal.close()
    again = Journal(tmp_path / "j.db")
    assert [entry.command.id for entry in again.open_entries()] == ["b"]
    assert [untold.id for untold in again.untold()] == ["a", "c"]
    assert all(again.final(str(number)) == "{}" for number in range(20))


def test_what_ended_and_was_forgotten_meanwhile_does_not_come_back_with_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "_BACK_S", 0.0)
    monkeypatch.setattr(journal_module, "_PAUSE", 0)
    monkeypatch.setattr(journal_module, "_PRUNE_EVERY", 1)
    journal = Journal(tmp_path / "j.db", keep=2)
    for command_id in ("ends", "waits"):
        journal.accept(Speak(id=command_id, text="x"), ORIGIN, AT)
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "give_back", refuse)
        journal._leave_disk(FULL)
        for command_id in ("ends", "b", "c", "d", "e"):
            if command_id != "ends":
                journal.accept(Speak(id=command_id, text="x"), ORIGIN, AT)
            journal.end(command_id, "{}")
            journal.told(command_id)
        assert journal.final("ends") is None, "it is forgotten"
    journal.recover()
    assert journal.problem == ""
    assert [entry.command.id for entry in journal.open_entries()] == ["waits"]


def test_what_is_open_is_known_though_nothing_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_RECENT", 2)
    journal = Journal(tmp_path / "j.db")
    journal.remember("settings", "loud")
    for number in range(100):
        journal.accept(Speak(id=str(number), text="x" * 2000), ORIGIN, AT)
        journal.end(str(number), "{}")
        journal.told(str(number))
    journal.accept(Speak(id="last", text="x" * 2000), ORIGIN, AT)
    for pragma in ("wal_checkpoint(TRUNCATE)", "cache_size = 1", "shrink_memory"):
        journal._disk.execute(f"PRAGMA {pragma}").fetchall()  # type: ignore[union-attr]
    with (tmp_path / "j.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 100 * 4096)
    assert journal.final("40") is None, "it cannot be read"
    assert journal.problem
    assert [entry.command.id for entry in journal.open_entries()] == ["last"]
    assert journal.recall("settings") == "loud"


def test_a_file_that_breaks_while_it_runs_is_set_aside_and_nothing_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "_BACK_S", 0.0)
    monkeypatch.setattr(journal_module, "_PAUSE", 0)
    journal = filled(tmp_path / "j.db")
    journal.accept(Speak(id="told", text="x"), ORIGIN, AT)
    journal.end("told", "[]")
    journal.told("told")
    journal.remember("settings", "loud")
    journal._disk.close()  # type: ignore[union-attr]  whatever it is that makes each use of it fail
    for path in tmp_path.glob("j.db*"):
        path.write_bytes(b"nonsense" * 1000)
    journal.accept(Speak(id="d", text="x"), ORIGIN, AT)
    assert journal.problem
    for _ in range(2):
        journal.recover()
    assert journal.problem == ""
    assert journal.final("told") == "[]"
    journal.accept(Speak(id="e", text="x"), ORIGIN, AT)
    journal.close()
    again = Journal(tmp_path / "j.db")
    assert [entry.command.id for entry in again.open_entries()] == ["a", "b", "d", "e"]
    assert [untold.id for untold in again.untold()] == ["c"]
    assert again.recall("settings") == "loud"
    assert list(tmp_path.glob("*.broken-*"))


def test_a_disk_that_does_not_answer_when_it_is_tried_again_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, go = journal_file.open_file, threading.Event()

    def refuse(path: Path) -> sqlite3.Connection:
        raise OSError(errno.EIO, "Input/output error")

    def hang(path: Path) -> sqlite3.Connection:
        assert go.wait(TIMEOUT_S)
        return opened(path)

    monkeypatch.setattr(journal_module, "_BACK_S", 0.0)
    monkeypatch.setattr(journal_module, "_PAUSE", 0)
    monkeypatch.setattr(journal_module, "open_file", refuse)
    journal = Journal(tmp_path / "j.db")
    monkeypatch.setattr(journal_module, "open_file", hang)
    begun = time.monotonic()
    for number in range(20):
        journal.recover()
        journal.accept(Speak(id=str(number), text="x"), ORIGIN, AT)
    assert time.monotonic() - begun < TIMEOUT_S / 2
    go.set()

    def is_back() -> bool:
        journal.recover()
        return journal.problem == ""

    wait_until(is_back, "it does not go back")
    journal.close()
    assert len(Journal(tmp_path / "j.db").open_entries()) == 20


class Hung:
    """What SQLite does, until the disk hangs, which stops whoever is writing."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()

    def write(self, database: sqlite3.Connection, statements: Iterable[journal_file.Statement]) -> None:
        if database.execute("PRAGMA database_list").fetchone()[2]:  # a file's
            assert self.answers.wait(TIMEOUT_S)
        journal_file.write(database, statements)


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hung]:
    hung = Hung()
    monkeypatch.setattr(journal_module, "_BACK_S", 0.0)
    monkeypatch.setattr(journal_module, "_PAUSE", 0)
    monkeypatch.setattr(journal_module, "write", hung.write)
    yield hung
    hung.answers.set()


def test_a_disk_that_hangs_holds_up_nobody_and_nothing_is_forgotten(tmp_path: Path, hung: Hung) -> None:
    journal = filled(tmp_path / "j.db")
    journal.accept(Speak(id="told", text="x"), ORIGIN, AT)
    journal.end("told", "[]")
    journal.told("told")
    journal.remember("settings", "quiet")
    hung.answers.clear()
    begun = time.monotonic()
    journal.accept(Speak(id="d", text="x"), ORIGIN, AT)
    assert journal.final("told") == "[]", "nor is it spoken again"
    for number in range(20):
        journal.recover()
        journal.accept(Speak(id=str(number), text="x"), ORIGIN, AT)
        journal.end(str(number), "{}")
        journal.told(str(number))
    journal.end("b", "{}")
    journal.told("b")
    journal.remember("settings", "loud")
    assert time.monotonic() - begun < TIMEOUT_S / 2
    assert "does not answer" in journal.problem
    assert [entry.command.id for entry in journal.open_entries()] == ["a", "d"]
    assert (journal.final("c"), journal.final("19"), journal.final("b")) == ('{"event": "finished"}', "{}", "{}")
    hung.answers.set()
    wait_until(lambda: not journal.recover() and not journal.problem, "it does not go back")
    journal.accept(Speak(id="e", text="x"), ORIGIN, AT)
    journal.close()
    again = Journal(tmp_path / "j.db")
    assert [entry.command.id for entry in again.open_entries()] == ["a", "d", "e"]
    assert [untold.id for untold in again.untold()] == ["c"]
    assert (again.final("19"), again.final("b"), again.recall("settings")) == ("{}", "{}", "loud")
    assert again.final("told") == "[]"
    hung.answers.clear()
    again.end("a", "{}")
    assert (again.final("told"), again.final("19"), again.final("a")) == ("[]", "{}", "{}"), "a second time"


@pytest.mark.parametrize("never_read", [True, False])
def test_what_was_given_back_too_late_to_be_seen_is_given_back_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, never_read: bool
) -> None:
    monkeypatch.setattr(journal_module, "_BACK_S", 0.0)
    monkeypatch.setattr(journal_module, "_PAUSE", 0)
    monkeypatch.setattr(journal_module, "_PRUNE_EVERY", 1)
    filled(tmp_path / "j.db").close()
    with monkeypatch.context() as patch:
        if never_read:
            patch.setattr(journal_module, "open_file", refuse)
            patch.setattr(journal_module, "copy_of", refuse)
        journal = Journal(tmp_path / "j.db", keep=2)
        if not never_read:
            journal._leave_disk(FULL)
    done = threading.Event()

    def late(changes: journal_file.Changes, disk: sqlite3.Connection) -> None:
        journal_file.give_back(changes, disk)
        done.set()
        raise TimeoutError(errno.ETIMEDOUT, "it does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "give_back", late)
        journal.accept(Speak(id="x", text="x"), ORIGIN, AT)
        journal.recover()
        assert done.is_set()
        assert journal.problem
        journal._back_at = math.inf
        for command_id in "xyzuv":
            if command_id != "x":
                journal.accept(Speak(id=command_id, text="x"), ORIGIN, AT)
            journal.end(command_id, "{}")
            journal.told(command_id)
        assert journal.final("x") is None, "it is forgotten"
    journal._back_at = 0.0
    journal.recover()
    assert journal.problem == ""
    journal.close()
    again = Journal(tmp_path / "j.db")
    assert [entry.command.id for entry in again.open_entries()] == ["a", "b"], "and x is not open"
    assert again.final("v") == "{}"


def test_closing_waits_for_no_disk_that_hangs(tmp_path: Path, hung: Hung) -> None:
    journal = filled(tmp_path / "j.db")
    journal.told("c")
    hung.answers.clear()
    begun = time.monotonic()
    journal.close()
    assert time.monotonic() - begun < TIMEOUT_S / 2


def test_a_disk_that_hangs_at_the_start_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "j.db").close()
    opened, go = journal_file.open_file, threading.Event()

    def hang(path: Path) -> sqlite3.Connection:
        assert go.wait(TIMEOUT_S)
        return opened(path)

    monkeypatch.setattr(journal_module, "_BACK_S", 0.0)
    monkeypatch.setattr(journal_module, "_PAUSE", 0)
    monkeypatch.setattr(journal_module, "_START_S", 0.2)
    monkeypatch.setattr(journal_module, "open_file", hang)
    journal = Journal(tmp_path / "j.db")
    assert "does not answer" in journal.problem
    journal.accept(Speak(id="new", text="x"), ORIGIN, AT)
    journal.accept(Speak(id="done", text="x"), ORIGIN, AT)
    journal.end("done", "{}")
    go.set()
    assert not journal.has_found()
    wait_until(lambda: not journal.recover() and not journal.problem, "it does not go back")
    assert [journal.has_found() for _ in range(2)] == [True, False]
    assert [entry.command.id for entry in journal.open_entries()] == ["a", "b", "new"]
    journal.close()
    again = Journal(tmp_path / "j.db")
    assert [entry.command.id for entry in again.open_entries()] == ["a", "b", "new"]
    assert [untold.id for untold in again.untold()] == ["c", "done"]


@given(st.lists(st.sampled_from(["accept", "begin", "end", "tell", "leave", "recover", "restart"]), max_size=40))
def test_whenever_the_disk_goes_and_comes_what_is_known_is_the_same(steps: list[str]) -> None:
    """Beside one in memory, which no disk leaves."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "_BACK_S", 0.0)
        patch.setattr(journal_module, "_PAUSE", 0)
        journal, truth = Journal(Path(folder) / "j.db"), Journal(None)
        refusing = contextlib.ExitStack()
        for number, step in enumerate(steps):
            some = [entry.command.id for entry in truth.open_entries()]
            for one in (journal, truth):
                match step:
                    case "accept":
                        one.accept(Speak(id=str(number), text="x"), ORIGIN, AT)
                    case "begin" if some:
                        one.begin(some[-1])
                    case "end" if some:
                        one.end(some[0], "{}")
                    case "tell":
                        for untold in truth.untold()[:1]:
                            one.told(untold.id)
                            break
            match step:
                case "leave":
                    context = refusing.enter_context(pytest.MonkeyPatch.context())
                    context.setattr(journal_module, "give_back", refuse)
                    journal._leave_disk(FULL) if not journal.problem else None
                case "recover" | "restart":
                    refusing.close()
                    journal.recover()
                    assert not journal.problem
                    if step == "restart":
                        journal.close()
                        journal = Journal(Path(folder) / "j.db")
            assert journal.open_entries() == truth.open_entries()
            assert [one.id for one in journal.untold()] == [one.id for one in truth.untold()]
            assert all(journal.final(str(n)) == truth.final(str(n)) for n in range(number + 1))
        refusing.close()
        journal.close()


def test_it_goes_back_into_a_folder_that_could_not_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, **_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", full)
        journal = Journal(tmp_path / "new/j.db")
    assert "No space left" in journal.problem
    assert journal.final("a") is None
    assert journal.due < math.inf
    journal.accept(Speak(id="a", text="x"), Origin(), AT)
    journal.close()
    assert journal.problem == ""
    assert [entry.command.id for entry in Journal(tmp_path / "new/j.db").open_entries()] == ["a"]


def test_what_was_told_is_noted_with_the_next_entry_and_at_the_end(tmp_path: Path) -> None:
    journal = filled(tmp_path / "j.db")
    assert [final.id for final in journal.untold()] == ["c"]
    journal.told("c")
    assert journal.untold() == [], "the broker has it, though the disk does not know that yet"
    journal.close()
    assert Journal(tmp_path / "j.db").untold() == []


def test_is_bounded_and_forgets_nothing_open_or_untold(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", keep=100)
    journal.accept(Speak(id="open", text=""), Origin(), AT)
    for number in range(250):
        journal.accept(Speak(id=str(number), text=""), Origin(), AT)
        journal.end(str(number), "{}")
        if number != 7:
            journal.told(str(number))
    assert journal.final("0") is None
    assert journal.final("249") is not None
    assert [entry.command.id for entry in journal.open_entries()] == ["open"]
    assert journal.untold()[0].id == "7"
    assert len(journal._read("SELECT id FROM commands")) == 3, "all else is on the disk alone"
    assert len(journal._disk.execute("SELECT id FROM commands").fetchall()) <= 202  # type: ignore[union-attr]


SPOILERS: list[Callable[[bytes], bytes]] = [
    lambda content: content[: len(content) // 2],
    lambda content: content[:50],
    lambda content: b"not a database at all" * 100,
    lambda content: content[:4096] + bytes(len(content) - 4096),
    lambda content: content[:5000] + b"\xff" * 3000 + content[8000:],
]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_broken_file_is_set_aside_and_a_new_one_begun(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "j.db"
    filled(path).close()
    content = spoil(path.read_bytes())
    path.write_bytes(content)
    journal = Journal(path)
    assert journal.open_entries() == []
    journal.accept(Speak(id="new", text=""), Origin(), AT)
    journal.close()
    (aside,) = [p for p in tmp_path.iterdir() if ".broken-" in p.name and p.suffix not in {"-wal", "-shm"}]
    assert aside.read_bytes() == content
    assert [entry.command.id for entry in Journal(path).open_entries()] == ["new"]


def test_only_the_last_broken_ones_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    for _ in range(6):
        path.write_bytes(b"nonsense" * 100)
        Journal(path).close()
        path.unlink()
    assert len([p for p in tmp_path.iterdir() if ".broken-" in p.name]) == 3


def test_two_processes_do_not_share_one(tmp_path: Path) -> None:
    journal = filled(tmp_path / "j.db")
    with pytest.raises(JournalError, match="another speakd"):
        Journal(tmp_path / "j.db")
    assert len(journal.open_entries()) == 2


def test_a_place_where_nothing_can_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="file"):
        Journal(tmp_path / "file" / "j.db")


def test_facts_are_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db")
    journal.remember("x", "1")
    journal.remember("x", "2")
    journal.close()
    assert Journal(tmp_path / "j.db").recall("x") == "2"
    assert Journal(None).recall("x") is None


class TestClock:
    @given(monotonic=st.floats(0, 1e6), wall=st.floats(0, 4e9))
    def test_within_a_boot_only_the_monotonic_one_counts(self, monotonic: float, wall: float) -> None:
        later = Clock("boot", AT.monotonic + monotonic, wall)
        assert later.age_s(AT) == pytest.approx(monotonic)

    def test_a_suspension_counts_too(self, tmp_path: Path) -> None:
        filled(tmp_path / "j.db").close()
        accepted = Journal(tmp_path / "j.db").open_entries()[0].accepted
        after = Clock("boot", AT.monotonic + 1, AT.wall, asleep=3600)
        assert after.age_s(accepted) == 3601
        asleep_before = Journal(None)
        asleep_before.accept(Speak(text=""), ORIGIN, after)
        assert replace(after, monotonic=after.monotonic + 5).age_s(asleep_before.open_entries()[0].accepted) == 5

    def test_after_a_boot_the_wall_clock_counts_where_it_was_set(self) -> None:
        assert Clock("other", 1.0, AT.wall + 7).age_s(AT) == 7
        assert Clock("other", 1.0, AT.wall - 7).age_s(AT) is None
        assert Clock("other", 1.0, 1000.0).age_s(AT) is None
        assert Clock("other", 1.0, AT.wall).age_s(replace(AT, wall=1000.0)) is None

    def test_now_is_one_of_this_boot(self) -> None:
        first, second = Clock.now(), Clock.now()
        age_s = second.age_s(first)
        assert first.boot == second.boot
        assert age_s is not None
        assert 0 <= age_s < 5

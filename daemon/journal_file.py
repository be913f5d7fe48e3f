"""The journal's databases: a file that is whole, or set aside; what must be known of it at any time, in memory."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_LOG = logging.getLogger(__name__)

Statement = tuple[str, Sequence[object]]
"""SQL with question marks, and what stands for them."""

Row = tuple[Any, ...]

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS commands (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    command TEXT NOT NULL,
    origin TEXT NOT NULL,
    boot TEXT NOT NULL,
    monotonic REAL NOT NULL,
    wall REAL NOT NULL,
    begun INTEGER NOT NULL DEFAULT 0,
    final TEXT,
    told INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS open ON commands (number) WHERE final IS NULL OR told = 0;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

_VERSION: Final = 1
"""Of the schema. A file of another version is set aside like a broken one."""

_COLUMNS: Final = "id, command, origin, boot, monotonic, wall, begun, final, told"
_MARKS: Final = ", ".join("?" * 10)
"""For a number and these."""

_INTO_EARLIER: Final = "INSERT OR REPLACE INTO earlier VALUES (?, ?)"

SETTLED: Final = "final IS NOT NULL AND told = 1"
"""Of a command that nobody has to do with any more but to know it again."""

_ALIVE: Final = "final IS NULL OR told = 0"

_BROKEN_KEPT: Final = 3
"""Broken files that are kept for whoever wants to know."""

_REFUSALS: Final = ("is full", "disk I/O error", "readonly")
"""How SQLite says that the disk takes nothing. Its numbers reach Python from 3.11 on only."""

MOST_COPIED: Final = 20_000
"""Ended commands, twice as many as are kept by default."""

_LARGEST_COPIED: Final = 2**26
"""Bytes of a file."""

_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108  in a folder of our own


@dataclass(frozen=True, slots=True)
class Contents:
    """What must be known of a file, as rows."""

    facts: list[Row]
    commands: list[Row]
    """A number and all columns of each that is open or untold."""
    earlier: list[Row]
    """Id and final event of the newest of all others."""
    last: int
    """The largest number that a command ever had."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a disk had when it was left."""

    last: int
    """The largest number that a command ever had."""
    numbers: frozenset[int]
    """Those of what was open or untold."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be written to a disk that was left."""

    facts: list[Row]
    commands: list[Row]
    last: int
    gone: list[Row]
    """Numbers of what was forgotten meanwhile."""


def is_refusal(error: sqlite3.Error) -> bool:
    """Tell whether it is the disk that takes nothing, and not the file that is broken or somebody else's."""
    return any(words in str(error) for words in _REFUSALS)


def open_file(path: Path) -> sqlite3.Connection:
    """Open or create the file; a broken one is set aside and a new one begun. OSError or sqlite3.Error.

    Writes nothing to one that is as it should be: it can be read, at least, on a disk that is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connect(path)
    except sqlite3.OperationalError:
        disk = os.statvfs(path.parent)
        if disk.f_files and not disk.f_favail:
            raise OSError(errno.ENOSPC, "the disk takes no more files") from None
        raise  # another daemon has it, or the disk refuses: a new file would not help
    except (sqlite3.DatabaseError, ValueError) as error:
        _set_aside(path, str(error))
        return _connect(path)


def in_memory() -> sqlite3.Connection:
    """Make an empty one, with a table beside for the ends of what is known no further."""
    database = _database(":memory:")
    _prepare(database)
    database.execute("CREATE TABLE earlier (id TEXT PRIMARY KEY, final TEXT NOT NULL)")
    return database


def contents_of(disk: sqlite3.Connection, earlier: int) -> Contents:
    """Read what has no end, or one that nobody was told, all facts, and `earlier` ends beside. sqlite3.Error."""
    facts = disk.execute("SELECT name, value FROM facts").fetchall()
    commands = disk.execute(f"SELECT number, {_COLUMNS} FROM commands WHERE {_ALIVE} ORDER BY number").fetchall()  # noqa: S608  constants
    return Contents(facts, commands, earlier_in(disk, earlier), last_number(disk))


def earlier_in(disk: sqlite3.Connection, most: int) -> list[Row]:
    """Read the id and the final event of the newest `most` of what has ended, in order. sqlite3.Error."""
    newest = f"SELECT id, final FROM commands WHERE {SETTLED} ORDER BY number DESC LIMIT ?"  # noqa: S608  a constant
    return disk.execute(newest, (most,)).fetchall()[::-1]


def last_number(disk: sqlite3.Connection) -> int:
    """Give the largest number that a command ever had. sqlite3.Error."""
    ever = (
        "SELECT MAX(COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'commands'), 0), "
        "COALESCE((SELECT MAX(number) FROM commands), 0))"
    )
    return int(disk.execute(ever).fetchone()[0])


def copy_of(path: Path) -> Contents:
    """Read a file that cannot be opened for writing. OSError, sqlite3.Error or ValueError."""
    with _read_only(path) as opened:
        return contents_of(opened, MOST_COPIED)


def fill(memory: sqlite3.Connection, contents: Contents) -> None:
    """Put into an empty one what was read."""
    with memory:
        memory.execute("BEGIN")
        memory.executemany("INSERT INTO facts VALUES (?, ?)", contents.facts)
        memory.executemany(f"INSERT INTO commands (number, {_COLUMNS}) VALUES ({_MARKS})", contents.commands)  # noqa: S608  constants
        memory.executemany(_INTO_EARLIER, contents.earlier)


def add_earlier(memory: sqlite3.Connection, earlier: Iterable[Row]) -> None:
    """Have it know these ends too."""
    with memory:
        memory.execute("BEGIN")
        memory.executemany(_INTO_EARLIER, earlier)


def number_after(memory: sqlite3.Connection, last: int) -> None:
    """Renumber all that came without knowledge of a disk: after its `last`."""
    renumber = "UPDATE commands SET number = "
    write(memory, [(f"{renumber}-number - ?", (last,)), (f"{renumber}-number", ())])


def numbers_in(memory: sqlite3.Connection) -> frozenset[int]:
    """Give the numbers of all that is open or untold."""
    return frozenset(row[0] for row in memory.execute("SELECT number FROM commands"))


def changes_in(memory: sqlite3.Connection, left: Left) -> Changes:
    """Give all that may be otherwise in memory than on the disk since it was left."""
    facts = memory.execute("SELECT name, value FROM facts").fetchall()
    commands = memory.execute(f"SELECT number, {_COLUMNS} FROM commands ORDER BY number").fetchall()  # noqa: S608  constants
    # What ended meanwhile and is too old to be remembered: on the disk it is open, and would be spoken again.
    gone = left.numbers - {row[0] for row in commands}
    return Changes(facts, commands, left.last, [(number,) for number in gone])


def give_back(changes: Changes, disk: sqlite3.Connection) -> None:
    """Write them to the disk, at once or not at all. sqlite3.Error.

    May be done again where nobody knows whether it was.
    """
    with disk:
        disk.execute("BEGIN IMMEDIATE")
        # What was being written when the disk was left may be there, and may have gone since.
        disk.execute("DELETE FROM commands WHERE number > ?", (changes.last,))
        disk.executemany("DELETE FROM commands WHERE number = ?", changes.gone)
        disk.executemany(f"INSERT OR REPLACE INTO commands (number, {_COLUMNS}) VALUES ({_MARKS})", changes.commands)  # noqa: S608  constants
        disk.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", changes.facts)


def write(database: sqlite3.Connection, statements: Iterable[Statement]) -> None:
    """Run one transaction. sqlite3.Error, and then none of it has happened."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        for statement, values in statements:
            database.execute(statement, values)


def _database(name: str) -> sqlite3.Connection:
    # Autocommit, and transactions that we begin: the module's own would begin late and end early.
    database = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
    # A bit that the disk has lost in a text, which no check of SQLite's sees, must not keep us from starting.
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    return database


def _connect(path: Path) -> sqlite3.Connection:
    database = _database(str(path))
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        _check(database)
        _prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection) -> None:
    """Make the tables where there are none."""
    if _version(database) != _VERSION:
        database.executescript(f"{_SCHEMA} PRAGMA user_version = {_VERSION}")
    database.execute(f"SELECT {_COLUMNS} FROM commands LIMIT 1")  # noqa: S608  a constant


def _check(database: sqlite3.Connection) -> None:
    """sqlite3.DatabaseError or ValueError where this is no journal of ours that is whole."""
    found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise ValueError(found)
    if (version := _version(database)) not in (0, _VERSION):
        raise ValueError(f"its version is {version}")


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


@contextlib.contextmanager
def _read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a file on a disk that is mounted read-only, where SQLite opens none that has a write-ahead log.

    OSError, sqlite3.Error or ValueError.
    """
    if path.stat().st_size > _LARGEST_COPIED:
        raise ValueError(f"{path} is too large to be copied")
    folder = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="speakd-", dir=folder) as temporary:
        copied = Path(temporary) / path.name
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(path.with_name(path.name + suffix), copied.with_name(copied.name + suffix))
        with contextlib.closing(_connect(copied)) as database:
            yield database


def _set_aside(path: Path, reason: str) -> None:
    aside = path.with_name(f"{path.name}.broken-{time.time_ns()}")
    _LOG.error("the journal %s is broken (%s): it is kept as %s and a new one begun", path, reason, aside.name)
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    marks = sorted({p.name.split(".broken-")[1][:19] for p in path.parent.glob(f"{path.name}.broken-*")})
    for mark in marks[:-_BROKEN_KEPT]:
        for old in path.parent.glob(f"{path.name}.broken-{mark}*"):
            old.unlink(missing_ok=True)

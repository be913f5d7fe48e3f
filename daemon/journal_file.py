"""The journal's database: a file that is whole, or set aside; a copy in memory while the disk takes nothing."""

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
from pathlib import Path
from typing import Final

_LOG = logging.getLogger(__name__)

Statement = tuple[str, Sequence[object]]
"""SQL with question marks, and what stands for them."""

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

_BROKEN_KEPT: Final = 3
"""Broken files that are kept for whoever wants to know."""

_REFUSALS: Final = ("is full", "disk I/O error", "readonly")
"""How SQLite says that the disk takes nothing. Its numbers reach Python from 3.11 on only."""

_MOST_COPIED: Final = 20_000
"""Ended commands, twice as many as are kept by default: some 15 MB of memory, copied in 0.1 s."""

_LARGEST_COPIED: Final = 2**26
"""Bytes of a file."""

_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108  in a folder of our own


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
    """Make an empty one."""
    database = _database(":memory:")
    _prepare(database)
    return database


def copy_in_memory(disk: sqlite3.Connection | Path | None) -> sqlite3.Connection:
    """Make one with what can be read of `disk`; what changes in it from now on can be given back by `give_back`.

    Of what has ended, the newest are copied.
    """
    database = in_memory()
    with contextlib.suppress(sqlite3.Error, OSError, ValueError):
        if isinstance(disk, sqlite3.Connection):
            _copy(disk, database)
        elif disk is not None:
            with _read_only(disk) as opened:
                _copy(opened, database)
    # Only these can change, besides those that will be added: all beyond the largest, which stands here negated.
    database.execute(
        "CREATE TEMP TABLE alive AS SELECT number FROM commands WHERE final IS NULL OR told = 0 "
        "UNION SELECT -COALESCE(MAX(number), 0) FROM commands"
    )
    return database


def give_back(memory: sqlite3.Connection, disk: sqlite3.Connection) -> None:
    """Write all that has changed since `copy_in_memory` to the disk, at once or not at all. sqlite3.Error."""
    changed = "number IN (SELECT number FROM alive) OR number > (SELECT -MIN(number) FROM alive)"
    with disk:
        disk.execute("BEGIN IMMEDIATE")
        # What ended meanwhile and is too old to be remembered: on the disk it is open, and would be spoken again.
        gone = memory.execute("SELECT number FROM alive WHERE number > 0 EXCEPT SELECT number FROM commands")
        disk.executemany("DELETE FROM commands WHERE number = ?", gone)
        for table, columns, count, which in (
            ("commands", _COLUMNS, 9, changed),
            ("facts", "name, value", 2, "TRUE"),
        ):
            rows = memory.execute(f"SELECT {columns} FROM {table} WHERE {which}")  # noqa: S608  constants
            marks = ", ".join("?" * count)
            disk.executemany(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})", rows)  # noqa: S608


def write(database: sqlite3.Connection, statements: Iterable[Statement]) -> None:
    """Run one transaction. sqlite3.Error, and then none of it has happened."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        for statement, values in statements:
            database.execute(statement, values)


def _database(name: str) -> sqlite3.Connection:
    # Autocommit, and transactions that we begin: the module's own would begin late and end early.
    return sqlite3.connect(name, isolation_level=None, check_same_thread=False)


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


def _copy(source: sqlite3.Connection, into: sqlite3.Connection) -> None:
    """Copy one thing after another, what matters most first: a disk that fails may give some of it."""
    facts = source.execute("SELECT name, value FROM facts")
    _fill(into, "INSERT INTO facts VALUES (?, ?)", facts)
    insert = f"INSERT INTO commands (number, {_COLUMNS}) VALUES (?{', ?' * 9})"  # noqa: S608  constants, as below
    select = f"SELECT number, {_COLUMNS} FROM commands WHERE"  # noqa: S608
    _fill(into, insert, source.execute(f"{select} final IS NULL OR told = 0"))
    newest = "final IS NOT NULL AND told = 1 AND number > (SELECT MAX(number) FROM commands) - ?"
    _fill(into, insert, source.execute(f"{select} {newest}", (_MOST_COPIED,)))


def _fill(database: sqlite3.Connection, insert: str, rows: Iterable[Sequence[object]]) -> None:
    """Insert all of them, or none."""
    with database:
        database.execute("BEGIN")
        database.executemany(insert, rows)


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

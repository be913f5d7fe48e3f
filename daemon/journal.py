"""What was accepted and how it ended, on the disk: nothing is lost and nothing spoken twice, whatever crashes.

SQLite in WAL mode with `synchronous=FULL`: every commit is flushed, so that not even a power cut forgets a command that
the broker was told we have. That costs 4 ms here (p99 12 ms, a virtual disk; NORMAL: 0.01 ms, flushed now and then),
three times per command, in the speaker's thread: the sound has threads of its own and some 30 ms of speech ahead.

The file is bounded: of what has ended, the newest `keep` are remembered, so that a repeated id is known again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import math
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from daemon.clock import Clock
from daemon.commands import Speak
from daemon.errors import JournalError
from daemon.inbox import Origin
from daemon.journal_file import (
    Contents,
    Row,
    Statement,
    changes_in,
    contents_of,
    copy_of,
    earlier_in,
    fill,
    give_back,
    in_memory,
    is_refusal,
    open_file,
    write,
)
from engines.aside import PATIENCE_S, Aside

_LOG = logging.getLogger(__name__)

_PRUNE_EVERY: Final = 100
"""Acceptances between two looks at how many are remembered."""

_BACK_S: Final = 5.0
"""Between two attempts to go back to a disk that took nothing; one that fails takes some milliseconds."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An accepted command without an end."""

    command: Speak
    origin: Origin
    accepted: Clock
    begun: bool


@dataclass(frozen=True, slots=True)
class Untold:
    """A final event that the broker has not acknowledged."""

    id: str
    final: str
    """Its payload."""
    origin: Origin


_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ETIMEDOUT})

_START_S: Final = 10.0
"""For the check of the whole file; SQLite itself waits 5 s for another process that has it."""

_GIVEN_S: Final = 5.0
"""For all that came meanwhile to be written: 10,000 commands took 0.2 s here."""

_FORGET: Final[Statement] = ("DELETE FROM commands WHERE final IS NOT NULL AND told = 1", ())
"""In memory: what the disk knows of it is enough."""


class Journal:
    """One file, one process, one thread.

    What is open or untold, and all facts, are in memory too. A disk that takes nothing or does not answer, from the
    start or at any time, silences nobody: the journal goes on in memory, and `problem` says so. `recover` takes the
    disk back, with all that came meanwhile.
    """

    def __init__(self, path: Path | None, *, keep: int = 10_000) -> None:
        """Open or create; a broken file is set aside and a new one begun. None: in memory only.

        JournalError where the file is somebody else's, or there can be none.
        """
        self._path = path
        self._keep = keep
        self._accepted = 0
        self._told: list[str] = []
        self._back_at = 0.0
        self._aside = Aside("journal")
        """Does all that touches the disk."""
        self._opened: list[sqlite3.Connection] = []
        """What was opened aside and is not in use yet."""
        self.problem = ""
        """Why nothing outlives a restart; empty where it does."""
        self._disk: sqlite3.Connection | None = None
        """The file's; None where it could not be opened."""
        self._memory = in_memory()
        self._number = 0
        """Of the command that was accepted last."""
        self._left: Contents | None = None
        """What the disk had when it was left; None where it was never read."""
        if path is not None:
            self._open(path)

    @property
    def due(self) -> float:
        """When `recover` is to be called, in seconds of `time.monotonic`; infinite where nothing is wrong."""
        return self._back_at if self.problem and self._path is not None else math.inf

    def accept(self, command: Speak, origin: Origin, at: Clock) -> None:
        """Record that this command was accepted. On return it is on the disk."""
        content = (command.id, _dump(command.model_dump()), _origin_to_json(origin), at.boot, at.since_boot, at.wall)
        # One of that id which has no end is of an earlier run, which nobody could read when this one began.
        insert = "INSERT OR REPLACE INTO commands (number, id, command, origin, boot, monotonic, wall) VALUES"
        statements: list[Statement] = [(f"{insert} (?, ?, ?, ?, ?, ?, ?)", (self._number + 1, *content))]
        self._accepted += 1
        if self._accepted % _PRUNE_EVERY == 0:
            prune = (
                "DELETE FROM commands WHERE final IS NOT NULL AND told = 1 "
                "AND number <= (SELECT MAX(number) FROM commands) - ?"
            )
            statements.append((prune, (self._keep,)))
        self._write(*statements)
        self._number += 1

    def begin(self, command_id: str) -> None:
        """Record that it may be heard from now on: after a crash it is not spoken again."""
        self._write(("UPDATE commands SET begun = 1 WHERE id = ?", (command_id,)))

    def end(self, command_id: str, final: str) -> None:
        """Record its final event, before anybody is told."""
        self._write(("UPDATE commands SET final = ? WHERE id = ? AND final IS NULL", (final, command_id)))

    def told(self, command_id: str) -> None:
        """Note that the broker has the final event; written along with whatever is written next.

        Lost in a crash, it makes the same event be sent again, which is what QoS 1 allows.
        """
        self._told.append(command_id)

    def final(self, command_id: str) -> str | None:
        """Give the final event of a command that has ended and is still remembered."""
        query, values = "SELECT final FROM commands WHERE id = ? AND final IS NOT NULL", (command_id,)
        row = self._read(query, values)
        if not row and self._disk is not None and not self.problem:
            disk = self._disk
            try:
                row = self._aside.do(lambda: disk.execute(query, values).fetchall())
            except (sqlite3.Error, OSError) as error:
                self._leave_disk(error)
        if not row:
            row = self._read("SELECT final FROM earlier WHERE id = ?", values)
        return row[0][0] if row else None

    def open_entries(self) -> list[Entry]:
        """Give what was accepted and has no end, in order. For the start: whatever it is, a crash ended it."""
        rows = self._read(
            "SELECT command, origin, boot, monotonic, wall, begun FROM commands WHERE final IS NULL ORDER BY number"
        )
        return [
            Entry(Speak.model_validate(json.loads(command)), _origin_from_json(origin), Clock(*clock), bool(begun))
            for command, origin, *clock, begun in rows
        ]

    def untold(self) -> list[Untold]:
        """Give the final events that the broker may not have, in order. For the start."""
        rows = self._read("SELECT id, final, origin FROM commands WHERE final IS NOT NULL AND told = 0 ORDER BY number")
        return [
            Untold(command_id, final, _origin_from_json(origin))
            for command_id, final, origin in rows
            if command_id not in self._told
        ]

    def remember(self, name: str, value: str) -> None:
        """Keep a fact across restarts."""
        self._write(("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value)))

    def recall(self, name: str) -> str | None:
        """Give a fact that was kept."""
        row = self._read("SELECT value FROM facts WHERE name = ?", (name,))
        return row[0][0] if row else None

    def recover(self) -> None:
        """Go back to a disk that took nothing, if it is `due` and the disk takes something by now."""
        now = time.monotonic()
        if self._path is None or now < self.due:
            return
        self._back_at = now + _BACK_S
        try:
            if self._disk is None:
                self._disk = self._opened_aside(self._path)
            changes, disk = changes_in(self._memory, self._left), self._disk
            contents = self._aside.do(lambda: give_back(changes, disk), _GIVEN_S)
        except OSError:
            return
        except sqlite3.Error as error:
            if self._disk is not None and not is_refusal(error):  # broken: it is opened, and judged, anew
                self._close(self._disk)
                self._disk = None
            return
        self._take(contents)
        self.problem = ""
        _LOG.warning("the journal %s is written again", self._path)

    def close(self) -> None:
        """Write what is still to be written, and close. Idempotent; raises nothing."""
        if self._told:
            with contextlib.suppress(JournalError):
                self._write()
        self._back_at = 0.0
        self.recover()
        self._memory.close()
        for database in (self._disk, *self._opened):
            if database is not None:
                self._close(database)

    def _write(self, *statements: Statement) -> None:
        """Run one transaction, in memory alone where the disk takes nothing; what was told goes along. JournalError."""
        self.recover()
        told = [("UPDATE commands SET told = 1 WHERE id = ?", (command_id,)) for command_id in self._told]
        transaction = [*statements, *told]
        if self._disk is not None and not self.problem:
            disk = self._disk
            try:
                self._aside.do(lambda: write(disk, transaction))
            except (sqlite3.Error, OSError) as error:
                self._leave_disk(error)
        on_disk = self._path is not None and not self.problem
        try:
            write(self._memory, [*transaction, _FORGET] if on_disk else transaction)
        except sqlite3.Error as error:
            raise JournalError(str(self._path), str(error)) from error
        self._told.clear()

    def _read(self, query: str, values: tuple[str, ...] = ()) -> list[Any]:
        try:
            return self._memory.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise JournalError(str(self._path), str(error)) from error

    def _open(self, path: Path) -> None:
        try:
            disk = self._disk = self._opened_aside(path, _START_S)
            self._take(self._aside.do(lambda: contents_of(disk), _START_S))
        except OSError as error:
            if error.errno not in _FULL:
                raise JournalError(str(path), error.strerror or str(error)) from error
            self._begin_without(path, error)
        except sqlite3.Error as error:
            if not is_refusal(error):
                raise JournalError(str(path), str(error)) from error
            self._begin_without(path, error)

    def _opened_aside(self, path: Path, patience_s: float = PATIENCE_S) -> sqlite3.Connection:
        """Open the file; TimeoutError where that takes long, as the check of all of it may. Then it is there later."""
        if not self._opened:
            self._aside.do(lambda: self._opened.append(open_file(path)), patience_s)
        return self._opened.pop()

    def _close(self, database: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error, OSError):
            self._aside.do(database.close)

    def _take(self, contents: Contents, earlier: Iterable[Row] = ()) -> None:
        """Have in memory just what the disk has."""
        self._memory.close()
        self._memory = in_memory()
        fill(self._memory, contents, earlier)
        self._number, self._left = contents.last, contents

    def _begin_without(self, path: Path, error: Exception) -> None:
        """Begin in memory, with what can be read of the disk."""
        self._tell(error)
        with contextlib.suppress(sqlite3.Error, OSError, ValueError):
            self._take(*self._aside.do(lambda: copy_of(path), _START_S))

    def _leave_disk(self, error: Exception) -> None:
        """Go on in memory, with what can be read of the disk beside."""
        self._tell(error)
        here = contents_of(self._memory)
        self._left = replace(here, last=self._number)
        disk = self._disk
        if disk is not None:
            with contextlib.suppress(sqlite3.Error, OSError):
                earlier = self._aside.do(lambda: earlier_in(disk))
                fill(self._memory, Contents([], [], 0), earlier)

    def _tell(self, error: Exception) -> None:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        self.problem = str(JournalError(str(self._path), reason))
        _LOG.error("%s. Speech goes on; what a crash interrupts will be forgotten", self.problem)
        self._back_at = time.monotonic() + _BACK_S


def _dump(value: object) -> str:
    """Write JSON in ASCII: a text may hold half a character, which UTF-8 cannot."""
    return json.dumps(value, ensure_ascii=True)


def _origin_to_json(origin: Origin) -> str:
    return _dump({**asdict(origin), "correlation": origin.correlation.hex()})


def _origin_from_json(text: str) -> Origin:
    value = json.loads(text)
    properties = tuple((name, content) for name, content in value["properties"])
    correlation = bytes.fromhex(value["correlation"])
    return Origin(value["reply_to"], correlation, properties, value.get("route", ""))  # journals of before have none

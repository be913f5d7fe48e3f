"""What was accepted and how it ended, on the disk: nothing is lost and nothing spoken twice, whatever crashes.

SQLite in WAL mode with `synchronous=FULL`: every commit is flushed, so that not even a power cut forgets a command that
the broker was told we have. That costs 4 ms here (p99 12 ms, a virtual disk; NORMAL: 0.01 ms, flushed now and then),
three times per command, for which the speaker waits: the sound has threads of its own and some 30 ms of speech ahead.

The file is bounded: of what has ended, the newest `keep` are remembered, so that a repeated id is known again.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from daemon.clock import Clock
from daemon.commands import Speak
from daemon.errors import JournalError
from daemon.inbox import Origin
from daemon.journal_file import (
    MOST_COPIED,
    SETTLED,
    Contents,
    Left,
    Statement,
    add_earlier,
    changes_in,
    contents_of,
    copy_of,
    earlier_in,
    fill,
    give_back,
    in_memory,
    is_refusal,
    last_number,
    number_after,
    numbers_in,
    open_file,
    write,
)
from daemon.journal_rows import Entry, Untold, dump, entry_of, origin_from_json, origin_to_json
from engines.aside import PATIENCE_S, Aside

_LOG = logging.getLogger(__name__)

_PRUNE_EVERY: Final = 100
"""Acceptances between two looks at how many are remembered."""

_BACK_S: Final = 5.0
"""Between two attempts to go back to a disk that took nothing; one that fails takes some milliseconds."""

_SOON_S: Final = 1.0
"""The same, the first time after it did not answer."""

_KEEPS_NOTHING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ETIMEDOUT})

_START_S: Final = 10.0
"""For the check of the whole file; SQLite itself waits 5 s for another process that has it."""

_LONGEST_GIVEN_S: Final = 8.0
"""For all that came meanwhile to be written, 10,000 commands in 0.2 s here: a second, and up to this, twice as long
each time that it does not suffice. With the looks before it stays far below the watchdog's 20 s."""

_PAUSE: Final = 3
"""Times as long as an attempt took until the next one: a slow disk must not hold up most of what is said."""

_RECENT: Final = 2_000
"""Ends that are known though the disk hangs: hours of a busy kiosk, in 1 MB."""


class Journal:
    """One file, one process, one thread.

    What is open or untold, all facts and the last ends are in memory too. A disk that takes nothing or does not answer,
    from the start or at any time, silences nobody: the journal goes on in memory, and `problem` says so. `recover`
    takes the disk back, with all that came meanwhile.
    """

    def __init__(self, path: Path | None, *, keep: int = 10_000) -> None:
        """Open or create; a broken file is set aside and a new one begun. None: in memory only.

        JournalError where the file is somebody else's, or there can be none.
        """
        self._path = path
        self._keep = keep
        self._recent = min(keep, _RECENT)
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
        self._left: Left | None = None
        """What the disk had when it was left; None where it was never read."""
        self._given_s = PATIENCE_S
        self._was_read = False
        self._found = False
        if path is not None:
            self._open(path)

    @property
    def due(self) -> float:
        """When `recover` is to be called, in seconds of `time.monotonic`; infinite where nothing is wrong."""
        return self._back_at if self.problem and self._path is not None else math.inf

    def accept(self, command: Speak, origin: Origin, at: Clock) -> None:
        """Record that this command was accepted. On return it is on the disk."""
        content = (command.id, dump(command.model_dump()), origin_to_json(origin), at.boot, at.since_boot, at.wall)
        # One of that id which has no end is of an earlier run, which nobody could read when this one began.
        insert = "INSERT OR REPLACE INTO commands (number, id, command, origin, boot, monotonic, wall) VALUES"
        statements: list[Statement] = [(f"{insert} (?, ?, ?, ?, ?, ?, ?)", (self._number + 1, *content))]
        self._accepted += 1
        if self._accepted % _PRUNE_EVERY == 0:
            prune = f"DELETE FROM commands WHERE {SETTLED} AND number <= (SELECT MAX(number) FROM commands) - ?"  # noqa: S608  a constant
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
        return [entry for row in rows if (entry := entry_of(row)) is not None]

    def untold(self) -> list[Untold]:
        """Give the final events that the broker may not have, in order. For the start."""
        rows = self._read("SELECT id, final, origin FROM commands WHERE final IS NOT NULL AND told = 0 ORDER BY number")
        return [
            Untold(command_id, final, origin_from_json(origin))
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
        """Go back to a disk that took nothing, if it is `due` and the disk takes something by now.

        Takes a second where the disk hangs again, and some where it is slow.
        """
        now = time.monotonic()
        if self._path is None or now < self.due:
            return
        try:
            self._go_back(self._path)
        except (OSError, ValueError):
            pass
        except sqlite3.Error as error:
            self._judge(error)
        took = time.monotonic() - now
        if self.problem and took >= self._given_s:
            self._given_s = min(2 * self._given_s, _LONGEST_GIVEN_S)
        self._back_at = now + took + max(_BACK_S, _PAUSE * took)

    def has_found(self) -> bool:
        """Tell, once, that the file could be read at last: what an earlier run left is among `open_entries` now."""
        found, self._found = self._found, False
        return found

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
        told = [("UPDATE commands SET told = 1 WHERE id = ?", (command_id,)) for command_id in self._told]
        transaction = [*statements, *told]
        if self._disk is not None and not self.problem:
            disk = self._disk
            try:
                self._aside.do(lambda: write(disk, transaction))
            except (sqlite3.Error, OSError) as error:
                self._leave_disk(error)
        if self._path is not None and not self.problem:
            transaction = [  # in memory: the disk knows the rest
                *transaction,
                (f"INSERT OR REPLACE INTO earlier SELECT id, final FROM commands WHERE {SETTLED}", ()),  # noqa: S608  a constant
                (f"DELETE FROM commands WHERE {SETTLED}", ()),  # noqa: S608  likewise
                ("DELETE FROM earlier WHERE rowid <= (SELECT MAX(rowid) FROM earlier) - ?", (self._recent,)),
            ]
        try:
            write(self._memory, transaction)
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
            self._take(self._aside.do(lambda: contents_of(disk, self._recent), _START_S))
        except OSError as error:
            if error.errno not in _KEEPS_NOTHING:
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

    def _go_back(self, path: Path) -> None:
        """Write to the disk all that came meanwhile. OSError, sqlite3.Error or ValueError."""
        disk = self._disk = self._disk or self._opened_aside(path)
        left = self._left
        if left is None:
            last = self._aside.do(lambda: last_number(disk))
            number_after(self._memory, last)
            self._number += last
            left = self._left = Left(last, frozenset())
        changes = changes_in(self._memory, left)

        def give() -> Contents:
            give_back(changes, disk)
            return contents_of(disk, self._recent)

        contents = self._aside.do(give, self._given_s)
        there = {row[0] for row in contents.earlier}
        known = self._read("SELECT id, final FROM earlier ORDER BY rowid")  # a file that was broken is empty now
        earlier = [*(row for row in known if row[0] not in there), *contents.earlier][-self._recent :]
        found = not self._was_read
        self._take(replace(contents, earlier=earlier))
        self._given_s, self._found, self.problem = PATIENCE_S, found, ""
        _LOG.warning("the journal %s is written again", path)

    def _take(self, contents: Contents) -> None:
        """Have in memory just what the disk has."""
        memory = in_memory()
        fill(memory, contents)
        self._memory.close()
        self._memory, self._was_read = memory, True
        self._note_what_is_left(contents.last)

    def _note_what_is_left(self, last: int) -> None:
        self._number, self._left = last, Left(last, numbers_in(self._memory))

    def _begin_without(self, path: Path, error: Exception) -> None:
        """Begin in memory, with what can be read of the disk."""
        self._tell(error)
        with contextlib.suppress(sqlite3.Error, OSError, ValueError):
            self._take(self._aside.do(lambda: copy_of(path), _START_S))

    def _leave_disk(self, error: Exception) -> None:
        """Go on in memory, with what can be read of the disk beside."""
        self._tell(error)
        self._note_what_is_left(self._number)
        disk = self._disk
        with contextlib.suppress(sqlite3.Error, OSError):
            if disk is not None:
                add_earlier(self._memory, self._aside.do(lambda: earlier_in(disk, MOST_COPIED)))
        if isinstance(error, sqlite3.Error):
            self._judge(error)

    def _judge(self, error: sqlite3.Error) -> None:
        """Where it is the file that is broken, have it opened anew, which sets it aside."""
        if self._disk is not None and not is_refusal(error):
            self._close(self._disk)
            self._disk = None

    def _tell(self, error: Exception) -> None:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        self.problem = str(JournalError(str(self._path), reason))
        _LOG.error("%s. Speech goes on; what a crash interrupts will be forgotten", self.problem)
        # A card may be busy with itself for a second or two, which is no reason for an alert.
        self._back_at = time.monotonic() + (_SOON_S if isinstance(error, TimeoutError) else _BACK_S)

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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from daemon.commands import Speak
from daemon.errors import JournalError
from daemon.inbox import Origin
from daemon.journal_file import Statement, copy_in_memory, give_back, in_memory, is_refusal, open_file, write
from engines.aside import Aside

_LOG = logging.getLogger(__name__)

_PRUNE_EVERY: Final = 100
"""Acceptances between two looks at how many are remembered."""

_BACK_S: Final = 5.0
"""Between two attempts to go back to a disk that took nothing; one that fails takes some milliseconds."""

PLAUSIBLE_WALL: Final = 1_767_225_600.0
"""2026-01-01: a clock before it was never set since the board started."""


@dataclass(frozen=True, slots=True)
class Clock:
    """What time it is, in several ways. Within one boot the time since it counts, whatever the wall clock does."""

    boot: str
    monotonic: float
    wall: float
    asleep: float = 0.0
    """Seconds of this boot for which the machine was suspended: `monotonic` stood still."""

    @classmethod
    def now(cls) -> Clock:
        """Read all of them."""
        boot = "unknown"
        with contextlib.suppress(OSError):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        monotonic = time.monotonic()
        return cls(boot, monotonic, time.time(), max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - monotonic))

    @property
    def since_boot(self) -> float:
        """Seconds since the boot, those of suspensions among them."""
        return self.monotonic + self.asleep

    def age_s(self, earlier: Clock) -> float | None:
        """Give the time since `earlier`; None where no clock can tell: one was not set, or went backwards."""
        if self.boot == earlier.boot and self.since_boot >= earlier.since_boot:
            return self.since_boot - earlier.since_boot
        if earlier.wall >= PLAUSIBLE_WALL and self.wall >= earlier.wall:
            return self.wall - earlier.wall
        return None


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


_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})


class Journal:
    """One file, one process, one thread.

    A disk that takes nothing, from the start or at any time, silences nobody: the journal goes on in memory, with all
    that can still be read of the disk, and `problem` says so. `recover` takes it back, with all that came meanwhile.
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
        self._opened: list[sqlite3.Connection] = []
        """What was opened aside and is not in use yet."""
        self.problem = ""
        """Why nothing outlives a restart; empty where it does."""
        self._disk: sqlite3.Connection | None = None
        """The file's; None where it could not be opened."""
        self._database: sqlite3.Connection
        """In which all is written and looked up: the file's, or its copy in memory."""
        self._open()

    @property
    def due(self) -> float:
        """When `recover` is to be called, in seconds of `time.monotonic`; infinite where nothing is wrong."""
        return self._back_at if self.problem and self._path is not None else math.inf

    def accept(self, command: Speak, origin: Origin, at: Clock) -> None:
        """Record that this command was accepted. On return it is on the disk."""
        row = (command.id, _dump(command.model_dump()), _origin_to_json(origin), at.boot, at.since_boot, at.wall)
        # One of that id which has no end is of an earlier run, which nobody could read when this one began.
        insert = (
            "INSERT OR REPLACE INTO commands (id, command, origin, boot, monotonic, wall) VALUES (?, ?, ?, ?, ?, ?)"
        )
        statements: list[Statement] = [(insert, row)]
        self._accepted += 1
        if self._accepted % _PRUNE_EVERY == 0:
            prune = (
                "DELETE FROM commands WHERE final IS NOT NULL AND told = 1 "
                "AND number <= (SELECT MAX(number) FROM commands) - ?"
            )
            statements.append((prune, (self._keep,)))
        self._write(*statements)

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
        row = self._read("SELECT final FROM commands WHERE id = ? AND final IS NOT NULL", (command_id,))
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
                self._disk = self._reopen(self._path)
            give_back(self._database, self._disk)
        except OSError:
            return
        except sqlite3.Error as error:
            if self._disk is not None and not is_refusal(error):  # broken: it is opened, and judged, anew
                self._disk.close()
                self._disk = None
            return
        self._database.close()
        self._database, self.problem = self._disk, ""
        _LOG.warning("the journal %s is written again", self._path)

    def close(self) -> None:
        """Write what is still to be written, and close. Idempotent; raises nothing."""
        if self._told:
            with contextlib.suppress(JournalError):
                self._write()
        self._back_at = 0.0
        self.recover()
        for database in (self._database, self._disk, *self._opened):
            if database is not None:
                database.close()

    def _write(self, *statements: Statement) -> None:
        """Run one transaction, in memory where the disk refuses; what was told goes along. JournalError."""
        self.recover()
        told = [("UPDATE commands SET told = 1 WHERE id = ?", (command_id,)) for command_id in self._told]
        try:
            write(self._database, (*statements, *told))
        except sqlite3.Error as error:
            if self.problem:
                raise JournalError(str(self._path), str(error)) from error
            self._leave_disk(self._disk, str(error))
            write(self._database, (*statements, *told))
        self._told.clear()

    def _read(self, query: str, values: tuple[str, ...] = ()) -> list[Any]:
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.Error as error:
            if self.problem:
                raise JournalError(str(self._path), str(error)) from error
            self._leave_disk(self._disk, str(error))
            return self._database.execute(query, values).fetchall()

    def _open(self) -> None:
        if self._path is None:
            self._database = in_memory()
            return
        try:
            self._disk = self._database = open_file(self._path)
        except OSError as error:
            if error.errno not in _FULL:
                raise JournalError(str(self._path), error.strerror or str(error)) from error
            self._leave_disk(self._path, error.strerror or str(error))
        except sqlite3.Error as error:
            if not is_refusal(error):
                raise JournalError(str(self._path), str(error)) from error
            self._leave_disk(self._path, str(error))

    def _reopen(self, path: Path) -> sqlite3.Connection:
        """Open the file; TimeoutError where that takes long, as the check of all of it may. Then it is there later."""
        if not self._opened:
            self._aside.do(lambda: self._opened.append(open_file(path)))
        return self._opened.pop()

    def _leave_disk(self, disk: sqlite3.Connection | Path | None, reason: str) -> None:
        """Go on in memory, with what can be read of the disk."""
        self.problem = str(JournalError(str(self._path), reason))
        _LOG.error("%s. Speech goes on; what a crash interrupts will be forgotten", self.problem)
        self._back_at = time.monotonic() + _BACK_S
        self._database = copy_in_memory(disk)


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

"""How the disks are that speakd writes to: their room, whether they refuse, their wear, and what it has written itself.

A look asks the kernel for what it has in memory, and nothing is written to try. A network disk whose server is gone
does not even answer that: each folder is looked at by a thread of its own, which may be stuck there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daemon.config import Config, journal_file, phrases_folder, recordings_folder, renders_folder
from daemon.write_meter import WriteMeter
from engines.aside import Aside
from power.wear import read_wear

_IO: Final = Path("/proc/self/io")

_PATIENCE_S: Final = 0.05
"""For an answer, which takes 5 us. What comes later is told by the next look; the loop that asks waits no longer."""

_HUNG_S: Final = 5.0
"""Without an answer for so long a folder is told to hang; until then it is as it was."""


@dataclass(frozen=True, slots=True)
class DiskState:
    """How they were at one moment. None: nobody knows."""

    free_bytes: int | None = None
    """For us, on the fullest of them."""
    refusal: str = ""
    """Why what should be kept is not; empty where it is."""
    written_bytes: int | None = None
    """By this process and those that it started and that have ended, handed to the disks since the start. What a file
    system writes for itself, and a flash memory moves around inside, comes on top."""
    day_bytes: int | None = None
    """Of that, within the last 24 hours."""
    bytes_per_day: float | None = None
    """At the pace of the last 24 hours; None within the first hour."""
    wear_percent: int | None = None
    """Of its life, what the eMMC has used at most."""


class Disks:
    """For the main thread."""

    def __init__(
        self,
        folders: Iterable[Path],
        *,
        started_at: float,
        root: Path = Path("/"),
        io: Path = _IO,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """`folders`: into which we write; those that are not there yet are judged by where they will be made.

        `root`: what /sys starts with; `io`: the kernel's account of this process; `patience_s`: how long a look waits
        for a folder that did not hang before. Times are of `time.monotonic`.
        """
        self._places = [_Place(folder, patience_s) for folder in folders]
        self._io = io
        self._wear = read_wear(root)
        self._meter = WriteMeter(started_at)

    def look(self, now: float, journal_problem: str = "") -> DiskState:
        """Look at all of them. `journal_problem`: why the journal takes nothing, which it knows best itself."""
        rooms = [place.room(now) for place in self._places]
        refusals = [journal_problem, *(room for room in rooms if isinstance(room, str))]
        written = _written(self._io)
        if written is not None:
            self._meter.add(written, now)
            written = self._meter.total  # it only grows, while the kernel takes back what never reached the disk
        return DiskState(
            free_bytes=min((room for room in rooms if isinstance(room, int)), default=None),
            refusal=next((refusal for refusal in refusals if refusal), ""),
            written_bytes=written,
            day_bytes=None if written is None else self._meter.day,
            bytes_per_day=None if written is None else self._meter.per_day,
            wear_percent=self._wear,
        )


class _Place:
    """A folder, and what was last known of it."""

    def __init__(self, folder: Path, patience_s: float) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._aside = Aside("disk")
        self._known: int | str | None = None
        self._answered = True
        self._asked_at = 0.0

    def room(self, now: float) -> int | str | None:
        """Give the bytes that are free, or why nothing can be written; None where that is not known yet."""
        if self._answered:  # looks may be an hour apart: only how long one goes without an answer tells of a hang
            self._answered, self._asked_at = False, now
        with suppress(TimeoutError):
            self._aside.do(self._ask, self._patience_s)
        if not self._answered and now - self._asked_at >= _HUNG_S:
            return hangs(self._folder)
        return self._known

    def _ask(self) -> None:
        """Take note of the answer, also of one that nobody waits for any more. In the thread aside."""
        self._known = _room(self._folder)
        self._answered = True


def hangs(folder: Path) -> str:
    """Say that nobody who looks at a folder comes back."""
    return f"{folder} does not answer: is the server of a network disk gone, or does a disk fail?"


def written_folders(config: Config) -> tuple[Path, ...]:
    """Give the folders into which a running daemon writes what it should find again."""
    folders = [journal_file(config).parent]
    if config.cache.enabled:
        folders.append(phrases_folder(config))
    if config.recorder.enabled:
        folders.append(recordings_folder(config))
    if config.render.folder:  # else it lies beside the journal
        folders.append(renders_folder(config))
    return tuple(folders)


def standing(folder: Path) -> Path:
    """Give a folder, or where it is not there yet the one above in which it will be made. OSError where one is lost."""
    return next(parent for parent in (folder, *folder.parents) if parent.exists())


def _room(folder: Path) -> int | str:
    """Give the bytes that are free for us where a folder is, or why nothing can be written there."""
    try:
        # Where the disk fails, or a folder above is not ours to enter, already this does.
        there = standing(folder)
        told = os.statvfs(there)
    except OSError as error:
        return f"{folder} cannot be looked at: {error.strerror}"
    if told.f_flag & os.ST_RDONLY:
        return f"{folder} is on a disk that is mounted read-only, as the kernel does with one that fails"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{folder} cannot be written by this user"
    if told.f_files and not told.f_favail:
        return f"{folder} is on a disk that takes no more files: it has no free inodes"
    return told.f_bavail * told.f_frsize


def _written(file: Path) -> int | None:
    """Give the bytes that this process has had written; None where the kernel does not count them."""
    try:
        lines = dict(line.split(": ") for line in file.read_text(encoding="ascii").splitlines())
        return max(0, int(lines["write_bytes"]) - int(lines["cancelled_write_bytes"]))
    except (OSError, ValueError, KeyError):
        return None

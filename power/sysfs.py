"""Small files of the kernel: read without ever waiting for long, and written."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

FILE_LIMIT_S: Final = 0.25
"""For one file. Sensors behind I2C answer within some ms; a driver that is stuck answers never."""

SWEEP_LIMIT_S: Final = 1.0
"""For all files that are read together; what has not been read by then is missing this time."""

REST_S: Final = 60.0
"""A file that blocked is left alone for as long after it has let go."""

MOST_STUCK: Final = 8
"""Threads that may be stuck in a file. With more there is no hope, and nothing is read until one comes back."""

MOST_BYTES: Final = 4096
"""A page: no attribute in sysfs is longer."""

ABSENT: Final = "is not there"
STUCK: Final = "does not answer"
LATE: Final = "was left out: others took too long"


class Reader:
    """Reads many small files in a thread that is left behind where one of them blocks.

    Neither O_NONBLOCK nor a signal helps against a driver that sleeps: only a second thread can have a time-out. A file
    that blocks is skipped from then on, until it has let go and rested. For one thread at a time; each `read` starts
    one short-lived thread, which costs about 0.1 ms.
    """

    def __init__(
        self,
        *,
        file_limit_s: float = FILE_LIMIT_S,
        sweep_limit_s: float = SWEEP_LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds, as `time.monotonic`."""
        self._file_limit_s = file_limit_s
        self._sweep_limit_s = sweep_limit_s
        self._clock = clock
        self._lock = threading.Lock()
        self._stuck: dict[Path, float | None] = {}  # -> when it let go; None: it has not
        self.errors: Mapping[Path, str] = {}
        """Each file of the last `read` that gave no text, and why in words."""

    @property
    def skipped(self) -> tuple[Path, ...]:
        """The files that are left alone, because they blocked."""
        with self._lock:
            return tuple(self._stuck)

    def read(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Give the text of each file that can be read, without white space around it.

        Waits up to twice `file_limit_s` for a file that blocks, and about `sweep_limit_s` in all.
        """
        texts: dict[Path, str] = {}
        errors: dict[Path, str] = {}
        ends_at = self._clock() + self._sweep_limit_s
        todo = self._willing(paths, errors)
        while todo:
            sweep = _Sweep(todo, self._let_go)
            position = self._run(sweep, ends_at)
            texts.update((path, sweep.texts[path]) for path in todo[:position] if path in sweep.texts)
            errors.update((path, sweep.errors[path]) for path in todo[:position] if path in sweep.errors)
            if position < len(todo):
                errors[todo[position]] = STUCK
            todo = todo[position + 1 :]
            if self._clock() >= ends_at or self._is_hopeless():
                errors.update(dict.fromkeys(todo, LATE))
                break
        self.errors = errors
        return texts

    def text(self, path: Path) -> str | None:
        """Give the text of one file; None where it cannot be read."""
        return self.read([path]).get(path)

    def _willing(self, paths: Iterable[Path], errors: dict[Path, str]) -> list[Path]:
        wanted = list(paths)
        is_hopeless = self._is_hopeless()
        with self._lock:
            for path, free_at in list(self._stuck.items()):
                if free_at is not None and self._clock() - free_at > REST_S:
                    del self._stuck[path]
            left_alone = wanted if is_hopeless else [path for path in wanted if path in self._stuck]
        errors.update(dict.fromkeys(left_alone, STUCK))
        return [path for path in wanted if path not in errors]

    def _is_hopeless(self) -> bool:
        with self._lock:
            return sum(free_at is None for free_at in self._stuck.values()) >= MOST_STUCK

    def _run(self, sweep: _Sweep, ends_at: float) -> int:
        """Have it run; give how many files were read before the first that blocks."""
        threading.Thread(target=sweep.run, name="sysfs", daemon=True).start()
        seen = -1
        while not sweep.done.wait(min(self._file_limit_s, max(ends_at - self._clock(), 0))):
            with sweep.lock:
                if sweep.position == len(sweep.paths):
                    break
                if sweep.position == seen or self._clock() >= ends_at:
                    sweep.is_abandoned = True
                    with self._lock:
                        self._stuck[sweep.paths[sweep.position]] = None
                    return sweep.position
                seen = sweep.position
        return len(sweep.paths)

    def _let_go(self, path: Path) -> None:
        with self._lock:
            self._stuck[path] = self._clock()


class _Sweep:
    """Files that one thread reads one after another, and how far it has come."""

    def __init__(self, paths: list[Path], let_go: Callable[[Path], None]) -> None:
        self.paths: Final = paths
        self.texts: Final[dict[Path, str]] = {}
        self.errors: Final[dict[Path, str]] = {}
        self.position = 0
        self.is_abandoned = False
        self.lock: Final = threading.Lock()
        self.done: Final = threading.Event()
        self._let_go = let_go

    def run(self) -> None:
        """Read all, or until abandoned."""
        for path in self.paths:
            try:
                self.texts[path] = _read(path)
            except FileNotFoundError:
                self.errors[path] = ABSENT
            except OSError as error:
                self.errors[path] = error.strerror or str(error)
            with self.lock:
                self.position += 1
                if self.is_abandoned:
                    self._let_go(path)
                    return
        self.done.set()


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, MOST_BYTES).decode("utf-8", "replace").strip("\x00\n\t ")
    finally:
        os.close(descriptor)


def write(path: Path, text: str) -> None:
    """Write a value in one call, as the kernel wants it. OSError where it is refused."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_TRUNC)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)


def integer(text: str | None, least: int, most: int) -> int | None:
    """Give a number within bounds; None for everything else that a sensor may say."""
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        return None
    return value if least <= value <= most else None

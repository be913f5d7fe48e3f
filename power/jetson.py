"""jtop, watched from outside: a child process that is killed when it is silent and started again, ever more rarely."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

SILENT_S: Final = 15.0
"""Without a line. Our child asks every 2 s and jtop's own time-outs end at three intervals; loading it on a board takes
some seconds."""

FIRST_WAIT_S: Final = 2.0
LONGEST_WAIT_S: Final = 600.0
"""Before the next attempt: twice as long after each, from the first on."""

MOST_LINE_BYTES: Final = 16_384
END_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class JtopSample:
    """What only jtop knows. A value it does not know is None or absent."""

    gpu_load: float | None = None
    """0 to 1."""
    gpu_hz: int | None = None
    power_mode: str | None = None
    fans: Mapping[str, float] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()
    """What jtop should know on a Jetson and does not."""


class Jtop:
    """Keeps one child with jtop, and its newest sample. `poll` never waits; for one thread."""

    def __init__(
        self,
        command: tuple[str, ...] = (sys.executable, "-m", "power.jtop_child"),
        *,
        silent_s: float = SILENT_S,
        first_wait_s: float = FIRST_WAIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds, as `time.monotonic`."""
        self._command = command
        self._silent_s = silent_s
        self._wait_s = self._first_wait_s = first_wait_s
        self._clock = clock
        self._child: _Child | None = None
        self._next_start = 0.0
        self._is_closed = False
        self.reason: str | None = "jtop has not said anything yet"
        """Why there is no sample, or less than all in it; None when jtop tells all."""
        self.starts = 0
        """How many children there were."""

    def poll(self) -> JtopSample | None:
        """Give the newest sample, if it is fresh; look after the child."""
        now = self._clock()
        child = self._child
        if child is None:
            if now >= self._next_start and not self._is_closed:
                self._start(now)
            return None
        if child.error is not None or child.is_over:
            self._fail(child.error or "jtop's process has died", now)
            return None
        if now - child.heard_at > self._silent_s:
            self._fail("jtop does not answer", now)
            return None
        if child.sample is not None:
            self._wait_s = self._first_wait_s
            self.reason = f"jtop tells no {' and no '.join(child.sample.lacks)}" if child.sample.lacks else None
        return child.sample

    def close(self) -> None:
        """End the child. Idempotent."""
        self._is_closed = True
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _start(self, now: float) -> None:
        self.starts += 1
        try:
            self._child = _Child(self._command, self._clock)
        except OSError as error:
            self._fail(f"jtop's process cannot be started: {error.strerror or error}", now)

    def _fail(self, reason: str, now: float) -> None:
        self.reason = reason
        child, self._child = self._child, None
        if child is not None:
            child.end()
        self._next_start = now + self._wait_s
        self._wait_s = min(self._wait_s * 2, LONGEST_WAIT_S)


class _Child:
    """One child process and the thread that listens to it. The thread ends with the process."""

    def __init__(self, command: tuple[str, ...], clock: Callable[[], float]) -> None:
        package_root = str(Path(__file__).resolve().parent.parent)
        path = os.pathsep.join(part for part in (package_root, os.environ.get("PYTHONPATH")) if part)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # jtop logs there; what matters comes as a line
            env={**os.environ, "PYTHONPATH": path},
        )
        self._clock = clock
        self.heard_at = clock()
        self.sample: JtopSample | None = None
        self.error: str | None = None
        self.is_over = False
        assert self._process.stdout is not None  # noqa: S101  a pipe, as asked for above
        self._thread = threading.Thread(target=self._listen, args=(self._process.stdout,), name="jtop", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Kill it: nothing in it needs an orderly end, and it may hang."""
        self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in the kernel, and is reaped when that lets go
            self._process.wait(END_S)
        self._thread.join(END_S)

    def _listen(self, lines: IO[bytes]) -> None:
        with lines:
            while line := lines.readline(MOST_LINE_BYTES):
                try:
                    self.sample, self.error = parse(json.loads(line))
                except (ValueError, TypeError, LookupError, AttributeError):
                    self.error = "jtop's process says what nobody understands"
                self.heard_at = self._clock()
        self.is_over = True


def parse(told: object) -> tuple[JtopSample | None, str | None]:
    """Take one line of the child apart: a sample, or an error in words. Anything else raises what it runs into."""
    if not isinstance(told, dict):
        raise TypeError(told)
    if "error" in told:
        return None, str(told["error"])[:200]
    load, rate, mode = told["gpu_load"], told["gpu_hz"], told["power_mode"]
    sample = JtopSample(
        gpu_load=None if load is None else float(load),
        gpu_hz=None if rate is None else int(rate),
        power_mode=None if mode is None else str(mode)[:40],
        fans={str(name)[:40]: float(speed) for name, speed in told["fans"].items() if speed is not None},
        lacks=tuple(str(thing)[:40] for thing in told["lacks"]),
    )
    return sample, None

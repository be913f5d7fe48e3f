"""What speakd and systemd know of each other: whether it is alive, how it ended before, what follows from that."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from daemon.crashes import STEADY_S, Crashes
from daemon.events import Status
from daemon.health import Health
from daemon.notify import Notifier

_LOG = logging.getLogger(__name__)

_MARGIN_S: Final = 20.0
"""Beyond an announced wait, for the voice to get warm."""


class Supervision:
    """Answers to systemd, where it started us. For the main thread."""

    def __init__(self, folder: Path, version: str) -> None:
        """`folder`: where systemd notes how speakd ended. Reads it."""
        self._notifier = Notifier()
        self._crashes = Crashes(folder, version)
        self._health: Health | None = None
        self._steady_at = math.inf

    @property
    def put_aside(self) -> str:
        """What must not compute voices, because it crashed again and again: nothing, 'int8' or 'trt'."""
        return self._crashes.put_aside

    @property
    def problem(self) -> str:
        """What was put aside, in words, or 'ok'."""
        return self._crashes.problem or "ok"

    def wait(self) -> None:
        """Let some time pass before starting where that has failed again and again; a signal ends the process."""
        pause_s, row = self._crashes.pause_s, self._crashes.in_a_row
        if pause_s:
            _LOG.warning("ended badly %d times in a row: starting in %.0f s", row, pause_s)
            self._notifier.status(f"failed {row} times in a row, waiting {pause_s:.0f} s")
            self._notifier.extend_start(pause_s + _MARGIN_S)
            threading.Event().wait(pause_s)

    def speaks_with(self, engine: str) -> None:
        """Note what computes the default voice, such as 'onnxruntime-cpu fp32': a crash from now on is its."""
        self._crashes.speaks_with(engine)

    def ready(self, parts: Mapping[str, Callable[[float], float]], *, limit_s: float) -> None:
        """Say that commands are served, and watch the `parts` from now on; see `Health`."""
        self._health = Health(self._notifier, parts, limit_s=limit_s)
        self._steady_at = time.monotonic() + STEADY_S if self._crashes.in_a_row else math.inf
        self._notifier.ready()

    @property
    def due(self) -> float:
        """The moment of `time.monotonic` for the next `check`."""
        return min(self._steady_at, self._health.due if self._health else math.inf)

    def check(self, now: float) -> None:
        """Do what is due: feed the watchdog, end a row of crashes."""
        if self._health is not None:
            self._health.check(now)
        if now >= self._steady_at:
            self._steady_at = math.inf
            self._crashes.steady()

    def tell(self, status: Status) -> None:
        """Have `systemctl status` show how things are."""
        told = (status.commands, status.audio, status.connection, status.journal, status.crashes)
        problems = [problem for problem in told if problem is not None and problem != "ok"]
        self._notifier.status("; ".join(problems) or f"{status.voice} on {status.backend}, sound to {status.output}")

    def stopping(self) -> None:
        """Say that the end has begun. Idempotent."""
        self._notifier.stopping()

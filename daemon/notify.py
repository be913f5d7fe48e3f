"""What systemd is told: ready, still alive, what it does (the protocol of sd_notify(3))."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Final

from device.errors import one_line

_LONGEST: Final = 200
"""Characters of a status line: `systemctl status` has one line for it."""


class Notifier:
    """Tells systemd, or nobody where none started us. For any thread; never blocks, raises nothing."""

    def __init__(self) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self.watchdog_s: Final = _watchdog_s()
        """How long systemd waits for a sign of life; None where it does not."""

    def ready(self) -> None:
        """Say that commands are served from now on."""
        self._tell("READY=1")

    def alive(self) -> None:
        """Say that all that must move has moved."""
        self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        """Say that the end has begun."""
        self._tell("STOPPING=1")

    def status(self, text: str) -> None:
        """Have `systemctl status` show it: one line."""
        self._tell(f"STATUS={one_line(text)[:_LONGEST]}")

    def extend_start(self, seconds: float) -> None:
        """Ask for so much more time to get ready."""
        self._tell(f"EXTEND_TIMEOUT_USEC={round(seconds * 1e6)}")

    def _tell(self, state: str) -> None:
        if not self._address:
            return
        # A systemd that is busy or gone: the next sign of life is as good as this one.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as opened:
            opened.settimeout(0)
            opened.sendto(state.encode(), self._address)


def _watchdog_s() -> float | None:
    """Give the limit that systemd set for this very process; None where it set none."""
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    try:
        limit = int(os.environ["WATCHDOG_USEC"]) / 1e6
    except (KeyError, ValueError):
        return None
    return limit if limit > 0 else None

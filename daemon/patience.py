"""How long a broker may take to answer that it takes us."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final

_CONNACK_S: Final = 5.0
"""For the broker to answer a CONNECT, which mosquitto does in milliseconds. paho alone would wait for `keepalive_s`:
amqtt 0.12, which speaks 3.1.1 only, never answers one of MQTT 5 that has a will, and does not hang up either."""


class Patience:
    """Hangs up where no answer comes in time. For paho's thread."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def begin(self, opened: socket.socket) -> None:
        """Wait for the answer on a connection that was just opened."""

        def hang_up() -> None:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)

        self._timer = threading.Timer(_CONNACK_S, hang_up)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Wait no more: it was answered, or is closed. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()

"""What is asked of the TCP connection below MQTT. On one that is closed nobody waits."""

from __future__ import annotations

import contextlib
import socket


def send_at_once(opened: socket.socket) -> None:
    """Have small packets leave without waiting for more."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def acknowledge_now(connected: object) -> None:
    """Acknowledge what has come in at once.

    Linux would wait for up to 40 ms, and a broker without TCP_NODELAY (mosquitto's default) holds the next command
    back for as long: it was 45 ms late whenever an event had gone out just before. Linux forgets the option.
    """
    if isinstance(connected, socket.socket):  # of TLS too
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def hang_up(connected: object) -> None:
    """End it without a goodbye. From any thread: whoever reads or writes meanwhile meets an OSError, or its end."""
    if isinstance(connected, socket.socket):
        with contextlib.suppress(OSError):
            # Of TLS the connection below: SSLSocket's own would first go on unencrypted, in the other thread.
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

"""What is asked of the connection to a broker."""

from __future__ import annotations

import socket
import ssl
from contextlib import closing, suppress

from daemon import broker_socket


def test_hanging_up_ends_a_connection() -> None:
    here, there = socket.socketpair()
    with closing(here), closing(there):
        broker_socket.hang_up(here)
        broker_socket.hang_up(here)
        assert (here.recv(1), there.recv(1)) == (b"", b"")


def test_hanging_up_leaves_the_encryption_to_the_thread_that_has_it() -> None:
    here, there = socket.socketpair()
    context = ssl.create_default_context()
    encrypted = context.wrap_socket(here, server_hostname="broker", do_handshake_on_connect=False)
    with closing(encrypted), closing(there):
        broker_socket.hang_up(encrypted)
        with suppress(OSError):  # a ValueError would end paho's thread
            assert encrypted.read(1) == b""

"""A TCP socket that listens; also at an address that this machine gets later, for the network may come late."""

from __future__ import annotations

import errno
import logging
import socket
from typing import Final

_LOG = logging.getLogger(__name__)

_IP_FREEBIND: Final = 15
"""ip(7): bind to an address that nobody has yet; for both families. The module socket does not name it."""


def listen(host: str, port: int) -> socket.socket:
    """Give a socket that listens at `host`, a name or an address. OSError where that cannot be.

    At an address that is not this machine's, which is told, it is heard as soon as it is.
    """
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listening = socket.socket(family, kind)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listening.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            _LOG.warning("%s is no address of this machine yet; it is listened at as soon as it is one", host)
            listening.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
            listening.bind(address)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening

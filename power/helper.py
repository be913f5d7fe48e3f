"""The root side of the governor: a program that does exact actions for one client at a time.

    python -m power.helper --group speakd --state /var/lib/speakd-power/state.json

Started by systemd with a socket, or with --socket. Whoever connects must be root or of the group. Everything is put
back when the client hangs up, when this program ends, and when it starts after it was killed. See `power.actions` for
what may be asked.
"""

from __future__ import annotations

import argparse
import grp
import logging
import os
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from power.actions import MOST_LINE_BYTES, parse
from power.actor import Actor
from power.errors import ActionError, BoardChangedError, PowerError, RefusedError

LISTEN_FD: Final = 3
"""Where systemd puts the first socket."""

IDLE_S: Final = 60.0
"""Started by systemd's socket and without a client for as long, it ends: the next client starts it again."""

_SO_PEERGROUPS: Final = 59
"""Linux 4.13; the module socket does not name it."""

_MOST_GROUPS: Final = 256

_LOG: Final = logging.getLogger("speakd.power")


class Helper:
    """Serves a socket until stopped. One thread, one client."""

    def __init__(self, actor: Actor, listener: socket.socket, *, group: int | None, idle_s: float | None) -> None:
        """`group`: who may ask, beside root. `idle_s`: end when there was no client for as long; None: never."""
        self._actor = actor
        self._listener = listener
        self._group = group
        self._idle_s = idle_s
        self._client: socket.socket | None = None
        self._pending = b""
        self._is_stopping = False
        self._waker, self._wake = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._waker, selectors.EVENT_READ, self._waker_reads)

    def stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """End `serve` soon; from a signal or any thread."""
        self._is_stopping = True
        self._wake.send(b"x")

    def serve(self) -> None:
        """Put back what a helper before us left, then do as asked until stopped; then put all back."""
        self._restore("at the start")
        while not self._is_stopping:
            ready = self._selector.select(None if self._client else self._idle_s)
            if not ready and self._client is None:
                break
            # The client first: one that comes back after a crash must not meet itself here.
            for key, _ in sorted(ready, key=lambda found: found[0].fileobj is self._listener):
                key.data()
        self._hang_up("at the end")
        self._selector.close()
        self._waker.close()
        self._wake.close()

    def _waker_reads(self) -> None:
        self._waker.recv(16)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        reason = self._objection(client)
        if reason is not None:
            _LOG.warning("refused a client: %s", reason)
            with client:
                client.settimeout(0)
                _answer(client, f"refused {reason}")
            return
        self._client, self._pending = client, b""
        client.settimeout(1.0)
        self._selector.register(client, selectors.EVENT_READ, self._read)

    def _objection(self, client: socket.socket) -> str | None:
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, uid, gid = struct.unpack("3i", credentials)
        try:
            packed = client.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MOST_GROUPS * 4)
        except OSError:  # more of them than fit
            packed = b""
        groups = {gid, *struct.unpack(f"{len(packed) // 4}I", packed)}
        if uid != 0 and (self._group is None or self._group not in groups):
            return f"process {pid} of user {uid} may not change this board's settings"
        if self._client is not None:
            return "another client is served"
        return None

    def _read(self) -> None:
        client = self._client
        if client is None:
            return
        try:
            received = client.recv(MOST_LINE_BYTES)
        except OSError:
            received = b""
        if not received:
            self._hang_up("its client has gone")
            return
        *lines, self._pending = (self._pending + received).split(b"\n")
        for line in lines:
            if not self._do(client, line):
                return
        if len(self._pending) > MOST_LINE_BYTES:
            self._hang_up("its client sends what is no line")

    def _do(self, client: socket.socket, line: bytes) -> bool:
        """Answer one line; false where the client is gone after it."""
        goes_on = True
        try:
            answer = f"ok {self._actor.do(parse(line))}"
        except (ActionError, RefusedError) as error:
            answer = f"refused {error}"
        except BoardChangedError as error:
            answer, goes_on = f"gone {error}", False
        except PowerError as error:
            answer = f"failed {error}"
        if not answer.startswith("ok"):
            _LOG.warning("%s", answer)
        if not _answer(client, answer) or not goes_on:
            self._hang_up("its client takes no answer" if goes_on else "the board has changed")
            return False
        return True

    def _hang_up(self, why: str) -> None:
        client, self._client = self._client, None
        if client is not None:
            self._selector.unregister(client)
            client.close()
        self._restore(why)

    def _restore(self, why: str) -> None:
        for problem in self._actor.restore():
            _LOG.error("not put back (%s): %s", why, problem)


def _answer(client: socket.socket, text: str) -> bool:
    """Send one line; false where the other side does not take it."""
    try:
        client.sendall(" ".join(text.split()).encode("utf-8", "replace")[:500] + b"\n")
    except OSError:
        return False
    return True


def _listener(path: Path | None) -> socket.socket:
    """Open a socket of our own, or take the one that systemd has opened."""
    if path is None:
        if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
            raise SystemExit("power.helper: give --socket PATH, or start speakd-power.socket of systemd")
        return socket.socket(fileno=LISTEN_FD)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    new = path.with_name(path.name + ".new")  # under its own name once it listens
    new.unlink(missing_ok=True)
    listener.bind(str(new))
    listener.listen(4)
    new.replace(path)
    return listener


def _group(name: str | None) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid if name else None
    except KeyError:
        raise SystemExit(f"power.helper: there is no group {name}: run systemd-sysusers, or groupadd") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser("power.helper", description="Changes a board's clocks and power mode for speakd.")
    parser.add_argument("--socket", type=Path, help="listen here, instead of on systemd's socket")
    parser.add_argument("--group", help="who may ask, beside root")
    parser.add_argument("--state", type=Path, default=Path("/var/lib/speakd-power/state.json"), help="the old values")
    parser.add_argument("--root", type=Path, default=Path("/"), help="what every path of the board starts with")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    group = _group(options.group)
    actor = Actor(options.root, options.state)
    helper = Helper(actor, _listener(options.socket), group=group, idle_s=None if options.socket else IDLE_S)
    signal.signal(signal.SIGTERM, helper.stop)
    signal.signal(signal.SIGINT, helper.stop)
    helper.serve()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

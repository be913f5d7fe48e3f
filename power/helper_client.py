"""The daemon's side of the root helper."""

from __future__ import annotations

import contextlib
import select
import socket
from pathlib import Path
from typing import Final

from power.actions import Action, Restore, SetPowerMode, line_of
from power.board import Board, read_board
from power.errors import HelperError, NvpmodelError, RefusedError, StateError
from power.nvpmodel import TIME_LIMIT_S

SOCKET: Final = Path("/run/speakd-power.sock")

ANSWER_S: Final = 5.0
"""For an action that writes files. The first may have to wait until systemd has started the helper."""

CHANGE_S: Final = ANSWER_S + 4 * TIME_LIMIT_S
"""For one that runs nvpmodel, up to twice to change and twice to see what is so. Else its time-out would be told as
the helper's."""

_MOST_ANSWER_BYTES: Final = 600


class HelperClient:
    """Asks the helper, over a connection that it keeps: the helper puts everything back when that ends.

    For one thread. Connects when first asked, and again after a failure.
    """

    def __init__(self, path: Path = SOCKET, root: Path = Path("/")) -> None:
        """`path` of the helper's socket; `root` is what every path of the board starts with."""
        self._path = path
        self._root = root
        self._socket: socket.socket | None = None
        self._board: Board | None = None

    @property
    def board(self) -> Board:
        """What the board offers, as it was before the first action. HelperError without a helper."""
        if self._board is None:
            self._connect()
            # The helper answers when all that a client before us changed is put back: only then is it what was found.
            with contextlib.suppress(StateError):  # what cannot be put back is the helper's to log
                self._ask(Restore())
            self._board = read_board(self._root)
        return self._board

    def do(self, action: Action) -> str:
        """Have it done, and give what reads back.

        RefusedError where the helper does not do it, NvpmodelError or StateError where it failed, HelperError where
        there is no helper or it has gone: then everything is as it was before.
        """
        if self._socket is None:
            _ = self.board
        return self._ask(action)

    def is_lost(self) -> bool:
        """Tell whether the helper has hung up since it was last asked, and so has put everything back."""
        if self._socket is None:
            return False
        hung_up = select.poll()
        hung_up.register(self._socket, select.POLLIN)  # it says nothing unasked
        if not hung_up.poll(0):
            return False
        self.close()
        return True

    def close(self) -> None:
        """Hang up. Idempotent."""
        connection, self._socket, self._board = self._socket, None, None
        if connection is not None:
            connection.close()

    def _connect(self) -> None:
        self.close()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(ANSWER_S)
            connection.connect(str(self._path))
        except OSError as error:
            connection.close()
            raise HelperError(f"cannot be reached: {self._path}: {error.strerror or error}") from error
        self._socket = connection

    def _ask(self, action: Action) -> str:
        word, _, text = self._answer(action).partition(" ")
        if word == "ok":
            return text
        if word == "refused":
            if self._board is None:  # before the first action, it refuses us, not what we ask
                self.close()
                raise HelperError(f"does not serve us: {text}")
            raise RefusedError(text)
        if word == "gone":
            self.close()
            raise HelperError(f"hangs up: {text}")
        if word != "failed":
            self.close()
            raise HelperError(f"says what nobody understands: {word[:20]!r}")
        raise NvpmodelError(text) if isinstance(action, SetPowerMode) else StateError(text)

    def _answer(self, action: Action) -> str:
        connection = self._socket
        if connection is None:
            raise HelperError("has gone")
        connection.settimeout(CHANGE_S if isinstance(action, (SetPowerMode, Restore)) else ANSWER_S)
        try:
            with contextlib.suppress(BrokenPipeError):  # it may have said why, and hung up
                connection.sendall(line_of(action))
            answer = b""
            while not answer.endswith(b"\n"):
                received = connection.recv(_MOST_ANSWER_BYTES)
                answer += received
                if not received or len(answer) > _MOST_ANSWER_BYTES:
                    raise ConnectionError("it has gone")
        except OSError as error:
            self.close()
            raise HelperError(f"does not answer: {error}") from error
        return answer.decode("utf-8", "replace").rstrip("\n")

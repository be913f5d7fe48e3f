"""The root helper as systemd would run it, on a copied board: a process of its own, with its socket and state file."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final

_START_S: Final = 20.0


class PowerHelper:
    """Runs from entering the block to leaving it."""

    def __init__(self, folder: Path, root: Path) -> None:
        """`root` is what every path of the board starts with."""
        folder.mkdir(parents=True, exist_ok=True)
        self.socket: Final = folder / "power.sock"
        self._command: Final = [
            *(sys.executable, "-m", "power.helper"),
            *("--socket", str(self.socket), "--state", str(folder / "state.json"), "--root", str(root)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PowerHelper:  # noqa: PYI034  typing.Self is of Python 3.11
        self._process = subprocess.Popen(self._command)
        deadline = time.monotonic() + _START_S
        while not self.socket.exists():
            assert self._process.poll() is None, "the helper ended"
            assert time.monotonic() < deadline, "the helper does not listen"
            select.select([], [], [], 0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_START_S)

"""The root helper as a process of its own, over its real socket, with a kernel that minds the order of writes.

    with HelperProcess(tree) as helper:
        client = HelperClient(helper.socket, tree.root)
        ...
        helper.writes()     # [("sys/.../min_freq", "306000000"), ...], in order
        helper.kill()       # as SIGKILL does; `start` again

A copied tree takes every value. The kernel does not: a lower limit above the upper one is refused, whichever of the two
was written. So this process refuses it too, and notes each write. It waits less between its attempts to restore.
"""

from __future__ import annotations

import errno
import grp
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final

from simulators.board_parts import BoardTree

TIME_LIMIT_S: Final = 60.0

_ROOT: Final = Path(__file__).parents[2]

_PARTNERS: Final = {
    "min_freq": "max_freq",
    "max_freq": "min_freq",
    "scaling_min_freq": "scaling_max_freq",
    "scaling_max_freq": "scaling_min_freq",
}


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait until something outside this process is so; AssertionError after TIME_LIMIT_S."""
    never = threading.Event()
    deadline = time.monotonic() + TIME_LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"still not: {what}"
        never.wait(0.01)


def own_group() -> str:
    """Name the group that this process runs as."""
    return grp.getgrgid(os.getegid()).gr_name


class HelperProcess:
    """`python -m power.helper` from entering the block to leaving it."""

    def __init__(self, tree: BoardTree, *, group: str | None = None) -> None:
        """`group`: who may ask, beside root; the tests' own where they do not run as root."""
        folder = tree.root.parent
        self.socket: Final = folder / "power.sock"
        self.state: Final = folder / "state.json"
        self._tree = tree
        self._log = folder / "writes.jsonl"
        self._stderr = folder / "helper.log"
        self._arguments = ("--group", group or own_group()) if group or os.geteuid() else ()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> HelperProcess:  # noqa: PYI034  typing.Self is of Python 3.11
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is not None:
            sys.stderr.write(self.log())

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.socket.unlink(missing_ok=True)
        options = ["--socket", self.socket, "--state", self.state, "--root", self._tree.root, *self._arguments]
        command = [sys.executable, "-m", "simulators.power_helper", self._log, *options]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "tests")])}
        with self._stderr.open("ab") as log:
            self._process = subprocess.Popen(command, stderr=log, env=environment)
        wait_until(lambda: self.socket.exists() or self._has_ended(), "the helper listens")
        assert not self._has_ended(), self.log()

    def stop(self) -> int | None:
        """End it in order; gives its exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def writes(self) -> list[tuple[str, str]]:
        """Give what was written so far: paths within the tree, and the texts."""
        lines = self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []
        return [(path, text) for path, text in map(json.loads, lines)]

    def forget_writes(self) -> None:
        """Begin `writes` anew."""
        self._log.unlink(missing_ok=True)

    def log(self) -> str:
        """Give what it said."""
        return self._stderr.read_text(encoding="utf-8")

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _end(self, how: signal.Signals) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        process.send_signal(how)
        return process.wait(TIME_LIMIT_S)


def _run(log: Path, arguments: list[str]) -> int:
    """Be the helper, on a kernel that minds."""
    from power import actor, helper, sysfs  # noqa: PLC0415  in the process that is the helper only

    root = Path(arguments[arguments.index("--root") + 1])
    write = sysfs.write

    def mind(path: Path, text: str) -> None:
        partner = _PARTNERS.get(path.name)
        if partner is not None:
            other = int(path.with_name(partner).read_text())
            low, high = (int(text), other) if "min" in path.name else (other, int(text))
            if low > high:
                raise OSError(errno.EINVAL, "Invalid argument")
        write(path, text)
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps([str(path.resolve().relative_to(root.resolve())), text]) + "\n")

    sysfs.write = mind
    actor.RESTORE_WAITS_S = (0.05, 0.1)
    return helper.main(arguments)


if __name__ == "__main__":
    raise SystemExit(_run(Path(sys.argv[1]), sys.argv[2:]))

"""A sink that fails on demand, which no real one does."""

from __future__ import annotations

import threading
from typing import Final

from device.errors import SinkError
from device.format import Samples
from device.null import NullSink

GATE_TIMEOUT_S: Final = 30.0


class FaultySink(NullSink):
    """The real null sink, with faults at will and a list of what was called."""

    def __init__(self, *, paced: bool = False) -> None:
        super().__init__(paced=paced)
        self.calls: list[str] = []
        self.fail: set[str] = set()
        """Methods that raise until taken out again."""
        self.written = threading.Semaphore(0)
        """Released as each `write` begins."""
        self.gate: threading.Event | None = None
        """Where set, each `write` waits for it once it has begun."""

    def open(self) -> None:
        self._do("open")
        super().open()

    def check(self) -> None:
        if "check" in self.fail:
            self._do("check")
        super().check()

    def write(self, samples: Samples) -> None:
        self.written.release()
        if self.gate is not None:
            self.gate.wait(GATE_TIMEOUT_S)
        self._do("write")
        super().write(samples)

    def drain(self) -> None:
        self._do("drain")
        super().drain()

    def drop(self) -> None:
        self._do("drop")
        super().drop()

    def close(self) -> None:
        self.calls.append("close")
        super().close()

    def _do(self, what: str) -> None:
        self.calls.append(what)
        if what in self.fail:
            raise SinkError("faulty", f"{what} failed")

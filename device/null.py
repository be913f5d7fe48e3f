"""A loudspeaker that is not there but keeps its time."""

from __future__ import annotations

import threading
import time
from typing import Final

from device.errors import SinkError
from device.format import PERIOD, RATE, Samples, seconds

BUFFER: Final = 6 * PERIOD
"""Frames. As deep as the buffer `device.alsa` asks of a card, so that its writer sees the same pace."""


class NullSink:
    """A `Sink` that takes frames at the pace of a sound card, or at once where `paced` is false, and forgets them.

    `frames` counts what was taken. `underruns` counts the times the clock ran dry between two writes with no drain,
    drop or open in between: a listener would have heard a gap.
    """

    def __init__(self, *, paced: bool = True) -> None:
        self.frames = 0
        self.underruns = 0
        self._paced = paced
        self._open = False
        self._silent_at: float | None = None  # monotonic time at which the last frame will have been played

    @property
    def description(self) -> str:
        """'null'."""
        return "null"

    @property
    def pending(self) -> int:
        """See `Sink.pending`."""
        silent_at = self._silent_at
        return 0 if silent_at is None else max(0, round((silent_at - time.monotonic()) * RATE))

    @property
    def period(self) -> int:
        """See `Sink.period`. It is exact to the frame."""
        return 0

    def open(self) -> None:
        """See `Sink.open`."""
        self._open = True

    def check(self) -> None:
        """See `Sink.check`."""
        self._refuse_closed()

    def write(self, samples: Samples) -> None:
        """See `Sink.write`."""
        self._refuse_closed()
        self.frames += len(samples)
        if not self._paced or not len(samples):
            return
        now = time.monotonic()
        if self._silent_at is None or self._silent_at < now:
            self.underruns += self._silent_at is not None
            self._silent_at = now
        self._silent_at += seconds(len(samples))
        _wait_until(self._silent_at - seconds(BUFFER))

    def drain(self) -> None:
        """See `Sink.drain`."""
        self._refuse_closed()
        if self._silent_at is not None:
            _wait_until(self._silent_at)
        self._silent_at = None

    def drop(self) -> None:
        """See `Sink.drop`."""
        self._refuse_closed()
        self._silent_at = None

    def close(self) -> None:
        """See `Sink.close`."""
        self._open = False
        self._silent_at = None

    def _refuse_closed(self) -> None:
        if not self._open:
            raise SinkError(self.description, "is not open")


def _wait_until(moment: float) -> None:
    never = threading.Event()
    while (left := moment - time.monotonic()) > 0:
        never.wait(left)

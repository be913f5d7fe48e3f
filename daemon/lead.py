"""How much sound is kept ahead of what is heard: little, so that what is stopped is silent soon, but enough."""

from __future__ import annotations

import threading
import time
from typing import Final

from device.format import PERIOD, RATE, seconds
from device.sink import Sink

_LATE: Final = PERIOD // 2
"""Frames that are left ahead, 10 ms, when a wake-up came too late; with the least lead 20 ms should be."""

_MOST: Final = RATE * 80 // 1000
"""Frames. On two cores with a load of nine, of which the engine was two, PulseAudio was up to 30 ms late: with 40 ms
ahead there were 30 gaps in four texts, with 60 ms one, with 80 ms none. So the lead grows where it has to."""

_EASE: Final = 2 * RATE
"""Frames of speech without trouble after which the lead shrinks again by a piece, down to what was asked for: it is
the engine that is in the way, and it is soon done."""

_STUCK_S: Final = 1.0
"""Without any of what is ahead being played the wait for room ends: the sink's own `write` then knows what is wrong."""


class Lead:
    """Paces whoever writes to a sink. For the player's thread."""

    def __init__(self, sink: Sink, lead_s: float, stopping: threading.Event) -> None:
        """`lead_s`: the least; `stopping` ends every wait."""
        self._sink = sink
        self._stopping = stopping
        self._wanted = self._least = self._lead = round(lead_s * RATE)
        self._untroubled = 0  # frames written since the lead had to grow
        self._paced = False

    def begin(self) -> None:
        """Take note of a sink that may have been opened anew: one that plays in long periods needs two of them."""
        self._least = max(self._wanted, 2 * self._sink.period)
        self._lead = max(self._lead, self._least)

    def wait(self, frames: int, stopped: threading.Event) -> None:
        """Wait until there is room for `frames` more, or somebody stops it."""
        before, since = self._sink.pending, time.monotonic()
        while not stopped.is_set() and not self._stopping.is_set():
            pending = self._sink.pending
            if pending + frames <= self._lead or time.monotonic() - since > _STUCK_S:
                return
            if pending < before:
                before, since = pending, time.monotonic()
            stopped.wait(seconds(pending + frames - self._lead))

    def adapt(self, spoken: int) -> int:
        """Keep more ahead from now on where, `spoken` frames into speech, we come so late that hardly any was left.

        Gives the frames that are ahead now.
        """
        pending = self._sink.pending
        self._paced = self._paced or pending > 0
        if self._paced and spoken > self._lead and pending < _LATE:
            self._untroubled = 0
            self._lead = max(self._lead, min(max(_MOST, self._least), self._lead + PERIOD))
        return pending

    def ease(self, frames: int) -> None:
        """Take note of `frames` that were written."""
        self._untroubled += frames
        if self._untroubled > _EASE and self._lead > self._least:
            self._untroubled = 0
            self._lead = max(self._least, self._lead - PERIOD)

"""What windows really take, held against what was measured of them once.

A voice's speed is measured when it is imported. The device may have been busy just then; it may be hotter since, or in
another power mode; and where a GPU failed, the CPU has taken over. The next window would be late, or the first sound.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from engines.windows import Speed

_REMEMBERED: Final = 8
"""Windows, those of some three sentences. The quickest of them counts, as in a measurement: other processes only ever
make one slower."""

_TOLERANCE: Final = 2.0
"""Factor by which they may differ from what was measured before that is not believed any more: on a machine with
nothing else to do, the quickest of eight, of 33 to 354 frames, took 0.63 to 0.93 of it."""

_UNNOTICED_S: Final = 0.005
"""By which a window may differ in any case: nobody hears it, and a scheduler alone makes as much of a small one."""


class Pace:
    """How quick the last windows of one voice were. One thread uses it."""

    def __init__(self) -> None:
        self._shares: deque[float] = deque(maxlen=_REMEMBERED)

    def note(self, measured: Speed, frames: int, took_s: float) -> None:
        """Take notice of a window of so many latent frames, margins included."""
        expected_s = measured.overhead_s + measured.frame_s * frames
        self._shares.append(took_s / expected_s if abs(took_s - expected_s) > _UNNOTICED_S else 1.0)

    def corrected(self, measured: Speed) -> Speed:
        """Give the speed that the last windows had, or what was measured where they had about that.

        One window shows that the device is quicker; that it is slower, only all of the last few.
        """
        share = min(self._shares, default=1.0)
        slower = share > _TOLERANCE and len(self._shares) == _REMEMBERED
        if slower or share < 1 / _TOLERANCE:
            return Speed(measured.overhead_s * share, measured.frame_s * share)
        return measured

"""Gains that move and edges that do not click: all that is done to samples on their way to the loudspeaker."""

from __future__ import annotations

from typing import Final

import numpy as np

from device.format import RATE, Samples
from device.limiter import NOTHING, Limiter

FADE: Final = RATE // 200
"""Frames of a fade, 5 ms: the shortest in which speech ends without a click."""

_STEP: Final = 0.01
"""A jump to or from silence that may be heard as a click. Of 96 utterances of the default voice none began above 0.008
or ended above 0.00003, and each has steps of 0.05 within: speech keeps every sample. A sound that begins or ends with
a jump gets a ramp of `FADE` frames added before or behind."""


class Fader:
    """Owns the gain as it is now, and the last sample. For one thread; nothing is allocated after the first."""

    def __init__(self, largest: int) -> None:
        """`largest`: frames that it is given at most, `FADE` or more."""
        self.gain = 1.0
        """What the last sample had; whoever begins anew sets it."""
        self.last = 0.0
        """The sample given last; 0 after silence."""
        self._limiter = Limiter()
        self._ramp: Samples = np.arange(1, largest + 1, dtype=np.float32)
        self._scaled: Samples = np.empty(largest, np.float32)

    def reset(self) -> None:
        """Forget the peaks of before."""
        self._limiter.reset()

    def apply(self, samples: Samples, gain: float, ahead: Samples = NOTHING) -> Samples:
        """Give the memory itself where the gain is and stays 1, else a copy that is valid until the next call.

        The gain is `gain` by the last sample. `ahead`: what follows, so that the gain is down before a peak comes.
        Peaks are limited, in place.
        """
        if self.gain != 1 or gain != 1:
            samples = self._scale(samples, gain)
        self._limiter.limit(samples, ahead, gain)
        self.last = float(samples[-1])
        return samples

    def ramp(self, to: float) -> Samples | None:
        """Give what leads from the last sample to one that would be a jump; None where it would be none.

        Valid until the next call. It is taken for given.
        """
        step = min(max(to, -1.0), 1.0) - self.last
        if abs(step) <= _STEP:
            return None
        ramp = self._scaled[:FADE]
        np.multiply(self._ramp[:FADE], step / FADE, out=ramp)
        np.add(ramp, self.last, out=ramp)
        self.last += step
        return ramp

    def _scale(self, samples: Samples, gain: float) -> Samples:
        scaled = self._scaled[: samples.size]
        np.multiply(self._ramp[: samples.size], (gain - self.gain) / samples.size, out=scaled)
        np.add(scaled, self.gain, out=scaled)
        np.multiply(scaled, samples, out=scaled)
        self.gain = gain
        return scaled

"""Peaks held below a ceiling, between the samples too, by a gain that falls before them and recovers after them.

True peaks as ITU-R BS.1770-4, Annex 2, has them: of the signal at four times its rate. The gain is the least that each
of the next 5 ms allows, rising again no faster than by a fixed slope, and then averaged over 5 ms, so that it moves
without a corner and is down in time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from device.format import PERIOD, RATE, Samples

CEILING_DBTP: Final = -1.0
"""What EBU R 128 allows: lossy coders and cheap converters overshoot by up to that much."""

_CEILING: Final = np.float32(10 ** ((CEILING_DBTP - 0.1) / 20))
"""A tenth of a decibel less, for what four times the rate does not see and the moving gain adds. Measured at eight
times the rate: speech that would peak at +3.7 dBTP comes out at -1.10, at +15.7 dBTP at -1.08, a square wave at -0.99;
only white noise up to 24 kHz, beyond what the interpolator's few taps pass, goes 1 dB over."""

_LEAST_SUSPECT: Final = np.float32(_CEILING / 2)
"""Samples below this cannot belong to a peak above the ceiling: between two samples of speech the wave rises by less
than 2.5 dB where it holds nothing above 11 kHz, and 6 dB take a tone at 16 kHz. Most pieces end here."""

_TAPS: Final = 12
"""Of each of the interpolator's phases, as many as Annex 2 has."""

_HALF: Final = _TAPS // 2
_PHASES: Final = 4

ATTACK: Final = RATE // 200
"""Frames, 5 ms, over which the gain falls: shorter attacks are heard as a rasp on low voices."""

AHEAD: Final = ATTACK + _HALF
"""Frames that `Limiter.limit` wants to see of what follows."""

LONGEST: Final = PERIOD
"""Frames that `Limiter.limit` takes at a time."""

_SLOPE: Final = 0.5 / (RATE // 10)
"""Recovery of the gain per frame: 6 dB take 100 ms, so that it moves by less than 0.5 dB in a period of a low voice."""

NOTHING: Final[Samples] = np.empty(0, np.float32)


def _interpolator() -> NDArray[np.float32]:
    """Give the taps of the phases between two samples, [3, taps]: a sinc under a Kaiser window."""
    phases = np.arange(1, _PHASES)[:, None] / _PHASES
    distance = np.arange(_TAPS)[None, :] - (_HALF - 1) - phases
    window = np.i0(5.0 * np.sqrt(np.clip(1 - (distance / _HALF) ** 2, 0, None))) / np.i0(5.0)
    taps = np.sinc(distance) * window
    interpolator: NDArray[np.float32] = (taps / taps.sum(axis=1, keepdims=True)).astype(np.float32)
    return interpolator


class Limiter:
    """Limits one signal, piece by piece, where it lies. For one thread; allocates its memory for samples once.

    What stays below the ceiling is not touched, to the bit. Per piece of 20 ms it
    takes 0.012 ms where nothing comes near the ceiling, 0.27 ms where something does (one core of a busy x86 machine).
    """

    def __init__(self) -> None:
        size = _HALF + LONGEST + AHEAD
        self._taps = _interpolator()
        self._signal = np.zeros(size, np.float32)  # what was before, the piece, what follows
        self._peaks, self._between, self._product = (np.zeros(size, np.float32) for _ in range(3))
        self._least, self._spare = (np.ones(LONGEST + ATTACK, np.float32) for _ in range(2))
        self._slope = np.arange(LONGEST + 1) * _SLOPE
        self._rising = np.ones(LONGEST + 1)
        self._gains = np.ones(ATTACK + LONGEST)  # not averaged yet: those of the last `ATTACK` frames, and the piece's
        self._sums = np.zeros(ATTACK + LONGEST + 1)
        self._gain = np.ones(LONGEST, np.float32)
        self.reset()

    def reset(self) -> None:
        """Begin another signal."""
        self._signal[:_HALF] = 0
        self._gains[:ATTACK] = 1
        self._resting = True

    def limit(self, samples: Samples, ahead: Samples = NOTHING, ahead_gain: float = 1.0) -> None:
        """Limit up to `LONGEST` frames in place. `ahead`: what follows, as far as it is known, times `ahead_gain`.

        Where nothing is known of what follows, a peak in it may make the gain fall at once when it comes.
        """
        count = samples.size
        if not count:
            return
        ahead = ahead[:AHEAD]
        end = _HALF + count
        self._signal[_HALF:end] = samples
        np.multiply(ahead, np.float32(ahead_gain), out=self._signal[end : end + ahead.size])
        self._signal[end + ahead.size : end + AHEAD] = 0
        if not (self._resting and self._harmless(end + ahead.size)):
            self._limit(samples, count)
        self._signal[:_HALF] = self._signal[count:end]

    def limit_all(self, samples: Samples) -> None:
        """Limit any number of frames in place, each piece in sight of the next."""
        for start in range(0, samples.size, LONGEST):
            end = min(start + LONGEST, samples.size)
            self.limit(samples[start:end], samples[end : end + AHEAD])

    def _limit(self, samples: Samples, count: int) -> None:
        allowed = self._allowed(count)
        self._find_gains(allowed, count)
        gains = self._gains[: ATTACK + count]
        self._resting = bool(gains.min() == 1)
        if not self._resting:
            gain = self._average(count)
            if (gain > allowed[:count]).any():  # a peak that nobody could see coming
                np.minimum(gains[:ATTACK], gains[ATTACK], out=gains[:ATTACK])
                gain = self._average(count)
            np.multiply(samples, gain, out=samples)
        self._sums[:ATTACK] = gains[count:]
        gains[:ATTACK] = self._sums[:ATTACK]

    def _harmless(self, end: int) -> bool:
        part = self._signal[:end]
        return bool(part.max() < _LEAST_SUSPECT and part.min() > -_LEAST_SUSPECT)

    def _allowed(self, count: int) -> NDArray[np.float32]:
        """Give the gain that each frame of the piece, and of the `ATTACK` after it, allows."""
        frames = count + ATTACK
        peaks, between, product = self._peaks[: frames + 1], self._between[: frames + 1], self._product[: frames + 1]
        peaks.fill(0)
        for taps in self._taps:
            between.fill(0)
            for tap, weight in enumerate(taps):
                np.multiply(self._signal[tap : tap + frames + 1], weight, out=product)
                np.add(between, product, out=between)
            np.abs(between, out=between)
            np.maximum(peaks, between, out=peaks)
        allowed = product[:frames]  # not needed any more
        np.maximum(peaks[:-1], peaks[1:], out=allowed)
        np.abs(self._signal[_HALF : _HALF + frames], out=between[:frames])
        np.maximum(allowed, between[:frames], out=allowed)
        np.maximum(allowed, _CEILING, out=allowed)
        np.divide(_CEILING, allowed, out=allowed)
        return allowed

    def _find_gains(self, allowed: NDArray[np.float32], count: int) -> None:
        """Put the piece's gains behind those before it: the least within reach, rising along the slope."""
        least, spare = self._least[: allowed.size], self._spare[: allowed.size]
        least[:] = allowed
        width = 1
        while width <= ATTACK:  # each step's window is twice the last one's, the last step's what is left
            shift = min(width, ATTACK + 1 - width)
            reach = least.size - shift
            np.minimum(least[:reach], least[shift:], out=spare[:reach])
            least, spare = spare[:reach], least[:reach]
            width += shift
        rising, slope = self._rising[: count + 1], self._slope[: count + 1]
        rising[0] = self._gains[ATTACK - 1]
        rising[1:] = least[:count]
        np.subtract(rising, slope, out=rising)
        risen = self._sums[: count + 1]
        np.minimum.accumulate(rising, out=risen)
        np.add(risen, slope, out=risen)
        np.minimum(risen[1:], 1, out=self._gains[ATTACK : ATTACK + count])
        if self._gains[ATTACK - 1] == 1 and allowed.min() == 1:
            self._gains[ATTACK : ATTACK + count] = 1  # exactly, whatever the sums above have made of it

    def _average(self, count: int) -> NDArray[np.float32]:
        """Give for each frame the mean of the last `ATTACK` gains, its own among them."""
        sums = self._sums[: ATTACK + count + 1]
        np.cumsum(self._gains[: ATTACK + count], out=sums[1:])
        mean = self._rising[:count]
        np.subtract(sums[ATTACK + 1 :], sums[1 : count + 1], out=mean)
        np.divide(mean, ATTACK, out=mean)
        np.minimum(mean, 1, out=mean)
        gain = self._gain[:count]
        gain[:] = mean
        return gain

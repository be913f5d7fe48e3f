"""What a card takes: its rate, channels and sample format, and speech made into that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from device.format import CHANNELS, PERIOD, RATE, Samples
from device.resampler import Resampler

_FORMATS: Final = {
    "FLOAT_LE": ("<f4", 4, 0),
    "S32_LE": ("<i4", 4, 2**31),
    "S24_LE": ("<i4", 4, 2**23),
    "S24_3LE": ("<i4", 3, 2**23),
    "S16_LE": ("<i2", 2, 2**15),
}
"""ALSA's name -> numpy's, the bytes of a sample, the first ones of numpy's, and what 1.0 is in it; best first."""

_RATES: Final = (48_000, 96_000, 192_000, 44_100, 88_200, 32_000, 24_000, 22_050, 16_000, 11_025, 8_000)
"""Hertz, best first: those that lose nothing, then by what they leave of speech."""

_CHANNELS: Final = (1, 2, 4, 6, 8)
_MOST_CHANNELS: Final = 64

_LARGEST_FLOAT_BELOW: Final = np.nextafter(np.float32(1), np.float32(0))
"""The most that fits all integer formats: 1.0 itself would be one more than the largest integer."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How frames lie in the memory that a card is given."""

    rate: int = RATE
    channels: int = CHANNELS
    form: str = "FLOAT_LE"
    """ALSA's name of the sample format."""

    @property
    def frame_bytes(self) -> int:
        """Of one sample of each channel."""
        return _FORMATS[self.form][1] * self.channels

    def __str__(self) -> str:
        """For people."""
        channels = "mono" if self.channels == 1 else f"{self.channels} channels"
        return f"{self.rate} Hz, {'float32' if self.form == 'FLOAT_LE' else self.form}, {channels}"


OURS: Final = Layout()
"""As speech is: such a card reads the engine's own memory."""


def candidates(forms: Iterable[str], rates: tuple[int, int], channels: int) -> Iterator[Layout]:
    """Yield the layouts worth trying on a card that says it takes these formats and rates from, to; best first.

    `channels`: how many it came out with when it was asked for another layout. Nobody can be asked for more: alsa-lib's
    own plugins name 10,000 channels and four billion rates, which the binding would try one by one.
    """
    counts = _CHANNELS if channels in _CHANNELS or channels > _MOST_CHANNELS else (*_CHANNELS, channels)
    usable_rates = [rate for rate in _RATES if rates[0] <= rate <= rates[1]]
    usable_forms = [form for form in _FORMATS if form in set(forms)]
    for rate, count, form in product(usable_rates, counts, usable_forms):
        if Layout(rate, count, form) != OURS:
            yield Layout(rate, count, form)


class Converter:
    """Makes speech into a card's layout, in memory allocated once; only another rate allocates. For one thread.

    Every channel gets the same: whichever has a loudspeaker then speaks.
    """

    def __init__(self, layout: Layout) -> None:
        name, self._bytes, self._full_scale = _FORMATS[layout.form]
        self._floats: Samples = np.empty(PERIOD, np.float32)
        self._wide: NDArray[np.float64] = np.empty(PERIOD, np.float64)  # float32 is too coarse for 32 bits
        self._frames: NDArray[np.generic] = np.empty((PERIOD, layout.channels), name)
        self._packed: NDArray[np.uint8] = np.empty((PERIOD * layout.channels, self._bytes), np.uint8)
        self._resampler = Resampler(layout.rate) if layout.rate != RATE else None

    def pieces(self, samples: Samples) -> Iterator[memoryview]:
        """Yield the bytes for the card, a piece at a time; each is valid until the next."""
        yield from self._convert(samples if self._resampler is None else self._resampler.more(samples))

    def rest(self) -> Iterator[memoryview]:
        """Yield what another rate still keeps back at a sound's end."""
        if self._resampler is not None:
            yield from self._convert(self._resampler.rest())

    def forget(self) -> None:
        """Forget what another rate keeps back."""
        if self._resampler is not None:
            self._resampler.forget()

    def _convert(self, samples: Samples) -> Iterator[memoryview]:
        for start in range(0, len(samples), PERIOD):
            piece = samples[start : start + PERIOD]
            frames = self._frames[: len(piece)]
            if self._full_scale:
                floats, wide = self._floats[: len(piece)], self._wide[: len(piece)]
                np.clip(piece, -1, _LARGEST_FLOAT_BELOW, out=floats)
                np.nan_to_num(floats, copy=False)  # casting NaN is undefined
                np.rint(np.multiply(floats, self._full_scale, out=wide), out=wide)
                np.minimum(wide, self._full_scale - 1, out=wide)
                np.copyto(frames, wide[:, np.newaxis], casting="unsafe")
            else:
                np.copyto(frames, piece[:, np.newaxis])
            yield frames.data.cast("B") if self._bytes == frames.itemsize else self._pack(frames)

    def _pack(self, frames: NDArray[np.generic]) -> memoryview:
        """Leave out the last bytes of each sample."""
        packed = self._packed[: frames.size]
        packed[:] = frames.reshape(-1, 1).view(np.uint8)[:, : self._bytes]
        return packed.data.cast("B")

"""From a voice's own rate to 48 kHz: block sizes and the filter, shared by the graph and the schedule."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from device.format import PERIOD, RATE
from engines.errors import GraphError

HALF_TAPS: Final = 48
"""Input samples that the filter reaches to either side; its cost stays under 1 % of the vocoder's."""

_KAISER_BETA: Final = 10.0
"""Stop band at -100 dB (Kaiser, 'Nonrecursive digital filter design', 1974)."""

_CUTOFF: Final = 0.95
"""Middle of the transition band, which is 0.88 to 1.02 of the lower Nyquist frequency with these taps."""

_LARGEST_BLOCK: Final = 320
"""Output samples that one row of the product gives: the filter bank stays below 400 kB."""


def block_size(rate: int) -> tuple[int, int]:
    """Give the block for a voice of `rate` hertz: (input samples, output samples).

    A whole number of blocks makes one period. GraphError for a rate where none does.
    """
    for out in range(_LARGEST_BLOCK, 0, -1):
        if PERIOD % out == 0 and out * rate % RATE == 0:
            return out * rate // RATE, out
    raise GraphError(f"a voice of {rate} Hz does not divide into periods of {PERIOD * 1000 // RATE} ms at {RATE} Hz")


def filter_bank(rate: int) -> NDArray[np.float32]:
    """Make the matrix [input block + 2 * HALF_TAPS, output block] that turns `rate` hertz into 48 kHz.

    A Kaiser-windowed sinc (Smith, 'Digital audio resampling', 2002), each column normalised to a gain of one at
    0 Hz. At 48 kHz already it is the identity.
    """
    block_in, block_out = block_size(rate)
    taps = np.arange(block_in + 2 * HALF_TAPS)[:, None] - HALF_TAPS
    position = np.arange(block_out)[None, :] * block_in / block_out
    distance = taps - position
    if rate == RATE:
        return np.asarray(distance == 0, dtype=np.float32)
    cutoff = _CUTOFF * min(1.0, RATE / rate)
    inside = np.clip(1 - (distance / HALF_TAPS) ** 2, 0, None)
    window = np.i0(_KAISER_BETA * np.sqrt(inside)) / np.i0(_KAISER_BETA) * (np.abs(distance) <= HALF_TAPS)
    bank = cutoff * np.sinc(cutoff * distance) * window
    return np.asarray(bank / bank.sum(axis=0), dtype=np.float32)

"""From one rate to another. The only module that imports soxr, a library of 10 MB that few devices ever need."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from device.format import RATE, Samples

_NOTHING: Final[Samples] = np.zeros(0, np.float32)


def to_house_rate(samples: Samples, rate: int) -> Samples:
    """Give a whole sound of another rate at `RATE`."""
    import soxr  # noqa: PLC0415

    resampled: Samples = soxr.resample(samples, rate, RATE)
    return resampled


class Resampler:
    """A stream from `RATE` to `rate`, piece by piece. For one thread. It allocates what it gives."""

    def __init__(self, rate: int) -> None:
        import soxr  # noqa: PLC0415

        self._stream: Any = soxr.ResampleStream(RATE, rate, 1, dtype="float32")

    def more(self, samples: Samples) -> Samples:
        """Give what comes out once these are in: some 10 ms stay behind."""
        resampled: Samples = self._stream.resample_chunk(samples)
        return resampled

    def rest(self) -> Samples:
        """Give what stayed behind, and be ready for another sound."""
        rest: Samples = self._stream.resample_chunk(_NOTHING, last=True)
        self.forget()
        return rest

    def forget(self) -> None:
        """Be ready for another sound."""
        self._stream.clear()

"""The one format in which speech moves through speakd, and its units."""

from __future__ import annotations

from typing import Any, Final, NewType, TypeAlias

import numpy as np
from numpy.typing import NDArray

Frames = NewType("Frames", int)
"""A count of frames: one sample of each channel."""

Samples: TypeAlias = NDArray[np.float32]
"""Mono PCM, shape [frames], float32 in [-1, 1], at `RATE`, C-contiguous."""

RATE: Final = 48_000
"""Hertz. What Opus is native to and every sound card takes, so nothing downstream of an engine resamples."""

CHANNELS: Final = 1

PERIOD: Final = Frames(960)
"""20 ms: one Opus frame and one ALSA wake-up. Every chunk but an utterance's last is a whole number of these."""


def seconds(frames: int) -> float:
    """Give the duration of `frames` frames in seconds."""
    return frames / RATE


def is_samples(array: NDArray[Any]) -> bool:
    """Tell whether C code may read `array` in place as `Samples`."""
    return array.ndim == 1 and array.dtype == np.float32 and array.flags.c_contiguous

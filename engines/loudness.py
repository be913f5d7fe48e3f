"""How loud speech is (ITU-R BS.1770-4). Measured once, when a voice is imported."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from device.format import RATE, Samples

QUIETEST_LUFS: Final = -70.0
"""BS.1770's absolute gate: what is quieter is silence, and no voice."""

_BLOCK_S: Final = 0.4
"""Of the standard."""


def measure_loudness(samples: Samples) -> float | None:
    """Give the integrated loudness of 48 kHz samples in LUFS; None for silence or less than a block of 400 ms."""
    import pyloudnorm  # noqa: PLC0415  brings scipy, 40 MB, which nobody needs who only speaks

    if samples.size < round(_BLOCK_S * RATE):
        return None
    with np.errstate(divide="ignore"):
        loudness = float(pyloudnorm.Meter(RATE).integrated_loudness(samples.astype(np.float64)))
    return loudness if math.isfinite(loudness) and loudness > QUIETEST_LUFS else None

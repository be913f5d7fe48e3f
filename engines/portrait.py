"""What a voice sounds like in few numbers: enough to tell whether it still sounds as it did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict

from device.format import RATE, Samples, seconds
from engines.quality import band_powers

_SILENCE: float = 1e-9
"""Added to powers, whose logarithm is taken: -90 dB."""


class Portrait(BaseModel):
    """Of one sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    duration_s: float
    level_db: float
    """Root mean square, of full scale."""
    bands_db: tuple[float, ...]
    """Mean power in half-Bark bands."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Between two times that a voice said the same sentences; each the mean over them."""

    level_db: float
    spectrum_db: float
    """Of the band levels, once the level is taken out."""
    duration: float
    """Factor."""


def portrait(samples: Samples) -> Portrait:
    """Draw it; samples at 48 kHz, not empty."""
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    bands = 10 * np.log10(band_powers(samples, RATE).mean(axis=0) + _SILENCE)
    return Portrait(
        duration_s=round(seconds(samples.size), 3),
        level_db=round(10 * math.log10(power + _SILENCE), 2),
        bands_db=tuple(round(float(band), 2) for band in bands),
    )


def difference(now: Sequence[Portrait], before: Sequence[Portrait]) -> Difference:
    """Compare portraits of the same sentences."""
    levels, spectra = [], []
    for one, other in zip(now, before, strict=True):
        bands = np.array(one.bands_db) - np.array(other.bands_db)
        levels.append(one.level_db - other.level_db)
        spectra.append(float(np.abs(bands - bands.mean()).mean()))
    duration = sum(one.duration_s for one in now) / sum(one.duration_s for one in before)
    return Difference(sum(levels) / len(levels), sum(spectra) / len(spectra), duration)

"""How much a voice's sound has suffered: a measure that runs wherever numpy does.

PESQ-WB (ITU-T P.862.2) is the judge that the limits come from; it has no wheel for aarch64 and its licence is not
free. This measure, a log spectral distance in Bark bands (Gray and Markel, 'Distance measures for speech processing',
1976) that leaves out what nobody hears, was chosen for its agreement with it. Two runs of a generative voice may differ
in phase, which is not heard: a signal-to-noise ratio tells nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from device.format import Samples

_FRAME_S: Final = 0.032
"""Of which each overlaps the next by half: PESQ's own."""

_BANDS: Final = 42
_LOWEST_HZ: Final = 80.0
_HIGHEST_HZ: Final = 8000.0
"""PESQ-WB hears no further. 42 bands are half a Bark each."""

_FLOOR_DB: Final = -56.0
"""What is this far below the reference's mean band level counts as inaudible. Of -40 to -70, best agrees with PESQ."""

_UNHEARD_DB: Final = 0.6
"""Differences in level up to this are not heard (0 to 1 agree with PESQ equally)."""

BEST: Final = 4.64
_PER_DB: Final = 0.6
"""PESQ-WB is about 4.64 - 0.6 * distance, from 0 to 5 dB."""

MEAN_LIMIT_DB: Final = 0.95
WORST_LIMIT_DB: Final = 1.4
"""Largest distance of a voice that passes: the mean over sentences, and of one sentence.

Of 48 quantised vocoders, rank correlation with PESQ-WB 0.96 to 0.97, all below this mean had PESQ-WB of 4.07 and more;
`python tests/bench/precision.py` measures both anew.
"""


@dataclass(frozen=True, slots=True)
class Quality:
    """What a voice sounds like beside its float original."""

    distances_db: tuple[float, ...]
    """Of each sentence; 0 is the original itself."""
    snr_db: float
    """Of all sentences together; for information."""

    @property
    def mean_db(self) -> float:
        """The mean distance."""
        return sum(self.distances_db) / len(self.distances_db)

    @property
    def score(self) -> float:
        """About what PESQ-WB would say, 1 to 4.64."""
        return max(1.0, BEST - _PER_DB * self.mean_db)

    @property
    def passes(self) -> bool:
        """Whether it may be used in place of the original."""
        return self.mean_db <= MEAN_LIMIT_DB and max(self.distances_db) <= WORST_LIMIT_DB


class Judge:
    """Compares sounds with the same references again and again."""

    def __init__(self, references: Sequence[Samples], rate: int) -> None:
        self._references = references
        self._rate = rate
        self._levels = [band_powers(reference, rate) for reference in references]

    def quality(self, sounds: Sequence[Samples]) -> Quality:
        """Judge the sounds, one for each of the first references, of the same lengths."""
        distances = [
            _distance(levels, band_powers(sound, self._rate))
            for levels, sound in zip(self._levels, sounds, strict=False)
        ]
        pairs = list(zip(self._references, sounds, strict=False))
        noise = sum(float(np.square(sound - reference, dtype=np.float64).sum()) for reference, sound in pairs)
        power = sum(float(np.square(reference, dtype=np.float64).sum()) for reference, _ in pairs)
        return Quality(tuple(distances), 10 * math.log10(power / noise) if noise > 0 and power > 0 else math.inf)


def distance(reference: Samples, sound: Samples, rate: int) -> float:
    """Give the mean difference in level over all bands and frames, decibels; NaN where `sound` is no numbers."""
    return _distance(band_powers(reference, rate), band_powers(sound, rate))


def _distance(reference: NDArray[np.float32], sound: NDArray[np.float32]) -> float:
    floor = float(reference.mean()) * 10 ** (_FLOOR_DB / 10) + np.finfo(np.float32).tiny
    difference = np.abs(10 * np.log10((sound + floor) / (reference + floor)))
    return float(np.maximum(difference - _UNHEARD_DB, 0).mean())


def band_powers(samples: Samples, rate: int) -> NDArray[np.float32]:
    """Give the power [frames, bands]; bands that a voice's rate does not reach are left out."""
    half = int(rate * _FRAME_S) // 2
    padded = np.pad(np.asarray(samples, np.float32), 2 * half)
    frames = np.lib.stride_tricks.sliding_window_view(padded, 2 * half)[::half]
    spectrum = np.abs(np.fft.rfft(frames * np.hanning(2 * half).astype(np.float32), axis=1)) ** 2
    bark = _bark(np.fft.rfftfreq(2 * half, 1 / rate))
    edges = np.linspace(_bark(_LOWEST_HZ), _bark(_HIGHEST_HZ), _BANDS + 1)
    members = (bark >= edges[:-1, None]) & (bark < edges[1:, None])
    powers: NDArray[np.float32] = (spectrum @ members[members.any(axis=1)].T).astype(np.float32)
    return powers


def _bark(hertz: NDArray[np.floating[Any]] | float) -> NDArray[np.float64]:
    """Give the critical-band rate (Schroeder, Atal and Hall, 1979)."""
    return np.asarray(6 * np.arcsinh(np.asarray(hertz) / 600))

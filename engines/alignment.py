"""From what the text encoder says of each phoneme id to one latent after another, in numpy.

Only here does the length of an utterance depend on what the graph computed. Done outside, the graph has no shape that
depends on data, so that TensorRT can take it and a CUDA graph can hold it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engines.errors import EngineError

_MOST_FRAMES: Final = 2**17
"""25 minutes of 256 samples at 22050 Hz, 100 MB: the longest sentence at a twentieth of the speed has half of it."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """The prior latents [1, C, T] of a sentence, and how many of these frames each phoneme id has: whole, [ids]."""

    latents: NDArray[np.float32]
    durations: NDArray[np.float32] | None
    """None where the part that computed the latents does not tell."""


def align(prior: NDArray[np.float32], noise: NDArray[np.float32], noise_scale: float) -> Aligned:
    """Repeat each id's mean and scale for as many frames as it lasts, and add the noise.

    `prior` [2 C + 1, ids] holds C rows of means, C of scales' logarithms, and the durations in frames, which are
    rounded up. `noise` [1, C, N] is repeated beyond its end. Takes twice the memory of what it gives, and no more.
    EngineError where any of that is no number, or the durations are beyond all reason.
    """
    channels = prior.shape[0] // 2
    if not math.isfinite(float(prior.sum(dtype=np.float64))):
        raise EngineError("the acoustic graph", "gave values that are no numbers")
    durations = np.ceil(prior[-1])
    total = float(durations.sum(dtype=np.float64))
    if durations.min() < 0 or total > _MOST_FRAMES:
        raise EngineError("the acoustic graph", f"gave durations that make {total:g} frames of {durations.size} ids")
    frames = durations.astype(np.int64)
    means, scales = (np.repeat(rows, frames, axis=1) for rows in (prior[:channels], np.exp(prior[channels:-1])))
    if not total:  # VITS then makes one frame that belongs to no id
        means, scales = np.zeros((channels, 1), np.float32), np.ones((channels, 1), np.float32)
    for start in range(0, scales.shape[1], noise.shape[2]):
        part = scales[:, start : start + noise.shape[2]]
        part *= noise[0, :, : part.shape[1]]
    scales *= np.float32(noise_scale)
    scales += means
    return Aligned(scales[None], durations)

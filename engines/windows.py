"""The chunk schedule: which latent frames each vocoder run takes and which samples it emits.

A window of latent frames yields exact samples only in its middle: near a cut the vocoder misses context. So each
window overlaps its neighbours by measured margins, emits whole periods, and the next one emits from where it ended.
At the utterance's own ends there is no cut: the first window starts at frame 0, the last one ends at the last frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from device.format import PERIOD, RATE
from engines.resampling import HALF_TAPS, block_size

FIRST_PAYLOAD_FRAMES: Final = 16
"""Latent frames that the first window emits: 186 ms at 22.05 kHz, enough to compute the second meanwhile."""

GROWTH: Final = 2
"""Each window emits this much more than the one before, so that margins cost less and less."""


@dataclass(frozen=True, slots=True)
class Margins:
    """Latent frames of context beyond which more of it changes nothing audible."""

    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Window:
    """One vocoder run: latent frames [start, stop) in, `blocks` resampler blocks out."""

    start: int
    stop: int
    block_starts: NDArray[np.int64]
    """Shape [blocks]: where, in the window's own samples, each emitted block begins."""
    frames: int
    """Output frames that count; fewer than the blocks hold in an utterance's last window only."""
    last: bool


def output_frames(latent_frames: int, hop: int, rate: int) -> int:
    """Give the length in 48 kHz frames, to the nearest, of an utterance of `latent_frames`."""
    return (2 * latent_frames * hop * RATE + rate) // (2 * rate)


def plan(latent_frames: int, *, hop: int, rate: int, margins: Margins, capacity: int) -> Iterator[Window]:
    """Divide an utterance of `latent_frames` (>= 1) into windows that emit at most `capacity` frames each."""
    block_in, block_out = block_size(rate)
    total_samples = latent_frames * hop
    total_blocks = -(-total_samples // block_in)
    per_period = PERIOD // block_out
    most_blocks = capacity // block_out // per_period * per_period
    payload = FIRST_PAYLOAD_FRAMES * hop // block_in
    emitted = 0
    while emitted < total_blocks:
        size = min(max(per_period, payload // per_period * per_period), most_blocks)
        start = max(0, (emitted * block_in - HALF_TAPS) // hop - margins.left)
        stop = -(-((emitted + size) * block_in + HALF_TAPS) // hop) + margins.right
        end = emitted + size
        # Where the margin reaches the end anyway, the rest comes at next to no cost.
        if stop >= latent_frames and total_blocks - emitted <= capacity // block_out:
            end = total_blocks
        last = end >= total_blocks
        stop = latent_frames if last else min(stop, latent_frames)
        starts = np.arange(emitted, end, dtype=np.int64) * block_in - start * hop
        frames = (output_frames(latent_frames, hop, rate) if last else end * block_out) - emitted * block_out
        yield Window(start, stop, starts, frames, last)
        emitted = end
        payload *= GROWTH

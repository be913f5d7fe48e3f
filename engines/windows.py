"""The chunk schedule: which latent frames each vocoder run takes and which samples it emits.

A window of latent frames yields exact samples only in its middle: near a cut, flow and HiFi-GAN miss context. So each
window overlaps its neighbours by measured margins, emits whole periods, and the next one emits from where it ended.
At the utterance's own ends there is no cut: the first window starts at frame 0, the last one ends at the last frame.

The first window is small, so that sound begins early, and each further one as large as it can be while the player
has enough to play meanwhile: large windows spend less on margins. Sizes follow from the measured speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from device.format import PERIOD, RATE
from engines.resampling import HALF_TAPS, block_size

SAFETY: Final = 0.35
"""Share of the time that playback gives which a window's computation may take, when nothing else runs.

The rest is for other processes: with one of two cores kept busy a window takes twice as long, as both threads wait
for the slower one, and at 0.5 there was a gap now and then.
"""

_SMALLEST_PAYLOAD: Final = 8
"""Latent frames of the smallest first window, 93 ms at 22.05 kHz: less would leave no time for a late wake-up."""


_TAIL: Final = 1.25
"""A rest of up to this much of a window is not left to one of its own, which would cost its margins."""

WORTH_OF_WORK: Final = 0.1
"""Latent frames of earlier sound that are worth one latent frame more of work.

At 0.1 a sentence of 3.7 s takes three windows, 1.13 times the work of one pass, and is heard 3 ms earlier than in two.
"""

FRUGAL_WORTH: Final = 1.0
"""The same where nobody is in a hurry: a sentence of 3.7 s then takes two windows and 0.84 times
the work, and is heard by 18 latent frames' computing later, 9 ms at a real-time factor of 0.04."""

_LARGEST_DELAY: Final = 32
"""Latent frames by which a first window may grow to save windows: 370 ms of speech, computed in 30 ms or so."""

_FRUGAL_DELAY: Final = 3 * _LARGEST_DELAY

_STEP: Final = 2


@dataclass(frozen=True, slots=True)
class Margins:
    """Latent frames of context beyond which more of it changes nothing audible."""

    flow_left: int
    flow_right: int
    gan_left: int
    gan_right: int

    @property
    def frames(self) -> int:
        """All context of a window that is cut on both sides; the flow's is outside HiFi-GAN's."""
        return self.flow_left + self.flow_right + self.gan_left + self.gan_right


UNKNOWN_MARGINS: Final = Margins(40, 40, 24, 24)
"""More than any size of Piper's models reaches."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What a window costs on this device: overhead_s + frame_s * (latent frames, margins included)."""

    overhead_s: float
    frame_s: float


UNKNOWN_SPEED: Final = Speed(0.005, 0.003)
"""A real-time factor of a quarter, a Raspberry Pi 4's: safe to begin with anywhere that can stream at all."""


@dataclass(frozen=True, slots=True)
class Window:
    """One vocoder run: latent frames [start, stop) in, of which [crop_start, crop_stop) reach HiFi-GAN."""

    start: int
    stop: int
    crop_start: int
    crop_stop: int
    block_starts: NDArray[np.int64]
    """Shape [blocks]: where each emitted resampler block begins, in samples from `crop_start`."""
    frames: int
    """Output frames that count; fewer than the blocks hold in an utterance's last window only."""
    last: bool


def output_frames(latent_frames: int, hop: int, rate: int) -> int:
    """Give the length in 48 kHz frames, to the nearest, of an utterance of `latent_frames`."""
    return (2 * latent_frames * hop * RATE + rate) // (2 * rate)


def payloads(
    latent_frames: int,
    most: int,
    margins: Margins,
    speed: Speed,
    frame_s: float,
    *,
    frugal: bool = False,
    held: int = 0,
) -> list[int]:
    """Give the latent frames that each window of an utterance should emit, at most `most` each.

    `frame_s` is the playing time of one latent frame. Each window is ready before what the one before emits has been
    played. A larger first window delays the sound but may save a whole window, and with it its margins: the best sum
    of both counts, and where it is `frugal` the work counts for more. A device that cannot keep up is given windows
    that are as large as they may be. Where as much as the last `held` latent frames of all that is emitted is not
    played yet, the first window is larger by that.
    """
    worth, largest_delay = (FRUGAL_WORTH, _FRUGAL_DELAY) if frugal else (WORTH_OF_WORK, _LARGEST_DELAY)

    def series(first: int) -> list[int]:
        begin = first + held
        sizes = [min(begin, most)] if latent_frames > _TAIL * begin else [min(latent_frames, most)]
        rest = latent_frames - sizes[0]
        while rest > 0:
            size = max(1, sizes[0] - held) if len(sizes) == 1 else sizes[-1]
            affordable = int((SAFETY * size * frame_s - speed.overhead_s) / speed.frame_s)
            # The last window has no cut on its right.
            last = max(size, affordable - margins.flow_left - margins.gan_left)
            size = min(most, max(size, affordable - margins.frames))
            if rest <= min(most, _TAIL * max(size, last)):
                size = rest
            sizes.append(size)
            rest -= size
        return sizes

    def cost(sizes: list[int]) -> float:
        return sizes[0] + worth * (len(sizes) - 1) * margins.frames

    smallest = _SMALLEST_PAYLOAD
    while SAFETY * smallest * frame_s < speed.overhead_s + (smallest + margins.frames) * speed.frame_s:
        smallest += _STEP
        if smallest >= most:
            return series(most)
    return min((series(first) for first in range(smallest, smallest + largest_delay, _STEP)), key=cost)


def plan(  # noqa: PLR0913  the voice, the device, and how it is to be
    latent_frames: int,
    *,
    hop: int,
    rate: int,
    margins: Margins,
    speed: Speed,
    capacity: int,
    frugal: bool = False,
    held: int = 0,
) -> Iterator[Window]:
    """Divide an utterance of `latent_frames` (>= 1) into windows that emit at most `capacity` frames each.

    `frugal`: fewer and larger ones, so less work and a later first sound. `held`: how many frames of what is emitted
    are not played before as many more are there.
    """
    block_in, block_out = block_size(rate)
    total_blocks = -(-latent_frames * hop // block_in)
    per_period = PERIOD // block_out
    most_blocks = capacity // block_out // per_period * per_period
    most = max(1, most_blocks * block_in // hop)
    behind = -(-held * rate // (RATE * hop))
    sizes = payloads(latent_frames, most, margins, speed, hop / rate, frugal=frugal, held=behind)
    emitted = 0
    while emitted < total_blocks:
        wanted = (sizes.pop(0) if sizes else most) * hop // block_in // per_period * per_period
        end = emitted + min(max(per_period, wanted), most_blocks)
        gan_start = max(0, (emitted * block_in - HALF_TAPS) // hop - margins.gan_left)
        gan_stop = -(-(end * block_in + HALF_TAPS) // hop) + margins.gan_right
        # The last one takes what rounding left; and where margins reach the end, the rest comes at next to no cost.
        at_the_end = len(sizes) == 0 or gan_stop + margins.flow_right >= latent_frames
        if at_the_end and total_blocks - emitted <= capacity // block_out:
            end = total_blocks
        last = end == total_blocks
        gan_stop = latent_frames if last else min(gan_stop, latent_frames)
        start = max(0, gan_start - margins.flow_left)
        stop = min(latent_frames, gan_stop + margins.flow_right)
        starts = np.arange(emitted, end, dtype=np.int64) * block_in - gan_start * hop
        frames = (output_frames(latent_frames, hop, rate) if last else end * block_out) - emitted * block_out
        yield Window(start, stop, gan_start - start, gan_stop - start, starts, frames, last)
        emitted = end

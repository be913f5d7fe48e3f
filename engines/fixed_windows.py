"""The chunk schedule for engines that take windows of a few fixed sizes.

TensorRT wants static shapes, and windows of one size can be computed several at once. A window takes `frames` latent
frames from `start` on, wherever that lies: what is before the utterance or behind it counts as zero in each layer, as
it does in an undivided pass (`vits_fixed`). So all windows are of one form, with the flow's margins on both sides of
what HiFi-GAN gets, and an utterance of any length comes out exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.format import PERIOD, RATE
from engines.resampling import HALF_TAPS, block_size
from engines.windows import FRUGAL_WORTH, SAFETY, WORTH_OF_WORK, Margins, Speed, Window, output_frames

_PAYLOADS: Final = (10, 40, 120, 300)
"""Latent frames, beside all margins, of the default sizes: with the default voice's 64, 96, 176 and 352 frames.

The first emits 0.3 s at an utterance's begin, enough to compute the next one in; the last fills a buffer. Each size is
an engine of its own, 8 to 30 MB on a disk and a minute or more to build. By multiply-adds, texts of up to 1.5 s take
1.8 times one pass and longer ones 1.35 (`plan`: 1.25 in all). With three sizes, whichever, it is 1.9 and 1.4 to 1.5,
with two 2.4 and 2.9; a fifth gains 2 %.
"""

_MULTIPLE: Final = 8
"""Of the default sizes, so that no two voices with nearly the same margins need other ones."""


@dataclass(frozen=True, slots=True)
class WindowShape:
    """What is fixed about the windows of one size, for one voice."""

    frames: int
    """Latent frames that the flow takes."""
    crop: tuple[int, int]
    """How many of them, left and right, HiFi-GAN does not get."""
    blocks: int
    """Of the resampler: as many as HiFi-GAN's frames can give."""

    @property
    def gan_frames(self) -> int:
        """Latent frames that HiFi-GAN gets."""
        return self.frames - sum(self.crop)


def window_shape(frames: int, *, hop: int, rate: int, margins: Margins) -> WindowShape:
    """Give the shape of windows of `frames` latent frames. ValueError where the margins leave nothing of them."""
    block_in, block_out = block_size(rate)
    crop = (margins.flow_left, margins.flow_right)
    kept = (frames - margins.frames - 1) * hop - 2 * HALF_TAPS  # wherever its first frame falls
    if kept < PERIOD // block_out * block_in:
        raise ValueError(f"windows of {frames} latent frames emit nothing: their margins take {margins.frames}")
    return WindowShape(frames, crop, -(-(frames - sum(crop)) * hop // block_in))


def default_shapes(*, hop: int, rate: int, margins: Margins, capacity: int) -> list[WindowShape]:
    """Give the sizes that a voice's windows should have, smallest first; none emits more than `capacity` frames.

    ValueError where the capacity has no room for a window with its margins.
    """
    block_in, block_out = block_size(rate)
    most = capacity // block_out * block_in // hop + margins.flow_left + margins.flow_right
    least = margins.frames + 2 + -(-2 * HALF_TAPS // hop)
    sizes = {min(most, -(-(least + payload) // _MULTIPLE) * _MULTIPLE) for payload in _PAYLOADS}
    return [window_shape(size, hop=hop, rate=rate, margins=margins) for size in sorted(sizes)]


class _Schedule:
    """Where windows of given shapes fall on one utterance."""

    def __init__(self, latent_frames: int, hop: int, rate: int, margins: Margins, held: int) -> None:
        self._latent_frames = latent_frames
        self._hop = hop
        self._margins = margins
        self._block_in, self._block_out = block_size(rate)
        self.blocks = -(-latent_frames * hop // self._block_in)
        self.output_frames = output_frames(latent_frames, hop, rate)
        self.held = -(-held // self._block_out)

    def seconds(self, blocks: int) -> float:
        """Give the playing time of so many blocks."""
        return blocks * self._block_out / RATE

    def end(self, begin: int, shape: WindowShape) -> int:
        """Give the block before which a window ends that emits from block `begin` on."""
        stop = self._gan_start(begin) + shape.gan_frames
        if stop >= self._latent_frames:
            return self.blocks
        per_period = PERIOD // self._block_out
        exact = ((stop - self._margins.gan_right) * self._hop - HALF_TAPS) // self._block_in
        return exact // per_period * per_period

    def window(self, begin: int, shape: WindowShape) -> Window:
        """Make the window that emits from block `begin` on."""
        gan_start, end = self._gan_start(begin), self.end(begin, shape)
        left = shape.crop[0]
        start = gan_start - left
        starts = np.arange(begin, end, dtype=np.int64) * self._block_in - gan_start * self._hop
        last = end == self.blocks
        frames = (self.output_frames if last else end * self._block_out) - begin * self._block_out
        return Window(start, start + shape.frames, left, left + shape.gan_frames, starts, frames, last)

    def _gan_start(self, begin: int) -> int:
        return max(0, (begin * self._block_in - HALF_TAPS) // self._hop - self._margins.gan_left)


@dataclass(frozen=True, slots=True)
class _Series:
    """Windows one after another: from which block on, and of which shape."""

    placed: list[tuple[int, WindowShape]]
    on_time: bool
    """Whether each is ready before what the one before it emits has been played."""

    def cost(self, worth: float) -> float:
        """Weigh the delay of the first sound and all of the work, in latent frames."""
        return self.placed[0][1].frames + worth * sum(shape.frames for _, shape in self.placed)


def fixed_plan(  # noqa: PLR0913  as `plan`
    latent_frames: int,
    *,
    hop: int,
    rate: int,
    margins: Margins,
    speed: Speed,
    shapes: Sequence[WindowShape],
    frugal: bool = False,
    held: int = 0,
) -> Iterator[Window]:
    """Divide an utterance of `latent_frames` (>= 1) into windows of `shapes`, which come smallest first.

    As in `plan`, sound begins early and each window is ready in time, as far as the sizes and the device allow. Windows
    begin before the utterance and end behind it; what they have there is nobody's, and `Window.frames` counts without.
    `frugal`, `held`: see `plan`.
    """
    schedule = _Schedule(latent_frames, hop, rate, margins, held)
    every = [_series(schedule, first, shapes, speed) for first in shapes]
    worth = FRUGAL_WORTH if frugal else WORTH_OF_WORK
    on_time = (series for series in every if series.on_time)
    chosen = min(on_time, key=lambda series: series.cost(worth), default=every[-1])
    for begin, shape in chosen.placed:
        yield schedule.window(begin, shape)


def _series(schedule: _Schedule, first: WindowShape, shapes: Sequence[WindowShape], speed: Speed) -> _Series:
    def quick(blocks: int) -> list[WindowShape]:
        """Give the shapes that are computed while so many blocks are played."""
        allowed_s = SAFETY * schedule.seconds(blocks)
        return [shape for shape in shapes if speed.overhead_s + speed.frame_s * shape.frames <= allowed_s]

    def ending(begin: int, among: Sequence[WindowShape]) -> WindowShape | None:
        return next((shape for shape in among if schedule.end(begin, shape) == schedule.blocks), None)

    def following(begin: int, among: Sequence[WindowShape]) -> WindowShape:
        """Give the largest shape; near the end the one that ends it all, or the first of two that are less work."""
        last = ending(begin, among)
        if last is None:
            return among[-1]
        chosen, work = last, last.frames
        for shape in among[: among.index(last)]:
            end = schedule.end(begin, shape)
            other = ending(end, quick(end - begin))
            if other is not None and shape.frames + other.frames < work:
                chosen, work = shape, shape.frames + other.frames
        return chosen

    placed = [(0, first)]
    begin, end, on_time = 0, schedule.end(0, first), True
    while end < schedule.blocks:
        among = quick(end - begin - (schedule.held if begin == 0 else 0))
        on_time = on_time and bool(among)
        begin, shape = end, following(end, among or [s for s in shapes if s.frames <= placed[-1][1].frames])
        placed.append((begin, shape))
        end = schedule.end(begin, shape)
    return _Series(placed, on_time)

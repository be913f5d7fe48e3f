"""A vocoder that has an engine for each of a few window sizes, as TensorRT wants it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from device.format import Samples
from engines.fixed_windows import WindowShape, fixed_plan
from engines.pack_info import PackInfo
from engines.resampling import block_size
from engines.runtime.engine import Engine
from engines.vocoder import Latents
from engines.window_feeds import WindowFeeds
from engines.windows import Speed, Window


class FixedVocoder:
    """A `Vocoder` on engines that each take windows of one shape (`vits_fixed`)."""

    def __init__(self, info: PackInfo, engines: Mapping[WindowShape, Engine]) -> None:
        """Own `engines`, of which there is at least one."""
        self._info = info
        self._shapes = sorted(engines, key=lambda shape: shape.frames)
        self._engines = {shape.frames: engines[shape] for shape in self._shapes}
        self._feeds = {
            shape.frames: WindowFeeds(shape, channels=info.channels, multi_speaker=info.multi_speaker)
            for shape in self._shapes
        }
        self._block_in, self._block_out = block_size(info.sample_rate)
        self._largest = self._engines[self._shapes[-1].frames]

    @property
    def backend(self) -> str:
        """See `Vocoder.backend`: the same for all sizes."""
        return self._largest.backend

    @property
    def precision(self) -> str:
        """See `Vocoder.precision`: the same for all sizes."""
        return self._largest.precision

    def windows(
        self, latent_frames: int, *, speed: Speed, capacity: int, frugal: bool = False, held: int = 0
    ) -> Iterator[Window]:
        """See `Vocoder.windows`. Windows that would not fit `capacity` are left out, but never the smallest."""
        info = self._info
        fitting = [shape for shape in self._shapes if shape.blocks * self._block_out <= capacity] or self._shapes[:1]
        return fixed_plan(
            latent_frames,
            hop=info.hop,
            rate=info.sample_rate,
            margins=info.margins,
            speed=speed,
            shapes=fitting,
            frugal=frugal,
            held=held,
        )

    def trial(self, latent_frames: int) -> Window:
        """See `Vocoder.trial`."""
        shape = min(self._shapes, key=lambda shape: abs(shape.frames - latent_frames))
        left = shape.crop[0]
        starts = np.arange(shape.blocks, dtype=np.int64) * self._block_in
        return Window(-left, shape.frames - left, left, left + shape.gan_frames, starts, 0, last=True)

    def frames_needed(self, window: Window) -> int:
        """See `Vocoder.frames_needed`."""
        return self._feeds[window.stop - window.start].shape.blocks * self._block_out

    def render(self, latents: Latents, window: Window, output: Samples, *, gain: float, speaker: int) -> None:
        """See `Vocoder.render`."""
        size = window.stop - window.start
        feeds = self._feeds[size]
        feeds.put(0, latents, window, gain=gain, speaker=speaker)
        self._engines[size].run_into(feeds.feeds, output.reshape(1, -1))

    def abandon(self) -> None:
        """See `Vocoder.abandon`."""
        for engine in self._engines.values():
            engine.abandon()

    def close(self) -> None:
        """See `Vocoder.close`."""
        for engine in self._engines.values():
            engine.close()

"""From latents to sound, window by window: what a vocoder is, and the one that takes windows of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from device.format import Samples
from engines.pack_info import PackInfo
from engines.resampling import block_size
from engines.runtime.engine import Engine
from engines.windows import Speed, Window, plan

Latents = NDArray[np.float32]
"""Shape [1, channels, T], one frame per `hop` samples."""


class Vocoder(Protocol):
    """The vocoder part of a voice. One thread at a time uses it; EngineError where an engine fails.

    Implementations: one graph for windows of any size; an engine for each of a few sizes; one of these, checked.
    """

    @property
    def backend(self) -> str:
        """See `Engine.backend`."""

    @property
    def precision(self) -> str:
        """See `Engine.precision`."""

    def windows(
        self, latent_frames: int, *, speed: Speed, capacity: int, frugal: bool = False, held: int = 0
    ) -> Iterator[Window]:
        """Divide a sentence into windows that emit at most `capacity` frames each. `frugal`, `held`: see `plan`."""

    def trial(self, latent_frames: int) -> Window:
        """Give a window of about so many latent frames, to be timed."""

    def frames_needed(self, window: Window) -> int:
        """Give the output frames that `render` writes for `window`; what is beyond `Window.frames` is nobody's."""

    def render(self, latents: Latents, window: Window, output: Samples, *, gain: float, speaker: int) -> None:
        """Compute one window straight into `output`, which is just `frames_needed` long.

        `gain` is a factor on the samples, which may come out beyond full scale.
        """

    def abandon(self) -> None:
        """See `Engine.abandon`."""

    def close(self) -> None:
        """Free the engines. Idempotent."""


class FreeVocoder:
    """A `Vocoder` on one graph that takes windows of any size."""

    def __init__(self, info: PackInfo, engine: Engine) -> None:
        """Own `engine`, which runs a pack's vocoder graph."""
        self._info = info
        self._engine: Final = engine
        self._block_in, self._block_out = block_size(info.sample_rate)
        self._window: NDArray[np.float32] = np.empty(0, np.float32)
        self._gain = np.ones(1, np.float32)
        self._crop = np.zeros(2, np.int64)
        self._speaker = np.zeros(1, np.int64)

    @property
    def backend(self) -> str:
        """See `Vocoder.backend`."""
        return self._engine.backend

    @property
    def precision(self) -> str:
        """See `Vocoder.precision`."""
        return self._engine.precision

    def windows(
        self, latent_frames: int, *, speed: Speed, capacity: int, frugal: bool = False, held: int = 0
    ) -> Iterator[Window]:
        """See `Vocoder.windows`."""
        info = self._info
        return plan(
            latent_frames,
            hop=info.hop,
            rate=info.sample_rate,
            margins=info.margins,
            speed=speed,
            capacity=capacity,
            frugal=frugal,
            held=held,
        )

    def trial(self, latent_frames: int) -> Window:
        """See `Vocoder.trial`."""
        starts = np.arange(latent_frames * self._info.hop // self._block_in) * self._block_in
        return Window(0, latent_frames, 0, latent_frames, starts, 0, last=True)

    def frames_needed(self, window: Window) -> int:
        """See `Vocoder.frames_needed`."""
        return window.block_starts.size * self._block_out

    def render(self, latents: Latents, window: Window, output: Samples, *, gain: float, speaker: int) -> None:
        """See `Vocoder.render`."""
        size = latents.shape[1] * (window.stop - window.start)
        if self._window.size < size:
            self._window = np.empty(size, np.float32)
        part = self._window[:size].reshape(1, latents.shape[1], window.stop - window.start)
        np.copyto(part, latents[:, :, window.start : window.stop])
        self._gain[0] = gain
        self._crop[:] = window.crop_start, window.crop_stop
        feeds: dict[str, NDArray[np.generic]] = {
            "latents": part,
            "crop": self._crop,
            "starts": window.block_starts,
            "gain": self._gain,
        }
        if self._info.multi_speaker:
            self._speaker[0] = speaker
            feeds["sid"] = self._speaker
        self._engine.run_into(feeds, output)

    def abandon(self) -> None:
        """See `Vocoder.abandon`."""
        self._engine.abandon()

    def close(self) -> None:
        """See `Vocoder.close`."""
        self._engine.close()

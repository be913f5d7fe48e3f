"""What an engine for windows of one fixed size takes, in memory that is allocated once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from engines.fixed_windows import WindowShape
from engines.runtime.engine import Feeds
from engines.windows import Window


class WindowFeeds:
    """The inputs of one run of a graph that `fixed_vocoder` made: a row for each of `batch` windows."""

    def __init__(
        self,
        shape: WindowShape,
        *,
        channels: int,
        batch: int = 1,
        multi_speaker: bool = False,
        empty: Callable[[tuple[int, ...], DTypeLike], NDArray[np.generic]] = np.empty,
    ) -> None:
        """`empty` allocates an array, such as in memory that a GPU reads too."""

        def zeros(dims: tuple[int, ...], dtype: DTypeLike) -> NDArray[np.generic]:
            array = empty(dims, dtype)
            array[...] = 0
            return array

        self.shape: Final = shape
        self.batch: Final = batch
        arrays = {
            "latents": zeros((batch, channels, shape.frames), np.float32),
            "span": zeros((batch, 2), np.int32),
            "starts": zeros((batch, shape.blocks), np.int32),
            "gain": zeros((batch,), np.float32),
        }
        if multi_speaker:
            arrays["sid"] = zeros((batch,), np.int64)
        self._arrays = arrays

    @property
    def feeds(self) -> Feeds:
        """For `Engine.run_into`; the same arrays each time."""
        return self._arrays

    def put(self, row: int, latents: NDArray[np.float32], window: Window, *, gain: float, speaker: int) -> None:
        """Make `window` of an utterance's latents [1, channels, T] a row of the next run."""
        arrays, frames = self._arrays, self.shape.frames
        total = latents.shape[2]
        first, end = max(0, -window.start), min(frames, total - window.start)
        part = arrays["latents"][row]
        part[:, :first] = 0
        part[:, first:end] = latents[0, :, window.start + first : window.start + end]
        part[:, end:] = 0
        arrays["span"][row] = -window.start, total - window.start
        count = window.block_starts.size
        starts = arrays["starts"][row]
        starts[:count] = window.block_starts
        starts[count:] = window.block_starts[-1]  # what comes of these is not used, but must not lie outside
        arrays["gain"][row] = gain
        if "sid" in arrays:
            arrays["sid"][row] = speaker

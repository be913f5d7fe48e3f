"""A vocoder that is not believed: narrow types overflow on latents that no calibration has seen."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from device.format import Samples
from engines.errors import AbandonedError, EngineError
from engines.vocoder import FreeVocoder, Latents, Vocoder
from engines.windows import Speed, Window

_LOG = logging.getLogger(__name__)

_LOUDEST: Final = 0.7
"""Effective value, at a gain of 1, of a window that is no speech: the default voice's loudest 60 ms have 0.17.

A voice's last layer ends at full scale, which is where sums go that have overflown. Zeros are told exactly: the
quietest 60 ms of the default voice still peak at 7e-5, far above float16's least 6e-8.
"""


class CheckedVocoder:
    """A `Vocoder` whose every window is looked at. At the first bad one a safer vocoder takes over, for good.

    Bad is what is no number, or nothing but zeros where there should be sound, or an engine's failure. The bad window
    is computed again by the safer one, once; what that gives is looked at too.
    """

    def __init__(self, vocoder: Vocoder, safer: Callable[[], FreeVocoder]) -> None:
        """Own `vocoder`; `safer` makes the other one when it is needed."""
        self._vocoder = vocoder
        self._make_safer = safer
        self._safer: FreeVocoder | None = None
        self._fell_back = False

    @property
    def backend(self) -> str:
        """See `Vocoder.backend`: who computes now."""
        return self._vocoder.backend

    @property
    def precision(self) -> str:
        """See `Vocoder.precision`: in what it is computed now."""
        return self._vocoder.precision

    def windows(
        self, latent_frames: int, *, speed: Speed, capacity: int, frugal: bool = False, held: int = 0
    ) -> Iterator[Window]:
        """See `Vocoder.windows`."""
        return self._vocoder.windows(latent_frames, speed=speed, capacity=capacity, frugal=frugal, held=held)

    def trial(self, latent_frames: int) -> Window:
        """See `Vocoder.trial`."""
        return self._vocoder.trial(latent_frames)

    def frames_needed(self, window: Window) -> int:
        """See `Vocoder.frames_needed`."""
        return self._vocoder.frames_needed(window)

    def render(self, latents: Latents, window: Window, output: Samples, *, gain: float, speaker: int) -> None:
        """See `Vocoder.render`."""
        if self._fell_back:
            self._render_safer(latents, window, output, gain=gain, speaker=speaker)
            return
        try:
            self._vocoder.render(latents, window, output, gain=gain, speaker=speaker)
            _require_sound(self._vocoder, output, gain)
        except AbandonedError:
            raise  # nobody wants it any more: that is no fault
        except EngineError as error:
            reason = error
        else:
            return
        if self._safer is None:
            self._safer = self._make_safer()
        self._render_safer(latents, window, output, gain=gain, speaker=speaker)
        _LOG.error("%s; %s %s takes over", reason, self._safer.backend, self._safer.precision)
        self._vocoder.close()
        self._vocoder, self._fell_back = self._safer, True

    def abandon(self) -> None:
        """See `Vocoder.abandon`."""
        self._vocoder.abandon()

    def close(self) -> None:
        """See `Vocoder.close`."""
        self._vocoder.close()
        if self._safer is not None:
            self._safer.close()

    def _render_safer(self, latents: Latents, window: Window, output: Samples, *, gain: float, speaker: int) -> None:
        """Let the safer vocoder compute a window, also one of those that were planned for the other."""
        assert self._safer is not None  # noqa: S101  made by whoever calls
        inside = _within(window, latents.shape[2])
        part = output[: self._safer.frames_needed(inside)]
        output[part.size :] = 0  # nobody's, but no number as the other one left it
        self._safer.render(latents, inside, part, gain=gain, speaker=speaker)
        _require_sound(self._safer, part, gain)


def _within(window: Window, latent_frames: int) -> Window:
    """Cut a window to its utterance: beyond the ends it has nothing, and an end is exact as it is."""
    start, stop = max(0, window.start), min(latent_frames, window.stop)
    moved = window.start - start
    crop_stop = min(window.crop_stop + moved, stop - start)
    return replace(window, start=start, stop=stop, crop_start=window.crop_start + moved, crop_stop=crop_stop)


def _require_sound(vocoder: Vocoder, output: Samples, gain: float) -> None:
    name = f"{vocoder.backend} {vocoder.precision}"
    energy = float(np.dot(output, output))
    if not math.isfinite(energy):
        raise EngineError(name, "gave values that are no numbers")
    if gain > 0 and energy == 0:
        raise EngineError(name, "gave nothing but silence")
    if energy > (_LOUDEST * gain) ** 2 * output.size:
        raise EngineError(name, "gave nothing but full scale")

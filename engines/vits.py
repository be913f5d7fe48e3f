"""The VITS family of voices: phoneme ids to latents, latents to sound, on whatever engine."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from device.format import Samples
from engines.acoustic import Acoustic, WholeAcoustic
from engines.alignment import Aligned
from engines.blends import Mix
from engines.errors import SynthesisError
from engines.pace import Pace
from engines.pack import Pack
from engines.pack_info import PackInfo
from engines.runtime.ort import OrtEngine
from engines.spoken import WHOLE, Abilities, Piece, Spoken
from engines.text.gaps import NO_GAPS, Gaps
from engines.text.phonemes import merge_clusters, phoneme_ids
from engines.vocoder import FreeVocoder, Latents, Vocoder
from engines.windows import UNKNOWN_SPEED, Speed, Window, output_frames
from engines.words import WordFinder

VERSION: Final = 1
"""Rises whenever the same pack makes other sounds of the same phonemes."""

_NOISE_FRAMES_PER_ID: Final = 2
"""Prior noise made ahead per phoneme id, at normal speed: what speech takes (default voice). Beyond it noise repeats,
half a sentence later at the earliest."""

USUAL_IDS: Final = 320
"""Phoneme ids of all but very long sentences, some 8 s of speech. Memory that only a longer one needs, by the square
of its length, goes back after it: 60 MB less in the daemon, and growth that does not depend on what was said."""

_ABILITIES: Final = Abilities(streaming=True, styles=False, lengths=WHOLE, trial_ids=USUAL_IDS)

_USUAL_BYTES: Final = USUAL_IDS * (8 + 2 * 4) + 3 * 4 + 8
"""Of the acoustic part's inputs: ids, duration noise, scales and speaker."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """How an utterance is to be said."""

    speaker: int = 0
    noise_scale: float = 0.667
    length_scale: float = 1.0
    noise_w: float = 0.8
    gain: float = 1.0
    """Factor on the samples, which may come out beyond full scale: whoever hands them to a device limits them."""
    gaps: Gaps = NO_GAPS
    mix: Mix | None = None
    """In place of `speaker`."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The two random inputs: prior [1, channels, N], N >= 1, and duration [1, 2, phoneme ids] (None: unused)."""

    prior: NDArray[np.float32]
    duration: NDArray[np.float32] | None


def acoustic_on_cpu(pack: Pack, *, threads: int) -> OrtEngine:
    """Load the acoustic part of `pack`, which gives back what only a very long sentence needs of memory."""
    return OrtEngine(pack.acoustic, threads=threads, usual_bytes=_USUAL_BYTES)


class VitsVoice:
    """A `Voice`. One thread at a time uses it; EngineError where an engine fails."""

    abilities: Final = _ABILITIES

    def __init__(self, info: PackInfo, acoustic: Acoustic, vocoder: Vocoder) -> None:
        self.info: Final = info
        self.speed: Speed = UNKNOWN_SPEED
        """What a window costs here: the schedule follows from it. Whoever has measured it says so."""
        self.pace: Pace | None = None
        """Corrects `speed` by what windows take; None where nobody waits for them, or each must be as the last time."""
        self._acoustic = acoustic
        self.vocoder: Final = vocoder
        self._words = WordFinder(info.phoneme_ids)

    @classmethod
    def load(cls, pack: Pack, *, threads: int = 0) -> VitsVoice:
        """Load both graphs of `pack` on the CPU; `threads` 0 means one per core."""
        vocoder = FreeVocoder(pack.info, OrtEngine(pack.vocoder, threads=threads))
        return cls(pack.info, WholeAcoustic(acoustic_on_cpu(pack, threads=threads)), vocoder)

    @property
    def backend(self) -> str:
        """Who computes: the vocoder, which is nearly all of the work, and the acoustic part where that is another."""
        vocoder, acoustic = self.vocoder.backend, self._acoustic.backend
        return vocoder if vocoder == acoustic else f"{vocoder} + {acoustic}"

    @property
    def precision(self) -> str:
        """In what the vocoder computes."""
        return self.vocoder.precision

    @property
    def fingerprint(self) -> str:
        """See `Voice.fingerprint`."""
        return str(VERSION)

    def ids(self, phonemes: Sequence[str]) -> tuple[list[int], list[str]]:
        """See `Voice.ids`."""
        return phoneme_ids(merge_clusters(phonemes, self.info.clusters), self.info.phoneme_ids)

    def speak(
        self,
        ids: Sequence[int],
        delivery: Delivery,
        rng: np.random.Generator,
        *,
        capacity: int,
        frugal: bool = False,
        held: int = 0,
        noise: Noise | None = None,
    ) -> Spoken:
        """See `Voice.speak`: the acoustic part runs now, the vocoder part with each piece."""
        noise = noise or self.noise(len(ids), rng, length_scale=delivery.length_scale)
        prior = self.prior(ids, delivery, noise)
        pieces = [
            Piece(window.frames, self.frames_needed(window), partial(self.render, prior.latents, window, delivery))
            for window in self.windows(prior.latents, capacity, frugal=frugal, held=held)
        ]
        return Spoken(self.words(ids, prior), pieces)

    def noise(self, ids: int, rng: np.random.Generator, *, length_scale: float = 1.0) -> Noise:
        """Draw the noise for a sentence of `ids` phoneme ids."""
        frames = math.ceil(ids * _NOISE_FRAMES_PER_ID * length_scale)
        prior = rng.standard_normal((1, self.info.channels, frames), dtype=np.float32)
        duration = rng.standard_normal((1, 2, ids), dtype=np.float32) if self.info.duration_noise else None
        return Noise(prior, duration)

    def feeds(self, ids: Sequence[int], delivery: Delivery, noise: Noise) -> dict[str, NDArray[np.generic]]:
        """Make the acoustic part's inputs for one sentence."""
        scales = np.array([delivery.noise_scale, delivery.length_scale, delivery.noise_w], dtype=np.float32)
        feeds: dict[str, NDArray[np.generic]] = {
            "input": np.array([ids], dtype=np.int64),
            "scales": scales,
            "noise_prior": noise.prior,
        }
        if noise.duration is not None:
            feeds["noise_duration"] = noise.duration
        if self.info.multi_speaker:
            feeds["sid"] = np.array([delivery.speaker])
        return feeds

    def latents(self, ids: Sequence[int], delivery: Delivery, noise: Noise) -> Latents:
        """Give the latents alone of `prior`."""
        return self.prior(ids, delivery, noise).latents

    def prior(self, ids: Sequence[int], delivery: Delivery, noise: Noise) -> Aligned:
        """Run the acoustic part on one sentence. EngineError where it gives what is no number."""
        return self._acoustic.aligned(self.feeds(ids, delivery, noise))

    def words(self, ids: Sequence[int], prior: Aligned) -> list[int]:
        """Give the first output frame of each word of a sentence."""
        starts = self._words.starts(ids, prior.durations)
        return [output_frames(start, self.info.hop, self.info.sample_rate) for start in starts]

    def windows(self, latents: Latents, capacity: int, *, frugal: bool = False, held: int = 0) -> Iterator[Window]:
        """Divide a sentence into windows that emit at most `capacity` frames each. `frugal`, `held`: see `plan`."""
        speed = self.speed if self.pace is None else self.pace.corrected(self.speed)
        return self.vocoder.windows(latents.shape[2], speed=speed, capacity=capacity, frugal=frugal, held=held)

    def frames_needed(self, window: Window) -> int:
        """Give the output frames that `render` writes for `window`; what is beyond `Window.frames` is nobody's."""
        return self.vocoder.frames_needed(window)

    def render(self, latents: Latents, window: Window, delivery: Delivery, output: Samples) -> None:
        """Run the vocoder part on one window, straight into `output`, which is just `frames_needed` long."""
        begun = time.perf_counter()
        self.vocoder.render(latents, window, output, gain=delivery.gain, speaker=delivery.speaker)
        if self.pace is not None:
            self.pace.note(self.speed, window.stop - window.start, time.perf_counter() - begun)
        if not _all_finite(output):
            raise SynthesisError(self.info.name, "its vocoder part gave values that are no numbers")

    def abandon(self) -> None:
        """Have what is being computed end soon with EngineError. From any thread."""
        self._acoustic.abandon()
        self.vocoder.abandon()

    def close(self) -> None:
        """Free both engines. Idempotent."""
        self._acoustic.close()
        self.vocoder.close()


def _all_finite(array: NDArray[np.float32]) -> bool:
    """Tell whether there is no NaN and no infinity, without a mask of the array's size.

    The sum is taken in the array's own type: another one costs a buffer of 64 kB for the conversion each time.
    """
    return math.isfinite(float(array.sum()))

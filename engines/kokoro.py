"""The Kokoro family of voices: StyleTTS 2 with an iSTFT decoder, a sentence at a time.

Its decoder normalises over the whole of a sentence, so windows of one would not join. A sentence is therefore computed
in one run and handed on in pieces; the next one is computed while they play. A long one is cut after its clauses.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from device.format import PERIOD, Samples
from engines.errors import SynthesisError
from engines.kokoro_phonemes import KokoroPhonemes, table_for
from engines.pack_info import KokoroInfo
from engines.runtime.engine import Engine
from engines.spoken import Abilities, Lengths, Piece, Spoken
from engines.vits import Delivery, Noise
from engines.words import WordFinder

VERSION: Final = 1
"""Rises whenever the same pack makes other sounds of the same phonemes, but for the table of its signs."""

STYLE_ROWS: Final = 510
"""Of a style's table: the phonemes that a run takes at most."""

FRAMES_PER_DURATION: Final = 1200
"""48 kHz frames of a unit of the durations, 25 ms."""

STYLE_NUMBERS: Final = 256
"""Of one style: 128 for the decoder, 128 for the prosody."""

_PAD: Final = 0
"""The id at both ends of a sentence."""

_ABILITIES: Final = Abilities(
    streaming=False,
    styles=True,
    # 160 phonemes are some 10 s: nobody shall wait for more than that to be computed. At 400 signs may be added.
    lengths=Lengths(160, 400),
    trial_ids=100,
)

_SLOWEST: Final = 0.5
_QUICKEST: Final = 2.0
"""What the model was trained for of its factor on speed."""

_QUIET: Final = 1e-3
"""-60 dB: what is below it before the first sound is no part of it."""

_LEAD: Final = PERIOD
"""Frames that are left of the silence before the first sound, of which the model makes a quarter of a second."""

Styles = NDArray[np.float32]
"""Shape [speakers, STYLE_ROWS, 256]: by the number of phonemes."""


class KokoroVoice:
    """A `Voice`. Two threads may share its engine where that lets them."""

    abilities: Final = _ABILITIES

    def __init__(self, info: KokoroInfo, styles: Styles, engine: Engine) -> None:
        """Own `engine`, which runs the graph that `engines.kokoro_graph` describes."""
        self.info: Final = info
        self._styles = styles
        self._engine: Final = engine
        self._phonemes = KokoroPhonemes(info.language, info.phoneme_ids)
        self._words = WordFinder(info.phoneme_ids)
        table = "".join(f"{sound}\t{sign}\n" for sound, sign in sorted(table_for(info.language).items()))
        self.fingerprint: Final = f"{VERSION} {hashlib.sha256(table.encode()).hexdigest()}"

    @property
    def backend(self) -> str:
        """See `Voice.backend`."""
        return self._engine.backend

    @property
    def precision(self) -> str:
        """See `Voice.precision`."""
        return self._engine.precision

    def ids(self, phonemes: Sequence[str]) -> tuple[list[int], list[str]]:
        """See `Voice.ids`."""
        return self._phonemes.ids(phonemes)

    def speak(
        self,
        ids: Sequence[int],
        delivery: Delivery,
        rng: np.random.Generator,  # noqa: ARG002  there is no chance in it
        *,
        capacity: int,
        frugal: bool = False,  # noqa: ARG002  a sentence is one run anyway
        held: int = 0,  # noqa: ARG002
        noise: Noise | None = None,  # noqa: ARG002
    ) -> Spoken:
        """See `Voice.speak`: all of the sentence is computed now."""
        ids = [_PAD, *ids[:STYLE_ROWS], _PAD]
        style, gain = self._style(delivery, max(0, len(ids) - 3))
        feeds: dict[str, NDArray[np.generic]] = {
            "tokens": np.array([ids], np.int64),
            "style": style[None],
            "speed": np.array([min(max(1 / delivery.length_scale, _SLOWEST), _QUICKEST)], np.float32),
            "gain": np.array([delivery.gain * gain], np.float32),
        }
        result = self._engine.run(feeds)
        sound, durations = result["pcm"], result["durations"]
        if not math.isfinite(float(sound.sum(dtype=np.float64))):
            raise SynthesisError(self.info.name, "its graph gave values that are no numbers")
        skipped = _silence_before(sound)
        starts = [word * FRAMES_PER_DURATION for word in self._words.starts(ids, durations)]
        words = [min(max(0, start - skipped), sound.size - skipped) for start in starts]
        return Spoken(words, _pieces(sound[skipped:], capacity))

    def _style(self, delivery: Delivery, row: int) -> tuple[NDArray[np.float32], float]:
        """Give the numbers for a sentence of `row` + 1 phonemes, and the factor on their loudness.

        A blend is so little work, some microseconds, that none is kept.
        """
        gains, mix = self.info.gains, delivery.mix
        if mix is None:
            return np.ascontiguousarray(self._styles[delivery.speaker, row]), gains[delivery.speaker]
        if mix.vector:
            return np.frombuffer(mix.vector, "<f2").astype(np.float32), gains[self.info.default_speaker]
        blended = np.zeros(STYLE_NUMBERS, np.float32)
        for speaker, weight in mix.parts:
            blended += np.float32(weight) * self._styles[speaker, row]
        return blended, sum(weight * gains[speaker] for speaker, weight in mix.parts)

    def abandon(self) -> None:
        """See `Voice.abandon`."""
        self._engine.abandon()

    def close(self) -> None:
        """See `Voice.close`."""
        self._engine.close()


def _silence_before(sound: Samples) -> int:
    """Give the frames to leave out at the beginning."""
    loud = np.abs(sound) > _QUIET * max(1e-9, float(np.abs(sound).max(initial=0)))
    return max(0, int(loud.argmax()) - _LEAD) if loud.any() else 0


def _pieces(sound: Samples, capacity: int) -> list[Piece]:
    size = capacity // PERIOD * PERIOD
    parts = [sound[begin : begin + size] for begin in range(0, sound.size, size)]
    return [Piece(part.size, part.size, partial(_copy, part)) for part in parts]


def _copy(part: Samples, output: Samples) -> None:
    np.copyto(output, part)

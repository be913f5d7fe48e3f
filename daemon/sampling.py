"""What a voice says to nobody, so that it can be judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from device.format import Samples
from engines.pack_info import AnyInfo
from engines.shelf import Preferences
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.voice import Voice


@dataclass(frozen=True, slots=True)
class Sample:
    """What the preferred voice is to say, as its pack has it and with nobody's preferences."""

    texts: Sequence[str]
    seed: int
    take: Callable[[list[Samples] | None, AnyInfo | None, str], None]
    """Called in the engine thread with the sound of each text, or None where a command came first, or, told last,
    something went wrong."""


def spoken(sample: Sample, synthesizer: Synthesizer, voice: Voice, stopped: Callable[[], bool]) -> list[Samples]:
    """Say it, in the engine thread; not all of it once `stopped`. SpeechError or PoolClosedError."""
    sounds: list[Samples] = []
    for text in sample.texts:
        utterance = Utterance(text, Preferences().delivery(voice.info), sample.seed)
        pieces = []
        for chunk in synthesizer.chunks(utterance, voice, Tally(), stopped):
            pieces.append(chunk.samples.copy())
            chunk.release()
        sounds.append(np.concatenate(pieces) if pieces else np.zeros(0, np.float32))
    return sounds

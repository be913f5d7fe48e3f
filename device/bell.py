"""Two small chimes, made of sines: no file, no licence, and the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from device.format import RATE, Samples

_PARTIALS: Final = ((1.0, 1.0, 1.0), (2.0, 0.35, 1.7), (3.01, 0.12, 2.6), (5.43, 0.05, 4.5))
"""Of a struck bar, in multiples of the note: frequency, level, how many times as quickly it dies away."""

_ATTACK_S: Final = 0.004
"""Of a soft mallet: no click."""

_RELEASE_S: Final = 0.03
"""Over which the last of it is faded out, -40 dB by then."""


@dataclass(frozen=True, slots=True)
class Note:
    """One stroke."""

    hertz: float
    at_s: float
    level: float
    decay_s: float
    """To 37 %."""


BELLS: Final = {
    "attention": ((Note(659.26, 0.0, 0.8, 0.22), Note(880.0, 0.18, 1.0, 0.26)), 1.2),
    "done": ((Note(880.0, 0.0, 1.0, 0.16), Note(659.26, 0.12, 0.7, 0.18)), 0.8),
}
"""Name -> notes, and how long it lasts in seconds. A rising fourth asks to listen, a falling one closes."""

BELL_LUFS: Final = {"attention": -19.43, "done": -19.73}
"""Integrated loudness of each (ITU-R BS.1770), measured once; a test measures it again."""


def bell(name: str) -> Samples:
    """Make one of `BELLS`, its peak at 0.5."""
    notes, seconds = BELLS[name]
    sound = np.zeros(round(seconds * RATE))
    for note in notes:
        start = round(note.at_s * RATE)
        time = np.arange(sound.size - start) / RATE
        stroke = sum(
            level * np.sin(2 * np.pi * note.hertz * multiple * time) * np.exp(-time * speed / note.decay_s)
            for multiple, level, speed in _PARTIALS
        )
        sound[start:] += note.level * stroke * np.clip(time / _ATTACK_S, 0, 1)
    release = round(_RELEASE_S * RATE)
    sound[-release:] *= np.linspace(1, 0, release)
    samples: Samples = (0.5 * sound / np.abs(sound).max()).astype(np.float32)
    return samples

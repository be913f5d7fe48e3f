"""Whether speech carries the mark of `engines.watermark`."""

from __future__ import annotations

from typing import Final

import numpy as np

from device.format import RATE, Samples
from engines.runtime.engine import Engine
from engines.watermark import WINDOW

SPEEDS: Final = {"slow": 1.25, "normal": 1.0, "fast": 0.75}
"""At which the same sound is looked at, since it may have been stretched."""

LONGEST_S: Final = 10
"""Sound that is judged as one: of what is longer, a part may be marked."""

SHORTEST_S: Final = 0.5
"""Less is too little to tell."""

MARKED: Final = 0.5
"""Confidence from which speech counts as marked."""

_LEVEL: Final = 0.08
"""RMS to which a sound is brought, about that of speech at -23 LUFS: unmarked speech 40 dB below it had up to 0.32."""

_LEAST: Final = 1e-5
"""RMS, -100 dB: what is quieter is silence."""

_QUIET: Final = 0.05
"""Windows with less than this share of the loudest one's magnitudes do not count, as in Perth."""


def confidences(sound: Samples, detector: Engine) -> list[float | None]:
    """Give for each stretch of up to `LONGEST_S` how sure it is that it is marked, 0 to 1. EngineError.

    None for a stretch that is silent, or too short to tell.
    """
    size = LONGEST_S * RATE
    return [_confidence(sound[start : start + size], detector) for start in range(0, max(1, sound.size), size)]


def _confidence(sound: Samples, detector: Engine) -> float | None:
    if sound.size < SHORTEST_S * RATE:
        return None
    rms = float(np.sqrt(np.mean(np.square(sound, dtype=np.float64))))
    if rms < _LEAST:
        return None
    judged = detector.run({"sound": np.pad(sound * np.float32(_LEVEL / rms), WINDOW // 2, mode="reflect")})
    level = judged["level"]
    loud = level > level.max() * _QUIET
    marks, weights = [], []
    for name in SPEEDS:
        weight, mark = judged[name]
        counted = loud[np.arange(mark.size) * loud.size // mark.size]
        weights.append(float(weight[counted].mean()))
        marks.append(float(mark[counted].mean()))
    shares = np.exp(np.array(weights) - max(weights))
    return float(np.clip(np.dot(marks, shares) / shares.sum(), 0, 1))

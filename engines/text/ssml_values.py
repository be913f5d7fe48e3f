"""The values of SSML's attributes: times, speeds and volumes, as numbers. Each gives None for what is no such value."""

from __future__ import annotations

import re
from typing import Final

_TIME: Final = re.compile(r"\+?(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*(ms|s)", re.IGNORECASE)
_NUMBER: Final = r"(\d{1,6}(?:\.\d{0,6})?|\.\d{1,6})"
_PERCENT: Final = re.compile(rf"([+-]?){_NUMBER}\s*%")
_FACTOR: Final = re.compile(_NUMBER)
_DECIBEL: Final = re.compile(rf"([+-]?){_NUMBER}\s*dB", re.IGNORECASE)

_STRENGTHS: Final = {"none": 0.0, "x-weak": 0.1, "weak": 0.25, "medium": 0.5, "strong": 0.8, "x-strong": 1.2}
"""Seconds. SSML leaves all but their order open. `medium` counts where no attribute does; a full stop is as long."""

_RATES: Final = {"x-slow": 0.5, "slow": 0.8, "medium": 1.0, "default": 1.0, "fast": 1.25, "x-fast": 1.6}

_VOLUMES: Final = {
    "silent": 0.0,
    "x-soft": 0.25,
    "soft": 0.5,
    "medium": 1.0,
    "default": 1.0,
    "loud": 1.41,
    "x-loud": 2.0,
}
"""Steps of 6 dB below the voice's own level and 3 above, where 6 would clip a voice that is at full scale."""

_FULL_VOLUME: Final = 100.0
"""SSML 1.0's volumes are 0 to 100, the last being the default."""


def pause_s(time: str | None, strength: str | None) -> float | None:
    """Give the seconds of a `break`: `time` counts where both are given."""
    if time is not None:
        match = _TIME.fullmatch(time.strip())
        return None if match is None else float(match[1]) * (0.001 if match[2].lower() == "ms" else 1.0)
    return _STRENGTHS.get((strength or "medium").strip().lower())


def rate(value: str) -> float | None:
    """Give a factor on the speed: of a word, `120%`, `+20%` or `1.2`."""
    value = value.strip().lower()
    if value in _RATES:
        return _RATES[value]
    if (match := _PERCENT.fullmatch(value)) is not None:
        return _of_percent(match[1], float(match[2]))
    return float(value) if _FACTOR.fullmatch(value) else None


def volume(value: str) -> float | None:
    """Give a factor on the samples: of a word, `+6dB`, `+20%`, or SSML 1.0's 0 to 100."""
    value = value.strip().lower()
    if value in _VOLUMES:
        return _VOLUMES[value]
    if (match := _DECIBEL.fullmatch(value)) is not None:
        decibel = float(f"{match[1]}{match[2]}")
        return float(10 ** (min(decibel, 100.0) / 20))
    if (match := _PERCENT.fullmatch(value)) is not None:
        return _of_percent(match[1], float(match[2]))
    return float(value) / _FULL_VOLUME if _FACTOR.fullmatch(value) else None


def _of_percent(sign: str, percent: float) -> float:
    if not sign:
        return percent / 100
    return max(0.0, 1 + float(f"{sign}{percent}") / 100)

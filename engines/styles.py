"""How something is said: styles by name, blends of a voice's own styles, and vectors that others have made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engines.blends import NAME, Blend, Mix, read_blend
from engines.errors import StyleError, excerpt
from engines.pack_info import AnyInfo, KokoroInfo
from engines.vits import Delivery

_DEFINED: Final = re.compile(rf"\s*({NAME})\s*=\s*(.*)")

_LIMITS: Final = {"rate": (0.5, 2.0), "gain": (0.0, 2.0)}


@dataclass(frozen=True, slots=True)
class Style:
    """A manner of speaking."""

    blend: Blend = ()
    """Of the voice's own styles or speakers; empty: its usual one."""
    voice: str = ""
    """A pack's name; empty: whoever speaks."""
    rate: float = 1.0
    gain: float = 1.0
    """Factors on the command's own."""


USUAL: Final = Style()


def read_definitions(lines: Sequence[str]) -> dict[str, Style]:
    """Read lines such as `urgent = am_michael rate=1.2 gain=1.3 voice=kokoro-en-us`, all after the name optional.

    ValueError says what is wrong with which.
    """
    named: dict[str, Style] = {}
    for line in lines:
        found = _DEFINED.fullmatch(line)
        if found is None:
            raise ValueError(f"a list of lines such as 'urgent = am_michael rate=1.2', which {excerpt(line)!r} is not")
        if found[1] in named:
            raise ValueError(f"without two definitions of {found[1]}")
        named[found[1]] = _defined(found[1], found[2].split())
    return named


def _defined(name: str, words: Sequence[str]) -> Style:
    style = USUAL
    for word in words:
        key, _, value = word.partition("=")
        if not value:
            try:
                style = replace(style, blend=read_blend(word))
            except StyleError as error:
                raise ValueError(f"such that {name}: {error}") from error
        elif key == "voice":
            style = replace(style, voice=value)
        elif key in _LIMITS:
            low, high = _LIMITS[key]
            try:
                number = float(value)
            except ValueError:
                number = math.nan
            if not low <= number <= high:
                raise ValueError(f"such that the {key} of {name} is a number from {low:g} to {high:g}")
            style = replace(style, rate=number) if key == "rate" else replace(style, gain=number)
        else:
            raise ValueError(f"such that {name} has no {excerpt(key)!r}: there are a blend, voice, rate and gain")
    return style


def find(name: str, named: Mapping[str, Style]) -> Style:
    """Give a style: one of `named`, or else a blend of what the voice itself has. StyleError where it is neither."""
    if not name:
        return USUAL
    return named[name] if name in named else Style(read_blend(name))


def dressed(delivery: Delivery, info: AnyInfo, style: Style, vector: bytes, named: Mapping[str, Style]) -> Delivery:
    """Let a delivery by the voice `info` have the sound of a style or vector; rate and gain are the caller's.

    StyleError where the voice has no such style, or cannot blend.
    """
    if vector:
        if not isinstance(info, KokoroInfo):
            raise StyleError(
                "style_vector", f"is nothing for {info.name}: voices of the {info.family} family take none"
            )
        return replace(delivery, mix=Mix(vector=vector))
    for name, _ in style.blend:
        if name not in info.speaker_names:
            known = [*named, *info.speaker_names]
            raise StyleError(name, f"is no style of {info.name}: there are {', '.join(known[:20]) or 'none'}")
    parts = tuple((info.speaker_names[name], weight) for name, weight in style.blend)
    if len(parts) > 1:
        if not isinstance(info, KokoroInfo):
            raise StyleError("the blend", f"cannot be made: voices of the {info.family} family blend no speakers")
        return replace(delivery, mix=Mix(parts))
    return replace(delivery, speaker=parts[0][0]) if parts else delivery

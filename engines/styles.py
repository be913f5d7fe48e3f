"""How something is said: styles by name, blends of a voice's own styles, and vectors that others have made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from engines.blends import NAME, Blend, Mix, read_blend
from engines.errors import StyleError, excerpt
from engines.pack_info import AnyInfo, KokoroInfo
from engines.text.gaps import Gaps, gaps
from engines.vits import Delivery

_DEFINED: Final = re.compile(rf"\s*({NAME})\s*=\s*(.*)")

_LIMITS: Final = {
    "rate": (0.5, 2.0),
    "gain": (0.0, 2.0),
    "sentence_gap_ms": (0.0, 10_000.0),
    "paragraph_gap_ms": (0.0, 10_000.0),
}
"""What a definition may set, and from where to where."""


@dataclass(frozen=True, slots=True)
class Style:
    """A manner of speaking."""

    blend: Blend = ()
    """Of the voice's own styles or speakers; empty: whoever speaks."""
    voice: str = ""
    """A pack's name; empty: whoever speaks."""
    rate: float = 1.0
    gain: float = 1.0
    """Factors on the command's own."""
    sentence_gap_ms: float | None = None
    paragraph_gap_ms: float | None = None
    """Silence between sentences and paragraphs; None: as the owner has it, but after a paragraph no less than after a
    sentence."""

    @property
    def names_somebody(self) -> bool:
        """Tell whether it says who speaks, not only how."""
        return bool(self.blend or self.voice)

    def gaps(self, usual: Gaps) -> Gaps:
        """Give the silence in this manner, `usual` being what the owner wants of every voice."""
        if self.sentence_gap_ms is None and self.paragraph_gap_ms is None:
            return usual
        own = gaps(self.sentence_gap_ms or 0, self.paragraph_gap_ms or 0)
        sentence = usual.sentence if self.sentence_gap_ms is None else own.sentence
        return Gaps(sentence, max(usual.paragraph, sentence) if self.paragraph_gap_ms is None else own.paragraph)


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
    fields: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        if not value:
            try:
                fields["blend"] = read_blend(word)
            except StyleError as error:
                raise ValueError(f"such that {name}: {error}") from error
        elif key == "voice":
            fields[key] = value
        elif key in _LIMITS:
            low, high = _LIMITS[key]
            try:
                fields[key] = float(value)
            except ValueError:
                fields[key] = math.nan
            if not low <= fields[key] <= high:
                raise ValueError(f"such that the {key} of {name} is a number from {low:g} to {high:g}")
        else:
            known = ", ".join(_LIMITS)
            raise ValueError(f"such that {name} has no {excerpt(key)!r}: there are a blend, voice, {known}")
    return Style(**fields)


def find(name: str, named: Mapping[str, Style]) -> Style:
    """Give a style: one of `named`, or else a blend of what the voice itself has. StyleError where it is neither."""
    if not name:
        return USUAL
    return named[name] if name in named else Style(read_blend(name))


def dressed(
    delivery: Delivery,
    info: AnyInfo,
    style: Style,
    vector: bytes,
    named: Mapping[str, Style],
    *,
    lenient: bool = False,
) -> Delivery:
    """Let a delivery by the voice `info` have a style's or vector's sound, and pauses; rate and gain are the caller's.

    StyleError where the voice has no such style, or cannot blend; `lenient`: it then keeps the sound that it has.
    """
    delivery = replace(delivery, gaps=style.gaps(delivery.gaps))
    try:
        return _sounding(delivery, info, style, vector, named)
    except StyleError:
        if lenient:
            return delivery
        raise


def _sounding(delivery: Delivery, info: AnyInfo, style: Style, vector: bytes, named: Mapping[str, Style]) -> Delivery:
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
    return replace(delivery, speaker=parts[0][0], mix=None) if parts else delivery

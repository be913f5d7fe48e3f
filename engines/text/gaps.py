"""Silence that an owner wants between sentences and paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from device.format import PERIOD, RATE

_PARAGRAPH: Final = re.compile(r"\n[^\S\n]*\n\s*")
"""A blank line, or several."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Frames added between two sentences, whole periods; 0 leaves the voice's own pause."""

    sentence: int = 0
    paragraph: int = 0
    """In place of `sentence` where a blank line divides them."""


NO_GAPS: Final = Gaps()


def gaps(sentence_ms: int, paragraph_ms: int) -> Gaps:
    """Give these gaps, filled up to whole periods of 20 ms."""

    def frames(milliseconds: int) -> int:
        return -(-milliseconds * RATE // 1000 // PERIOD) * PERIOD

    return Gaps(frames(sentence_ms), frames(paragraph_ms))


def paragraphs(text: str, wanted: Gaps) -> Iterator[str]:
    """Yield a text's paragraphs where they are told from sentences; else all of it, undivided."""
    if wanted.sentence == wanted.paragraph:
        yield text
        return
    yield from (part for part in _PARAGRAPH.split(text) if part.strip())

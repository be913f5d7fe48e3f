"""Silence that an owner wants between sentences and paragraphs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from device.format import PERIOD, RATE
from engines.text.script import Passage, Script

_PARAGRAPH: Final = re.compile(r"\n[^\S\n]*\n\s*")
"""A blank line, or several."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Frames added between two sentences, whole periods; 0 leaves the voice's own pause."""

    sentence: int = 0
    paragraph: int = 0
    """In place of `sentence` where a blank line divides them."""


NO_GAPS: Final = Gaps()


def gaps(sentence_ms: float, paragraph_ms: float) -> Gaps:
    """Give these gaps, filled up to whole periods of 20 ms."""

    def frames(milliseconds: float) -> int:
        return math.ceil(milliseconds * RATE / 1000 / PERIOD) * PERIOD

    return Gaps(frames(sentence_ms), frames(paragraph_ms))


def divided(script: Script, wanted: Gaps) -> Script:
    """Give each paragraph of plain text a passage of its own, where paragraphs are told from sentences.

    `wanted` are the utterance's; a passage in a style may have others, of which nothing is known here.
    """
    told = wanted.sentence != wanted.paragraph
    parts = (_paragraphs(passage) if told or passage.style else (passage,) for passage in script.passages)
    return replace(script, passages=tuple(chain.from_iterable(parts)))


def _paragraphs(passage: Passage) -> Iterator[Passage]:
    if len(passage.spans) != 1 or not isinstance(passage.spans[0], str) or passage.clip:
        yield passage
        return
    texts = [text for text in _PARAGRAPH.split(passage.spans[0]) if text.strip()]
    if not texts:
        yield passage
    for number, text in enumerate(texts):
        pause_s = passage.pause_s if number == len(texts) - 1 else 0.0
        yield replace(passage, spans=(text,), pause_s=pause_s, opens=passage.opens or number > 0)

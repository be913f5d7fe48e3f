"""A script while it is being written: spans come, manners change, pauses part passages."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field, replace
from typing import Final

from engines.text.script import Passage, Script, Span

MOST_WARNINGS: Final = 10

SENTENCE, PARAGRAPH = "\u2028", "\u2029"
"""What parts sentences and paragraphs until a passage is whole: an author's own are white space like all other."""

_INNER_SPACE: Final = re.compile(f"[^\\S{SENTENCE}{PARAGRAPH}]+")
_BOUNDARIES: Final = re.compile(f" *[{SENTENCE}{PARAGRAPH}][ {SENTENCE}{PARAGRAPH}]*")


@dataclass(frozen=True, slots=True)
class Manner:
    """How what stands inside some element is said."""

    rate: float = 1.0
    gain: float = 1.0
    voice: str = ""
    language: str | None = None
    style: str = ""


@dataclass(slots=True)
class Draft:
    """Takes a script's parts in their order. For one thread."""

    passages: list[Passage] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    manner: Manner = field(default_factory=Manner)
    pauses_s: float = 0.0
    """All of them."""
    in_one: int = 0
    """Above 0 all goes into one passage, whatever manner or pause comes."""

    def warn(self, text: str) -> None:
        """Tell the author something, once."""
        if len(self.warnings) < MOST_WARNINGS:
            self.warnings[text] = None

    def change(self, manner: Manner) -> None:
        """Say what follows in this manner; inside a sound's substitute all is said in one."""
        if manner != self.manner and not self.in_one:
            self.flush()
            self.manner = manner

    def flush(self, clip: str = "") -> None:
        """Make a passage of what came since the last one."""
        spans = _tidy(self.spans)
        self.spans = []
        if spans or clip:
            how = self.manner
            self.passages.append(
                Passage(
                    spans,
                    rate=how.rate,
                    gain=how.gain,
                    voice=how.voice,
                    language=how.language,
                    style=how.style,
                    clip=clip,
                )
            )

    def pause(self, seconds: float) -> None:
        """Be silent for so long."""
        if seconds <= 0 or self.in_one:
            return
        self.pauses_s += seconds
        self.flush()
        if not self.passages:
            self.passages.append(Passage())
        self.passages[-1] = replace(self.passages[-1], pause_s=self.passages[-1].pause_s + seconds)

    def script(self) -> Script:
        """Give what the document says."""
        self.flush()
        return Script(tuple(_joined(self.passages)), tuple(self.warnings))


def _tidy(spans: list[Span]) -> tuple[Span, ...]:
    """Join texts, make one space of white space, and line breaks of boundaries."""
    joined: list[Span] = []
    for is_text, run in itertools.groupby(spans, lambda span: isinstance(span, str)):
        alike = list(run)
        joined += ["".join(map(str, alike))] if is_text else alike
    tidied = [
        _BOUNDARIES.sub(_line_break, _INNER_SPACE.sub(" ", span)) if isinstance(span, str) else span for span in joined
    ]
    if all(isinstance(span, str) and not span.strip() for span in tidied):
        return ()
    return tuple(span for span in tidied if span != "")


def _line_break(match: re.Match[str]) -> str:
    return "\n\n" if PARAGRAPH in match[0] else "\n"


def _joined(passages: list[Passage]) -> list[Passage]:
    """End what a pause cuts in mid-sentence with a comma: the voice then sounds as if it went on, which it does."""
    made = list(passages)
    for i in range(len(made) - 1):
        before, after = made[i].text.rstrip(), made[i + 1].text.lstrip()
        if made[i].pause_s and before and before[-1].isalnum() and after[:1].islower():
            *others, last = made[i].spans
            ended = (f"{last.rstrip()},",) if isinstance(last, str) else (last, ",")
            made[i] = replace(made[i], spans=(*others, *ended))
    return made

"""The steps from written text to words, in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from engines.text.normalize.rules import written_forms

EmojiPolicy = Literal["drop", "name", "keep"]


@dataclass(frozen=True, slots=True)
class Step:
    """What one step made of a text."""

    name: str
    text: str


class Normalizer:
    """Puts the texts of one language into words. Thread-safe: it keeps nothing between calls."""

    def __init__(self, language: str, *, emoji: EmojiPolicy = "drop") -> None:
        """`language` as espeak-ng or BCP 47 names it: "en-us", "en-gb", "de"."""
        self.emoji = emoji
        forms = written_forms(language)
        self._steps: tuple[tuple[str, Callable[[str], str]], ...] = (("written forms", forms),) if forms else ()

    def normalize(self, text: str) -> str:
        """Return the text as it is to be said."""
        for _name, step in self._steps:
            text = step(text)
        return text

    def steps(self, text: str) -> list[Step]:
        """Return what each step makes of the text, in order: the last one's is what `normalize` returns."""
        made = []
        for name, step in self._steps:
            text = step(text)
            made.append(Step(name, text))
        return made

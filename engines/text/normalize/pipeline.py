"""The steps from written text to words, in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from engines.text.normalize import markup
from engines.text.normalize.markup import EmojiPolicy, plain, unescape
from engines.text.normalize.repair import repair
from engines.text.normalize.rules import DateOrder, traced_forms

VERSION: Final = 3
"""Rises whenever the words that come out for a text change: recordings of the former words are not played again."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step made of a text."""

    name: str
    text: str


class Normalizer:
    """Puts the texts of one language into words. Thread-safe: it keeps nothing between calls.

    Takes time linear to the text; the caller bounds its length.
    """

    def __init__(
        self,
        language: str,
        *,
        emoji: EmojiPolicy = "drop",
        date_order: DateOrder = "auto",
        written_forms: bool = True,
    ) -> None:
        """`language` as espeak-ng or BCP 47 names it: "en-us", "en-gb", "de".

        Without `written_forms` only what would be heard as noise goes: markup, invisible characters, emoji.
        """
        self.fingerprint: Final = f"{VERSION} {language} {emoji} {date_order} {written_forms}"
        """Tells apart what makes other words of the same text."""
        self._steps: tuple[tuple[str, Callable[[str], str]], ...] = (
            ("unicode", repair),
            ("html", unescape),
            ("markdown", plain),
            ("emoji", partial(markup.emoji, policy=emoji)),
        )
        self._forms = traced_forms(language, date_order=date_order) if written_forms else None

    def normalize(self, text: str) -> str:
        """Return the text as it is to be said."""
        for _name, step in self._steps:
            text = step(text)
        return self._forms(text, None) if self._forms else text

    def steps(self, text: str) -> list[Step]:
        """Return what each step that changed something made of the text, in order, the text itself first.

        The last one's is what `normalize` returns.
        """
        made = [Step("text", text)]

        def tell(name: str, text: str) -> None:
            if text != made[-1].text:
                made.append(Step(name, text))

        for name, step in self._steps:
            text = step(text)
            tell(name, text)
        if self._forms:
            tell("spaces", self._forms(text, tell))
        return made

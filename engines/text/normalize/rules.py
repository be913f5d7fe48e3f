"""Which rules put a language's written forms into words."""

from __future__ import annotations

from collections.abc import Callable

from engines.text.normalize.english import forms as english

WrittenForms = Callable[[str], str]
"""Text in, the same text with its numbers, dates, money, signs and abbreviations in words out.

Pure, callable from any thread, in time linear to the text; a text without such forms comes back as it is.
"""


def written_forms(language: str) -> WrittenForms | None:
    """Return the rules of a language, named as espeak-ng or BCP 47 names it ("en-us", "de"); None where there are none.

    Loads what the language needs, so that a voice of one language costs nothing for the others.
    """
    return english.written_forms if language.lower().startswith("en") else None

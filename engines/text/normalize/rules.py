"""Which rules put a language's written forms into words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from engines.text.normalize.english import forms as english
from engines.text.normalize.english.reading import Reading
from engines.text.normalize.repair import plain_numerals
from engines.text.normalize.unsaid import unsaid

WrittenForms = Callable[[str], str]
"""Text in, the same text with its numbers, dates, money, signs and abbreviations in words out.

Pure, callable from any thread, in time linear to the text; a text without such forms comes back as it is.
"""

DateOrder = Literal["auto", "day-month", "month-day"]
"""How 03/04/2026 is read: as the place does, or as told."""

Trace = Callable[[str, str], None]
"""Is told the name of each rule that changed a text, and what it made of it."""

_AMERICAN: Final = frozenset(("en", "en-us", "en-us-nyc"))


def written_forms(language: str, *, date_order: DateOrder = "auto") -> WrittenForms | None:
    """Return the rules of a language, named as espeak-ng or BCP 47 names it ("en-us", "de"); None where there are none.

    Loads what the language needs, so that a voice of one language costs nothing for the others.
    """
    rules = traced_forms(language, date_order=date_order)
    return None if rules is None else lambda text: rules(text, None)


def traced_forms(language: str, *, date_order: DateOrder = "auto") -> Callable[[str, Trace | None], str] | None:
    """Return the same rules, which also tell what each of them did."""
    reading = english_reading(language, date_order=date_order)
    if reading is not None:
        return lambda text, told: _english(text, reading, told)
    from engines.text.normalize.tongues.shorthand import shorthand  # noqa: PLC0415  English needs none of it
    from engines.text.normalize.tongues.table import written_forms as forms_of  # noqa: PLC0415

    name = re.split("[-_]", language.lower(), maxsplit=1)[0]
    forms = forms_of(language, month_first=date_order == "month-day") or unsaid(name)
    return None if forms is None else partial(_foreign, forms, shorthand(name))


def _foreign(forms: WrittenForms, short: WrittenForms | None, text: str, told: Trace | None) -> str:
    if short:
        text = short(text)
        if told:
            told("abbreviations and addresses", text)
    made = forms(plain_numerals(text))
    if told:
        told("written forms", made)
    return made


def english_reading(language: str, *, date_order: DateOrder = "auto") -> Reading | None:
    """Return how English is read in a place, None for another language. All English but American is as in Britain."""
    name = language.lower().replace("_", "-")
    if name.partition("-")[0] != "en":
        return None
    british = name not in _AMERICAN
    return Reading(british=british, day_first=british if date_order == "auto" else date_order == "day-month")


def _english(text: str, reading: Reading, told: Trace | None) -> str:
    reading = replace(reading, alone=len(text.split(maxsplit=1)) == 1)
    for name, kind in english.kinds(text):
        made = kind(text, reading)
        if told and made != text:
            told(name, made)
        text = made
    return english.tidy(text)

"""SSML's say-as: a text whose kind is told."""

from __future__ import annotations

from typing import Final

from engines.text.normalize.english.said_as import said_as
from engines.text.normalize.repair import repair
from engines.text.normalize.rules import english_reading

_ALSO: Final = {"number": "cardinal", "spell-out": "characters", "verbatim": "characters", "measure": "unit"}
"""SSML leaves the kinds open: what others call them."""


def say_as(text: str, interpret_as: str, fmt: str | None, language: str) -> str | None:
    """Return `text` in words, read as what `interpret_as` says; None where it is no such thing, or nobody knows how.

    `interpret_as`: cardinal, ordinal, digits, characters (or spell-out, verbatim), fraction, date, time, telephone,
    currency or unit.
    `fmt`: of a date, the order of its parts, such as "dmy" or "my"; of a currency or unit, its code where the text has
    none.
    """
    interpret_as = _ALSO.get(interpret_as, interpret_as)
    reading = english_reading(language)
    if reading is not None:
        return said_as(repair(text), interpret_as, fmt, reading)
    from engines.text.normalize.tongues.table import say_as as told_as  # noqa: PLC0415  English needs none of it

    return told_as(repair(text), interpret_as, fmt, language)

"""What `shorthand` knows of a language, and how its tables are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

NAME: Final = r"(?<!\w)([A-ZÀ-Þ][a-zß-ÿ]{2,20}(?: [A-ZÀ-Þ][a-zß-ÿ]{2,20})? )"
NUMERAL_OF_NAME: Final = NAME + r"(?=[IVX]{2,6}\b|[IV]\b)ROMAN(?![\w'’./-]\w|\w)"


@dataclass(frozen=True, slots=True, eq=False)
class Shorthand:
    """A language's words for signs in addresses, its abbreviations, and where it writes Roman numerals."""

    dot: str
    at: str
    slash: str
    dash: str
    underscore: str
    colon: str
    signs: Mapping[str, str] = field(default_factory=dict)
    spaced: bool = True
    """Whether its words are parted by spaces."""
    until: str = ""
    days: Mapping[str, str] = field(default_factory=dict)
    """Days of the week, as they are shortened in ranges."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Before a name, with or without a full stop; behind a slash what a woman has."""
    abbreviations: Mapping[str, str] = field(default_factory=dict)
    """With their full stops; a space in them may be missing."""
    phrases: tuple[tuple[str, str], ...] = ()
    """Patterns and what they become, such as halves that are no numbers."""
    romans: tuple[tuple[str, Callable[[str, int], str]], ...] = ()
    """Patterns with what stays as their first group and ROMAN for the numeral; and its figures, given that group."""


def table(text: str) -> dict[str, str]:
    """Read lines `written | said`."""
    rows = (line.split("|") for line in text.strip().splitlines())
    return {short.strip(): said.strip() for short, said in rows}


def days_of(short: str, names: str) -> dict[str, str]:
    """`short` may have several rows of seven, one after the other."""
    written, said = short.split(), names.split()
    return {day: said[i % len(said)] for i, day in enumerate(written)}


def relations(names: str) -> dict[str, str]:
    """Read what the signs ≤≥≠≈÷∞√ are called, parted by bars."""
    return dict(zip("≤≥≠≈÷∞√", names.split("|"), strict=True))


def figures(_: str, number: int) -> str:
    """Return a Roman numeral's figures, whatever goes before it."""
    return str(number)

"""Numbers as people and sensors write them: which mark groups digits and which divides off the fraction.

The rule. What several marks leave no doubt about is taken as it stands: 1.234.567 and 1,234,567 are grouped,
1.234,5 and 1,234.5 are grouped and have a fraction, spaces and apostrophes group. One mark that is the locale's own
is the decimal one, save that where the locale's is a point, a comma before exactly three digits groups. The foreign
point (6.5, 2.718) is a sensor's decimal point too, and never makes a thousand, save before exactly three digits in
sums of money and before what is counted (1.500 €, 1.200 Besucher), where nobody writes thousandths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

SPACES: Final = "\u00a0\u202f\u2009"
"""Spaces that do not part a number from its next group."""

NUMERAL: Final = rf"\d+(?:[.,'’{SPACES}]\d+)*"
"""What may be a number; each mark stands between digits, so this cannot run away."""

SPACED: Final = rf"[1-9]\d{{0,2}}(?: \d{{3}}){{1,5}}(?!\d)(?:[.,]\d+(?!\d))?(?![ .,]\d)|{NUMERAL}"
"""The same, and groups of three behind ordinary spaces, which may have been narrow ones before the text came here."""

ROMAN: Final = r"(?=[IVX])X{0,3}(?:IX|IV|V?I{0,3})"
"""A Roman numeral up to XXXIX: longer ones are words as often."""
_ROMAN_VALUES: Final = {"I": 1, "V": 5, "X": 10}

_GROUPING: Final = re.compile(rf"[ '’{SPACES}](?=\d{{3}}(?!\d))")
_MARKED: Final = re.compile(r"[\d.,]+")
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}(?:([.,])\d{3})(?:\1\d{3})*")


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number that has been read; digits are kept as text, since zeros count."""

    whole: str
    fraction: str = ""
    negative: bool = False


def read(written: str, *, decimal: str, counts: bool = False, negative: bool = False) -> Numeral | None:
    """Return what NUMERAL or SPACED took, or None where it is no number (a version, an address, a list).

    `decimal`: the locale's mark. `counts`: it stands before money or something counted.
    """
    bare = written if written.isdigit() else _GROUPING.sub("", written)
    if bare.isdigit():
        return Numeral(bare, "", negative)
    points, commas = bare.count("."), bare.count(",")
    if not _MARKED.fullmatch(bare):
        return None
    if points and commas:
        mark = "." if bare.rindex(".") > bare.rindex(",") else ","
        whole, _, fraction = bare.rpartition(mark)
        grouped = mark not in whole and _THOUSANDS.fullmatch(whole)
        return Numeral(_bare(whole), fraction, negative) if grouped else None
    mark = "." if points else ","
    groups = bool(_THOUSANDS.fullmatch(bare))
    if points + commas > 1:
        return Numeral(_bare(bare), "", negative) if groups else None
    foreign = mark != decimal
    if groups and foreign and (mark == "," or counts):
        return Numeral(_bare(bare), "", negative)
    whole, _, fraction = bare.partition(mark)
    return Numeral(whole, fraction, negative)


def roman_value(numeral: str) -> int:
    """Return what ROMAN took as a number."""
    values = [_ROMAN_VALUES[letter] for letter in numeral]
    return sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True))


def _bare(digits: str) -> str:
    return digits.replace(".", "").replace(",", "")

"""Pieces of patterns that several readers share, and what stands around a match.

No pattern here or in the readers repeats something that repeats without a mark between, so each takes time linear to
the text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from engines.text.normalize.tongues.numeral import SPACES

GAP: Final = "[ \u00a0\u202f\u2009]?"
"""At most one space, of those that stand between a number and its unit."""

SIGN: Final = "(?P<sign>[-\u2212\u2013+±]?)"
"""A sign in front of a number, if what precedes it lets it be one: see `sign_of`."""

START: Final = rf"(?<!\w)(?<!\d[.,'’{SPACES}])"
"""Where a number may begin: not within another one."""

LETTER: Final = r"[^\W\d_]"

_DASHES: Final = "-\u2212\u2013"
_NEAR: Final = 40
"""Characters around a number that are looked at: two words of any length that decides something."""
_WORD_AFTER: Final = re.compile(rf"[ \u00a0\u202f\u2009]({LETTER}+)")
_FORM: Final = re.compile("[\u00b2\u00b3\u00b9\u2070-\u209c]")
_VULGAR: Final = re.compile("(?<=[\\d\u00bc-\u00be\u2150-\u215e])(?=[\u00bc-\u00be\u2150-\u215e])")
_NUMERIC: Final = re.compile("[\\d\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209c\u2150-\u215e]")
_FOREIGN_DIGIT: Final = re.compile(r"(?![0-9])\d")


def has_number(text: str) -> bool:
    """Whether there is anything to read at all. Most texts have nothing, so this comes first."""
    return bool(_NUMERIC.search(text)) or (not text.isascii() and any(map(str.isdigit, text)))


def plain_digits(text: str) -> str:
    """Return the text with digits of other scripts as 0 to 9, and ½ as 1/2. Raised and lowered digits stay."""
    if text.isascii():
        return text
    text = _FOREIGN_DIGIT.sub(lambda found: str(unicodedata.decimal(found[0])), text)
    text = _VULGAR.sub(" ", text)
    text = re.sub("[\u00bc-\u00be\u2150-\u215e]", lambda found: unicodedata.normalize("NFKC", found[0]), text)
    text = text.replace("\u2044", "/")
    if any(char.isdigit() and not char.isdecimal() and not _FORM.match(char) for char in text):
        text = "".join(_digit(char) for char in text)
    return text


def raised(text: str) -> str:
    """Return raised or lowered digits as plain ones."""
    return "".join(str(unicodedata.digit(char)) for char in text)


def before(text: str, position: int) -> tuple[str, str]:
    """Return the second to last and the last word in front of a place in the same line, in lower case."""
    near = text[max(0, position - _NEAR) : position].rpartition("\n")[2]
    words = near.rstrip(" \u00a0(:").split()[-2:]
    if not words or not words[-1].strip("(\"'«„“.").isalpha():
        return "", ""
    second = words[0].strip(",(\"'«„“") if len(words) > 1 else ""
    return (second.lower() if second.isalpha() else ""), words[-1].strip("(\"'«„“").lower()


def after(text: str, position: int) -> str:
    """Return the word that follows a place with one space between, or ""."""
    found = _WORD_AFTER.match(text, position, position + _NEAR)
    return found[1] if found else ""


def sign_of(text: str, start: int, sign: str) -> str:
    """Return "-", "+", "±" or "" for a sign at `start`: a dash after a letter, a digit or a bracket is none."""
    if not sign or sign == "±":
        return sign
    word_before = start > 0 and (text[start - 1].isalnum() or text[start - 1] in ")]_°%")
    if sign in {"+", "\u2212"}:
        return "+" if sign == "+" else "-"
    return "" if word_before or text[start - 1 : start] in set(_DASHES) else "-"


def _digit(char: str) -> str:
    digit = char.isdigit() and not char.isdecimal() and not _FORM.match(char)
    return f" {unicodedata.digit(char)} " if digit else char

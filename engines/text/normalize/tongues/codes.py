"""What is made of digits without being a quantity: codes, telephone numbers, versions, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from engines.text.normalize.tongues.numeral import read
from engines.text.normalize.tongues.tongue import Tongue, alternatives

_DIGIT_GROUPS: Final = r"\d+(?:[ ./\u00a0\u202f-]\d+){0,12}"
_PHONE: Final = re.compile(
    r"(?<![\w.,:/+-])(?:\+|\((?=\+?\d{2,4}\)))?\+?\d+(?:\)? ?[ ./()\u00a0\u202f-]\(?\d+){0,12}"
    r"(?!\w|[ ,:./()\u00a0\u202f-]{1,2}\d)"
)
_LOCAL: Final = re.compile(r"\d{3}-\d{4}|[2-9]\d{3}-\d{4}|9\d{4}-\d{4}")
_DOTTED: Final = re.compile(r"(?<![\w.,])(v?)(\d+(?:\.\d+){2,})(?![\w]|\.\d)", re.IGNORECASE)
_IBAN: Final = re.compile(r"(?<!\w)([A-Z]{2})(\d{2}) ((?:[A-Z0-9]{4} ){2,7}[A-Z0-9]{1,4})(?!\w)")
_NOT_DIGITS: Final = re.compile(r"\D+")

_CODE_DIGITS: Final = 3
"""A code has at least so many: what is shorter is said as a number even by those who read out codes."""

_LONG_NUMBER: Final = 5
"""Digits from which on a number of something is read out one by one."""

_PHONE_DIGITS: Final = range(6, 16)
"""E.164 allows 15; local numbers of fewer than six are written without a leading zero, so they do not get here."""


def labelled(tongue: Tongue, text: str) -> str:
    """Spell what follows a word such as "Code" or "Tel.": Code 480913, Tel. 555 0142."""
    text = _IBAN.sub(lambda found: f"{found[1]} {tongue.spell(found[2])}, {_by_signs(tongue, found[3])}", text)
    return _labelled(tongue).sub(lambda found: _code(tongue, found), text)


def numbered(tongue: Tongue, text: str) -> str:
    """Say what "Nr." stands for, and spell a long number behind it: Nr. 5, Nr. 480913."""

    def number(found: re.Match[str]) -> str:
        digits = found["digits"]
        return f"{tongue.number_sign} {tongue.spell(digits) if len(digits) >= _LONG_NUMBER else digits}"

    return _numbered(tongue).sub(number, text)


def phones(tongue: Tongue, text: str) -> str:
    """Spell what looks like a telephone number: it begins with + or 0, or is written as local ones are."""
    return _PHONE.sub(lambda found: _phone(tongue, found[0]), text)


def dotted(tongue: Tongue, text: str) -> str:
    """Put versions and IP addresses into words: 1.2.3, 192.168.0.1; but 1.234.567 is a number."""
    return _DOTTED.sub(lambda found: _version(tongue, found), text)


def grouped(tongue: Tongue, written: str) -> str:
    """Return digits one by one, with a short pause where anything stands between them."""
    return _joined(tongue, written, tongue.spell)


def telephone(tongue: Tongue, written: str) -> str:
    """Return a telephone number as the language reads such, with a short pause between its groups."""
    return _joined(tongue, written, tongue.phone_group)


def _joined(tongue: Tongue, written: str, group_words: Callable[[str], str]) -> str:
    groups = [group_words(group) for group in _NOT_DIGITS.split(written) if group]
    return (tongue.plus + " " if written.lstrip(" (").startswith("+") else "") + ", ".join(groups)


def _by_signs(tongue: Tongue, written: str) -> str:
    """Return groups of figures and capitals sign by sign."""
    return ", ".join(
        " ".join(tongue.spell(sign) if sign.isdecimal() else sign for sign in group) for group in written.split()
    )


def _code(tongue: Tongue, found: re.Match[str]) -> str:
    digits = _NOT_DIGITS.sub("", found[2])
    if len(digits) < _CODE_DIGITS or re.search(r"\d[.,:]\d{1,2}$", found[2]):
        return found[0]
    label = re.match(r"[^\W\d_]+", found[1])
    read_out = telephone if label and label[0].lower() in tongue.phone_labels else grouped
    return found[1] + read_out(tongue, found[2])


def _phone(tongue: Tongue, written: str) -> str:
    digits = _NOT_DIGITS.sub("", written)
    if len(digits) not in _PHONE_DIGITS:
        return written
    opens = written[0] in "+("
    zero = written[0] == "0" and not re.fullmatch(r"0+\.\d+|0+|\d\d([./-])\d\d(\1\d\d){0,2}", written)
    local = bool(_LOCAL.fullmatch(written)) and not _years(written)
    return telephone(tongue, written) if opens or zero or local else written


def _years(written: str) -> bool:
    return all(part[:2] in {"18", "19", "20", "21"} and len(part) == len("2026") for part in written.split("-"))


def _version(tongue: Tongue, found: re.Match[str]) -> str:
    if read(found[2], decimal=tongue.decimal) is not None:
        return found[0]
    parts = (tongue.whole(part) for part in found[2].split("."))
    return found[1] + (" " if found[1] else "") + f" {tongue.dot} ".join(parts)


@cache
def _labelled(tongue: Tongue) -> re.Pattern[str]:
    labels = alternatives(tongue.labels)
    small = r"[^\W\d_]{1,4}[.\u00b0]?"
    return re.compile(
        rf"(?<![^\W_])((?:{labels})(?![^\W\d_])[^\w\n+]{{0,3}}(?:{small}[^\w\n]{{1,3}})?)(\+?\(?{_DIGIT_GROUPS})",
        re.IGNORECASE,
    )


@cache
def _numbered(tongue: Tongue) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{tongue.number_signs}|(?i:{tongue.number_sign})) ?(?P<digits>\d+)(?![\w]|[.,]\d)")

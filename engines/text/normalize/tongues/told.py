"""Texts whose kind is told, as SSML's say-as does: no guessing what they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engines.text.normalize.tongues import chinese, chinese_words, codes, numbers
from engines.text.normalize.tongues.dates import day_of, full_year
from engines.text.normalize.tongues.numeral import ROMAN, Numeral, read, roman_value
from engines.text.normalize.tongues.times import said_time
from engines.text.normalize.tongues.tongue import Day, Tongue

_SIGNED: Final = re.compile(r"([-\u2212+]?) ?(\d[\d.,'’ \u00a0\u202f]*)")
_TIME: Final = re.compile(r"(\d{1,2})\s?[:.hH]\s?(\d\d)(?:[:.](\d\d))?(?:\s?(?:Uhr|h|min))?|(\d\d)(\d\d)")
_HALF: Final = re.compile(r"(\d{1,2})[:.]?(\d\d)?\s?([ap])\.?\s?(?:m\.?)?", re.IGNORECASE)
_NOON: Final = 12
_FRACTION: Final = re.compile(r"(?:\d{1,3}[ +])?\d{1,3}/[1-9]\d{0,2}")
_ROMAN: Final = re.compile(ROMAN)
_ORDER: Final = re.compile(r"[dmy]{1,3}")
_WIDTHS: Final = {"y": 4, "m": 2, "d": 2}
"""Figures of each part, where nothing stands between them."""
_DEFAULT_ORDER: Final = {3: "dmy", 2: "dm", 1: "y"}


def say_as(  # noqa: PLR0911  one a kind
    tongue: Tongue, text: str, interpret_as: str, fmt: str | None, forms: Callable[[str], str]
) -> str | None:
    """Return `text` in words, read as what it is said to be, or None where it is no such thing.

    `forms` are the language's rules, for money and units.
    """
    match interpret_as:
        case "cardinal":
            numeral = _numeral(text, tongue.decimal)
            return None if numeral is None else tongue.say(numeral)
        case "ordinal":
            number = _whole(text)
            return None if number is None else tongue.ordinal(number)
        case "digits":
            return codes.grouped(tongue, text) if _only_digits(text) else None
        case "telephone":
            return codes.telephone(tongue, text) if _only_digits(text) else None
        case "date":
            date = _date(text, fmt)
            return None if date is None else _date_words(tongue, *date)
        case "time":
            found = _TIME.fullmatch(_by_24(text))
            return said_time(tongue, found[1] or found[4], found[2] or found[5], found[3], "") if found else None
        case "fraction":
            return numbers.fractions(tongue, text.replace("+", " ")) if _FRACTION.fullmatch(text) else None
        case "currency" | "unit":
            return _measured(tongue, _with_code(text, fmt), forms)
        case _:
            return None


def chinese_as(  # noqa: PLR0911  one a kind
    text: str, interpret_as: str, fmt: str | None, forms: Callable[[str], str]
) -> str | None:
    """Do the same for Chinese."""
    match interpret_as:
        case "cardinal":
            numeral = _numeral(text, ".")
            return None if numeral is None else ("负" if numeral.negative else "") + chinese_words.say(numeral)
        case "ordinal":
            number = _whole(text)
            return None if number is None else "第" + chinese_words.cardinal(number)
        case "digits":
            return chinese_words.spell(re.sub(r"\D", "", text)) if _only_digits(text) else None
        case "telephone":
            return chinese.telephone(text) if _only_digits(text) else None
        case "date":
            date = _date(text, fmt)
            if date is None:
                return None
            year, month, day = date
            words = (f"{chinese_words.spell(str(year))}年" if year is not None else "") + (
                f"{chinese_words.cardinal(month)}月" if month is not None else ""
            )
            return words + (f"{chinese_words.cardinal(day)}日" if day is not None else "")
        case "time":
            found = _TIME.fullmatch(_by_24(text))
            return chinese.clock(found[1] or found[4], found[2] or found[5], found[3]) if found else None
        case "currency" | "unit":
            written = _with_code(text, fmt)
            words = forms(written)
            return words if words != written else None
        case "fraction":
            whole, _, part = text.replace("+", " ").rpartition(" ")
            return (forms(whole) + "又") * bool(whole) + forms(part) if _FRACTION.fullmatch(text) else None
        case _:
            return None


def _numeral(text: str, decimal: str) -> Numeral | None:
    if _ROMAN.fullmatch(text):
        return Numeral(str(roman_value(text)))
    found = _SIGNED.fullmatch(text)
    if not found:
        return None
    return read(found[2].strip(), decimal=decimal, counts=True, negative=found[1] in {"-", "\u2212"})


def _whole(text: str) -> int | None:
    if _ROMAN.fullmatch(text):
        return roman_value(text)
    found = re.fullmatch(r"(\d{1,9})\W{0,2}\w{0,4}", text)
    return int(found[1]) if found else None


def _only_digits(text: str) -> bool:
    return bool(re.fullmatch(r"[\d\s()+./-]*\d[\d\s()+./-]*", text))


def spelled(text: str, digits: Sequence[str], names: Mapping[str, str]) -> str:
    """Return a text sign by sign; `names`: what signs are called that are no letters and digits."""
    signs = (
        digits[int(char)] if char in "0123456789" else char.upper() if char.isalnum() else names.get(char, "")
        for char in text
    )
    return " ".join(filter(None, signs))


def _by_24(text: str) -> str:
    """Return "2:30pm" as "14:30"; another time as it is."""
    found = _HALF.fullmatch(text)
    if not found or not 1 <= int(found[1]) <= _NOON:
        return text
    hour = int(found[1]) % _NOON + _NOON * (found[3].lower() == "p")
    return f"{hour}:{found[2] or '00'}"


def _with_code(text: str, fmt: str | None) -> str:
    """Return a number with the currency or unit that `fmt` names, anything else as it is."""
    if not fmt or not text[-1:].isdecimal():
        return text
    return f"{text} {fmt}"


def _measured(tongue: Tongue, text: str, forms: Callable[[str], str]) -> str | None:
    if text in tongue.units:
        return tongue.units[text].many
    words = forms(text)
    return words if words != text else None


def _date(text: str, fmt: str | None) -> tuple[int | None, int | None, int | None] | None:
    """Return year, month and day, each if it is there."""
    parts = re.findall(r"\d+", text)
    order = re.sub(r"(.)\1+", r"\1", (fmt or "").lower())  # yyyymmdd
    compact = text.isdecimal() and len(order) > 1 and _ORDER.fullmatch(order)
    if compact and len(text) == sum(_WIDTHS[part] for part in order):
        parts, rest = [], text
        for part in order:
            parts.append(rest[: _WIDTHS[part]])
            rest = rest[_WIDTHS[part] :]
    if not _ORDER.fullmatch(order) or len(order) != len(parts):
        order = "ymd" if parts and len(parts) == len("ymd") and len(parts[0]) == len("2026") else ""
        order = order or _DEFAULT_ORDER.get(len(parts), "")
    if not order or not re.fullmatch(r"[\d\s./-]+", text) or len(set(order)) != len(order):
        return None
    named = dict(zip(order, parts, strict=True))
    year = full_year(named["y"]) if "y" in named else None
    month, day = (int(named[part]) if part in named else None for part in "md")
    if month is not None and day is not None:
        exists = day_of(day, month, year)
        return (year, exists.month, exists.day) if exists else None
    return (year, month, day) if month is None or 1 <= month <= 12 else None


def _date_words(tongue: Tongue, year: int | None, month: int | None, day: int | None) -> str | None:
    if month is not None and day is not None:
        return tongue.date(Day(day, month, year), "")
    if month is not None:
        return tongue.months[month - 1] + (f" {tongue.year(year)}" if year is not None else "")
    return tongue.year(year) if year is not None else tongue.ordinal(day) if day is not None else None

"""English readings of a text whose kind is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from engines.text.normalize.english.dates import MONTHS, month_name, spoken_date
from engines.text.normalize.english.electronic import SIGNS
from engines.text.normalize.english.fractions import spoken_fraction
from engines.text.normalize.english.measures import measures
from engines.text.normalize.english.money import money
from engines.text.normalize.english.numbers import MOST_DIGITS, as_ordinal, cardinal, digits, ordinal, whole, year
from engines.text.normalize.english.reading import Reading
from engines.text.normalize.english.roman import value
from engines.text.normalize.english.telephone import spoken_telephone
from engines.text.normalize.english.times import spoken_time, times

_NUMBER: Final = re.compile(r"([-+]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?")
_ORDINAL: Final = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th|\.)?", re.IGNORECASE)
_ROMAN: Final = re.compile(r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_PARTS: Final = re.compile(r"\d+|[^\W\d_]+")
_ORDERS: Final = {"year": "y", "month": "m", "day": "d"}
_CLOCK: Final = re.compile(r"(\d{1,2})(?:[:.h]?(\d{2}))?")
_HALF: Final = re.compile(r"(\d{1,2}):?(\d\d)? ?([ap])", re.IGNORECASE)
_FRACTION: Final = re.compile(r"(?:(\d{1,9})[ +])?(\d{1,9})/(\d{1,9})")
_EXTENSION: Final = {"ext": "extension", "x": "extension"}
_COMPACT: Final = {"ymd": (4, 6), "dmy": (2, 4), "mdy": (2, 4), "md": (2,), "dm": (2,), "ym": (4,), "my": (2,)}
"""Where the parts of a date end that has nothing between them."""


def said_as(text: str, interpret_as: str, fmt: str | None, reading: Reading) -> str | None:
    """Return `text` in words, None where it is no such thing; see `say_as`."""
    reader = _READERS.get(interpret_as)
    return reader(text.strip(), (fmt or "").lower(), reading) if reader and text.strip() else None


def _cardinal(text: str, _fmt: str, reading: Reading) -> str | None:
    number = _NUMBER.fullmatch(text)
    if number is None:
        return cardinal(value(text)) if _ROMAN.fullmatch(text) else None
    sign = {"-": "minus ", "+": "plus ", "": ""}[number[1]]
    bare = number[2].replace(",", "").lstrip("0") or "0"
    words = digits(bare) if len(bare) > MOST_DIGITS else cardinal(int(bare), british=reading.british)
    return sign + words + (f" point {digits(number[3])}" if number[3] else "")


def _ordinal(text: str, _fmt: str, reading: Reading) -> str | None:
    number = _ORDINAL.fullmatch(text)
    if number is None:
        return ordinal(value(text)) if _ROMAN.fullmatch(text) else None
    bare = number[1].replace(",", "").lstrip("0") or "0"
    return as_ordinal(digits(bare)) if len(bare) > MOST_DIGITS else ordinal(int(bare), british=reading.british)


def _digits(text: str, _fmt: str, _: Reading) -> str | None:
    if not any(sign.isdecimal() for sign in text):
        return None
    return digits(text) if text.isdecimal() else _characters(text, "", _)


def _characters(text: str, _fmt: str, _: Reading) -> str:
    """Spell: letters as capitals, with commas, for espeak-ng reads "A B" as "a bee"."""
    words = []
    for sign in text:
        if sign.isdecimal():
            words.append(digits(sign))
        elif sign.isalpha():
            words.append(sign.upper() if len(sign.upper()) == 1 else sign)
        elif sign in SIGNS:
            words.append(SIGNS[sign])
    return ", ".join(words)


def _date(text: str, fmt: str, reading: Reading) -> str | None:
    order = fmt if fmt and set(fmt) <= set("ymd") else ""
    order = re.sub(r"(.)\1+", r"\1", order)  # yyyymmdd
    parts = _PARTS.findall(text)
    if order in _COMPACT and len(parts) == 1 and len(text) == sum(4 if part == "y" else 2 for part in order):
        ends = _COMPACT[order]
        parts = [text[start:end] for start, end in zip((0, *ends), (*ends, len(text)), strict=True)]
    if not parts:
        return None
    if not order:
        order = _guessed_order(parts, reading)
    if len(order) != len(parts) or not order:
        return None
    return _told(dict(zip(order, parts, strict=True)), reading)


def _guessed_order(parts: list[str], reading: Reading) -> str:
    if len(parts) == 1:
        return "y"
    if parts[0].isalpha():
        return "mdy"[: len(parts)] if len(parts) != 2 or int(parts[1] if parts[1].isdecimal() else 0) <= 31 else "my"  # noqa: PLR2004
    if parts[1].isalpha():
        return "dmy"[: len(parts)]
    if len(parts[0]) == len("2026"):
        return "ymd"[: len(parts)]
    if len(parts) == 2 and len(parts[1]) == len("2026"):  # noqa: PLR2004
        return "my"
    return ("dmy" if reading.day_first else "mdy")[: len(parts)]


def _told(parts: dict[str, str], reading: Reading) -> str | None:
    """Return the words of a date's parts, None where there is no such day or month."""
    of_year = parts.get("y", "")
    if of_year and not of_year.isdecimal():
        return None
    in_words = (year(of_year) if len(of_year) > 2 else whole(of_year)) if of_year else ""  # noqa: PLR2004
    month, day = parts.get("m"), parts.get("d")
    if month is None:
        return (ordinal(int(day)) if day and day.isdecimal() else in_words) or None
    number = _month(month)
    if number is None:
        return None
    if day is None:
        return f"{MONTHS[number - 1]} {in_words}".rstrip()
    if not day.isdecimal() or not 1 <= int(day) <= 31:  # noqa: PLR2004
        return None
    return spoken_date(number, int(day), in_words, reading)


def _month(written: str) -> int | None:
    if written.isdecimal():
        return int(written) if 1 <= int(written) <= len(MONTHS) else None
    known = any(name.startswith(written.lower()) for name in MONTHS) and len(written) > 2  # noqa: PLR2004
    return MONTHS.index(month_name(written)) + 1 if known else None


def _fraction(text: str, _fmt: str, _: Reading) -> str | None:
    found = _FRACTION.fullmatch(text)
    return spoken_fraction(found[1], found[2], found[3]) if found else None


def _time(text: str, _fmt: str, reading: Reading) -> str | None:
    if half := _HALF.fullmatch(text):
        text = f"{half[1]}{':' * bool(half[2])}{half[2] or ''} {half[3]}m"
    words = times(text, reading)
    if any(sign.isdecimal() for sign in words):
        clock = _CLOCK.fullmatch(text)
        if clock is None or int(clock[1]) > 24 or int(clock[2] or 0) > 59:  # noqa: PLR2004
            return None
        words = spoken_time(int(clock[1]), int(clock[2] or 0))
    return words if words != text else None


def _telephone(text: str, _fmt: str, _: Reading) -> str | None:
    if not any(sign.isdecimal() for sign in text):
        return None
    parts = re.findall(r"\d+|[^\W\d_]+", text)
    if all(part.isdecimal() for part in parts):
        return spoken_telephone(text)
    plus = "plus " if text.startswith("+") else ""
    return plus + ", ".join(digits(part) if part.isdecimal() else _EXTENSION.get(part.lower(), part) for part in parts)


def _currency(text: str, fmt: str, reading: Reading) -> str | None:
    return _all_read(money(f"{text} {fmt.upper()}" if fmt and text[-1:].isdecimal() else text, reading), text)


def _unit(text: str, fmt: str, reading: Reading) -> str | None:
    return _all_read(measures(f"{text} {fmt}" if fmt and text[-1:].isdecimal() else text, reading), text)


def _all_read(words: str, text: str) -> str | None:
    return None if words == text or any(sign.isdecimal() for sign in words) else words


_READERS: Final[dict[str, Callable[[str, str, Reading], str | None]]] = {
    "cardinal": _cardinal,
    "ordinal": _ordinal,
    "digits": _digits,
    "characters": _characters,
    "fraction": _fraction,
    "date": _date,
    "time": _time,
    "telephone": _telephone,
    "currency": _currency,
    "unit": _unit,
}

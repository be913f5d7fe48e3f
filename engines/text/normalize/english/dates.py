"""Dates, years, decades and eras."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from engines.text.normalize.english.numbers import cardinal, decade, ordinal, two_figures, year
from engines.text.normalize.english.patterns import rewrite, word_before
from engines.text.normalize.english.reading import Reading

MONTHS: Final = ("january february march april may june july august september october november december").split()
_MONTH: Final = (
    r"(?P<month>(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
_DAYS: Final = {
    "mon": "Monday", "tue": "Tuesday", "tues": "Tuesday", "wed": "Wednesday", "thu": "Thursday", "thur": "Thursday",
    "thurs": "Thursday", "fri": "Friday", "sat": "Saturday", "sun": "Sunday",
}  # fmt: skip
_DAY: Final = r"(?P<day>0?[1-9]|[12]\d|3[01])(?P<suffix>st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>[12]\d{3})(?![\d:]|[.,/-]\d|s\b)"
_FLAGS: Final = re.IGNORECASE

_WEEKDAY: Final = re.compile(
    rf"\b(mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\b\.?(?=,? (?:the )?(?:\d{{1,2}}(?:st|nd|rd|th)? )?{_MONTH})", _FLAGS
)
_DAY_NAME: Final = r"(mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\b\.?"
_WEEKDAYS: Final = re.compile(
    rf"\b{_DAY_NAME} ?[-–] ?{_DAY_NAME}|\b{_DAY_NAME}(?=:? \d{{1,2}}(?::\d\d| ?[-–]| ?[ap]\.?m))", _FLAGS
)
_MONTH_DAY: Final = re.compile(
    rf"(?<![\w-]){_MONTH}[ -]?(?<=[ -]){_DAY}(?:[ ]?[-–][ ]?(?P<until>0?[1-9]|[12]\d|3[01])(?![\d-]))?"
    rf"(?![\d:/]|[.,]\d|-\d?\d?[a-z]|[ ]?[ap]\.?m\b)(?:(?P<comma>,?)[ -]{_YEAR})?",
    _FLAGS,
)
_DAY_MONTH: Final = re.compile(
    rf"(?P<the>\bthe )?(?<![\w:/.,-]){_DAY}(?P<of> of)?[ -]{_MONTH}(?!-?[a-z])(?:(?P<comma>,?)[ -]{_YEAR})?", _FLAGS
)
_MONTH_YEAR: Final = re.compile(
    rf"(?<![\w-]){_MONTH},? (?P<year>[12]?\d{{3}})(?![\d:]|[.,/-]\d|s\b| [ap]\.?m\b)", _FLAGS
)
_ISO: Final = re.compile(r"(?<![\w./-])([12]\d{3})([-/.])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])(?![\w/]|[-.]\d)")
_NUMERIC: Final = re.compile(
    r"(?<![\w./:-])(0?[1-9]|[12]\d|3[01])([/.-])(0?[1-9]|[12]\d|3[01])(?:\2([12]\d{3})|(?<!-..)(?<!-.)/(\d\d))(?![\w/]|[-.]\d)"
)
_SHORT: Final = re.compile(r"(?<![\w./:-])(0?[1-9]|[12]\d|3[01])/(0?[1-9]|[12]\d|3[01])(?![\w/]|[-.]\d)")
_SHORT_AFTER: Final = frozenset("on by until till since from before after due dated through".split())
_ERA: Final = (
    r"(?P<era>(?:AD|BCE|BC|CE)\b|A\.D\.?(?![A-Za-z])|B\.C\.E\.?(?![A-Za-z])|B\.C\.?(?![A-Za-z])|C\.E\.?(?![A-Za-z]))"
)
_IN_ERA: Final = re.compile(rf"(?<![\w.,/-])(?P<year>\d{{1,4}}|\d{{1,3}},\d{{3}}) ?{_ERA}")
_ERA_FIRST: Final = re.compile(r"\b(?:AD|A\.D\.) (?P<year>\d{1,4})(?![\w.,]\d|\w)")
_DECADE: Final = re.compile(r"(?<![\w.,/$£€])(?P<year>(?:1\d|20)\d0) ?['’]?s\b")
_SHORT_DECADE: Final = re.compile(r"(?<![\w.,/$£€-])(?P<mark>['’]?)(?P<year>[2-9]0)['’]?s\b")
_DECADE_AFTER: Final = frozenset("the early late mid his her their my our your".split())
_SHORT_YEAR: Final = re.compile(r"(?<![\w.,'’])['’](\d\d)(?![\w'’\"])")
_YEARS: Final = re.compile(r"(?<![\w.,/$£€:+-])([12]\d{3}) ?([-–]) ?([12]\d{3}|\d\d)(?![\w%°]|[,.:/-]\d|-[a-z])")


def dates(text: str, reading: Reading) -> str:
    """Put dates into words. A year without a month is read where whole numbers are."""
    for pattern, words in _READERS:
        text = rewrite(pattern, partial(_read, words=words, reading=reading), text)
    return text


def _read(match: re.Match[str], words: Callable[[re.Match[str], Reading], str], reading: Reading) -> str:
    return words(match, reading)


def month_name(written: str) -> str:
    """Return a month's name for what it is abbreviated to."""
    start = written.rstrip(".").lower()[:3]
    return next(name for name in MONTHS if name.startswith(start))


def spoken_date(month: int, day: int, of_year: str, reading: Reading) -> str:
    """Return a date as it is said; `of_year` in words, or empty."""
    name = MONTHS[month - 1]
    words = f"the {ordinal(day)} of {name}" if reading.day_first else f"{name} {ordinal(day)}"
    return f"{words} {of_year}".rstrip()


def _weekday(match: re.Match[str], _: Reading) -> str:
    return _DAYS[match.group(1).lower()]


def _weekdays(match: re.Match[str], _: Reading) -> str:
    if match[3]:
        return _DAYS[match[3].lower()]
    return f"{_DAYS[match[1].lower()]} to {_DAYS[match[2].lower()]}"


def _month_day(match: re.Match[str], _: Reading) -> str:
    words = f"{month_name(match['month'])} {ordinal(int(match['day']))}"
    if match["until"]:
        words += f" to {ordinal(int(match['until']))}"
    return words + (f"{match['comma']} {year(match['year'])}" if match["year"] else "")


def _day_month(match: re.Match[str], _: Reading) -> str:
    if match["of"] and not match["suffix"]:
        return match.group()
    # "the 4th of July" has its words already; "4 July" is said with them.
    the = match["the"] or ("" if match["of"] else "the ")
    words = f"{the}{ordinal(int(match['day']))} of {month_name(match['month'])}"
    return words + (f"{match['comma']} {year(match['year'])}" if match["year"] else "")


def _month_year(match: re.Match[str], _: Reading) -> str:
    if match["month"].lower() in {"may", "march"} and len(match["year"]) < 4:  # noqa: PLR2004  a verb and a number
        return match.group()
    return f"{month_name(match['month'])} {year(match['year'])}"


def _iso(match: re.Match[str], reading: Reading) -> str:
    return spoken_date(int(match[3]), int(match[4]), year(match[1]), reading)


def _numeric(match: re.Match[str], reading: Reading) -> str:
    first, second = int(match[1]), int(match[3])
    months = len(MONTHS)
    if first > months and second > months:
        return match.group()
    of_year = year(match[4]) if match[4] else two_figures(int(match[5]))
    day_first = first > months or (reading.day_first and second <= months)
    day, month = (first, second) if day_first else (second, first)
    # What cannot be written in the order of the place is read in the order in which it was written.
    return spoken_date(month, day, of_year, Reading(day_first=day_first))


def _short(match: re.Match[str], reading: Reading) -> str:
    first, second = int(match[1]), int(match[2])
    if not match.string[max(0, match.start() - 2) : match.start() - 1].isalpha():
        return match.group()
    if min(first, second) > len(MONTHS) or word_before(match.string, match.start()) not in _SHORT_AFTER:
        return match.group()
    day_first = first > len(MONTHS) or (reading.day_first and second <= len(MONTHS))
    day, month = (first, second) if day_first else (second, first)
    return spoken_date(month, day, "", Reading(day_first=day_first))


def _in_era(match: re.Match[str], _: Reading) -> str:
    written = match["year"].replace(",", "")
    # "340 A.D" is a year of three figures; "340 BC" counts.
    words = year(written) if len(written) > 3 or "." in match["era"] else cardinal(int(written))  # noqa: PLR2004
    return f"{words} {match['era'].replace('.', '')}"


def _era_first(match: re.Match[str], _: Reading) -> str:
    return f"AD {year(match['year'])}"


def _decade(match: re.Match[str], _: Reading) -> str:
    return decade(match["year"])


def _short_decade(match: re.Match[str], reading: Reading) -> str:
    told = match["mark"] or reading.alone or word_before(match.string, match.start()) in _DECADE_AFTER
    return decade(match["year"]) if told else match.group()


def _short_year(match: re.Match[str], _: Reading) -> str:
    return two_figures(int(match[1]))


def _years(match: re.Match[str], _: Reading) -> str:
    first, second = match[1], match[3]
    if second[0] == "0":
        return match.group()
    return f"{year(first)} to {year(second) if len(second) == len(first) else two_figures(int(second))}"


_READERS: Final = (
    (_WEEKDAYS, _weekdays),
    (_WEEKDAY, _weekday),
    (_ISO, _iso),
    (_NUMERIC, _numeric),
    (_SHORT, _short),
    (_MONTH_DAY, _month_day),
    (_DAY_MONTH, _day_month),
    (_MONTH_YEAR, _month_year),
    (_IN_ERA, _in_era),
    (_ERA_FIRST, _era_first),
    (_DECADE, _decade),
    (_SHORT_DECADE, _short_decade),
    (_SHORT_YEAR, _short_year),
    (_YEARS, _years),
)

"""Days of the calendar, as numbers and with the names of months."""

from __future__ import annotations

import calendar
import re
from functools import cache
from typing import Final

from engines.text.normalize.tongues.spans import before
from engines.text.normalize.tongues.tongue import Day, Tongue

_YEAR_FIRST: Final = re.compile(r"(?<![\w.,/-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:T(?=\d)|(?![\w]|[./-]\d))")
_YEAR_LAST: Final = re.compile(r"(?<![\w.,/-])(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?:T(?=\d)|(?![\w]|[./-]\d))")
_NO_YEAR: Final = re.compile(
    r"(?<![\w.,/-])(0\d|[12]\d|3[01])/(0\d|1[012])(?![\w]|[./-]\d)|(?<![\w.,/-])(\d)/(0\d)(?![\w/])"
)

_CENTURY_BREAK: Final = 70
"""Two-digit years from here on are of the last century: devices are not older than their clocks' epoch."""


def dates(tongue: Tongue, text: str) -> str:
    """Put days into words: 2026-04-03, 3.4.2026, 03/04, 3 avril 2026. What is not in the calendar stays."""

    def year_first(found: re.Match[str]) -> str:
        return _said(tongue, found, found[4], found[3], found[1])

    def year_last(found: re.Match[str]) -> str:
        short = len(found[4]) == len("26")
        if short and found[2] != "/" and len(found[1]) + len(found[3]) < len("0304"):
            return found[0]  # 1.2.26 is a version
        day, month = (found[3], found[1]) if tongue.month_first and found[2] == "/" else (found[1], found[3])
        return _said(tongue, found, day, month, found[4])

    def no_year(found: re.Match[str]) -> str:
        day, month = found[1] or found[3], found[2] or found[4]
        return _said(tongue, found, *((month, day) if tongue.month_first else (day, month)), None)

    def named(found: re.Match[str]) -> str:
        return _said(tongue, found, found["day"], str(tongue.month_number(found["month"])), found["year"])

    text = _YEAR_FIRST.sub(year_first, text)
    text = _YEAR_LAST.sub(year_last, text)
    text = _NO_YEAR.sub(no_year, text)
    return _named(tongue).sub(named, text)


def day_of(day: int, month: int, year: int | None) -> Day | None:
    """Return the date if there is such a day; with both swapped if only that makes one."""
    if _exists(day, month, year):
        return Day(day, month, year)
    return Day(month, day, year) if _exists(month, day, year) else None


def full_year(written: str) -> int:
    """Return the year that one or two digits, or more, stand for."""
    year = int(written)
    if len(written) > len("26"):
        return year
    return year + (1900 if year >= _CENTURY_BREAK else 2000)


def _exists(day: int, month: int, year: int | None) -> bool:
    leap = 2000  # may have any day
    return 1 <= month <= len(calendar.month_name) - 1 and 1 <= day <= calendar.monthrange(year or leap, month)[1]


def _said(tongue: Tongue, found: re.Match[str], day: str, month: str, year: str | None) -> str:
    date = day_of(int(day), int(month), full_year(year) if year else None)
    if date is None:
        return found[0]
    words = tongue.date(date, " ".join(before(found.string, found.start())).strip())
    return words + (" " if found[0].endswith("T") else "")


@cache
def _named(tongue: Tongue) -> re.Pattern[str]:
    of = tongue.of_month
    year = rf"(?:\.? {of}(?P<year>[12]\d{{3}})(?![\w]|[.,:]\d))?"
    return re.compile(
        rf"(?<![\w.,/-])(?P<day>\d{{1,2}})(?:\.?[ºo°]|er|\.)? {{0,2}}{of}(?P<month>{tongue.month_pattern})(?!\w){year}",
        re.IGNORECASE,
    )

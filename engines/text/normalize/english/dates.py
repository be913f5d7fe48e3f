"""Dates, years, decades and eras."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from engines.text.normalize.english.numbers import cardinal, decade, ordinal, two_figures, year
from engines.text.normalize.english.patterns import (
    FUNCTION_WORDS,
    MONTH,
    counts,
    next_word,
    rewrite,
    stop_after,
    tells_decade,
    word_before,
)
from engines.text.normalize.english.reading import Reading
from engines.text.normalize.english.weekdays import WITH_DAYS

MONTHS: Final = ("january february march april may june july august september october november december").split()
_DAY: Final = r"(?P<day>0?[1-9]|[12]\d|3[01])(?P<suffix>st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>[12]\d{3})(?![\d:]|[.,/-]\d|s\b)"
_FLAGS: Final = re.IGNORECASE

_STOPPED: Final = re.compile(r"(?<![\w.])(Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec)\.(?![\w@-])")
_NAMES_TOO: Final = frozenset({"Jan", "Mar"})
_TO_DATE: Final = re.compile(
    rf"(?<![\w-])(?:{MONTH} \d{{1,2}}(?:st|nd|rd|th)?|{MONTH.replace('month', 'alone')}) ?[-–] ?"
    rf"(?={MONTH.replace('month', 'until')})",
    _FLAGS,
)
_TO_DAY: Final = re.compile(
    rf"(?<![\w-])\d{{1,2}}(?:st|nd|rd|th)? {MONTH} ?[-–] ?"
    rf"(?=\d{{1,2}}(?:st|nd|rd|th)? {MONTH.replace('month', 'until')})",
    _FLAGS,
)
_DAYS_OF_MONTH: Final = re.compile(
    r"(?P<the>\bthe )?(?<![\w:/.,-])(?P<from>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)? ?[-–] ?"
    rf"{_DAY}(?: of)? {MONTH}(?!-?[a-z])"
    rf"(?:(?P<comma>,?) {_YEAR})?",
    _FLAGS,
)
_ISO_MONTH: Final = re.compile(r"(?<![\w./:-])([12]\d{3})-(0[1-9])(?![\w/:-]|[.,]\d)")
_SEASON: Final = re.compile(r"(?<![\w./:-])((?:19|20)\d\d)/(\d\d)(?![\w/:-]|[.,]\d)")
_MONTH_DAY: Final = re.compile(
    rf"(?<![\w-]){MONTH}[ -]?(?<=[ -]){_DAY}(?:[ ]?[-–][ ]?(?P<until>0?[1-9]|[12]\d|3[01])(?![\d-]))?"
    rf"(?![\d:/]|[.,]\d|-\d?\d?[a-z]|[ ]?[ap]\.?m\b)(?:(?P<comma>,?)[ -]{_YEAR})?",
    _FLAGS,
)
_DAY_MONTH: Final = re.compile(
    rf"(?P<the>\bthe )?(?<![\w:/.,-]){_DAY}(?P<of> of)?[ -]{MONTH}(?!-?[a-z])(?:(?P<comma>,?)[ -]{_YEAR})?", _FLAGS
)
_MONTH_YEAR: Final = re.compile(
    rf"(?<![\w-]){MONTH},? (?P<year>[12]?\d{{3}})(?![\d:]|[.,/-]\d|s\b| [ap]\.?m\b)", _FLAGS
)
_ISO: Final = re.compile(r"(?<![\w./-])([12]\d{3})([-/.])(0?[1-9]|1[0-2])\2(0?[1-9]|[12]\d|3[01])(?![\w/]|[-.]\d)")
_NUMERIC: Final = re.compile(
    r"(?<![\w./:-])(0?[1-9]|[12]\d|3[01])([/.-])(0?[1-9]|[12]\d|3[01])(?:\2([12]\d{3})|(?<!-..)(?<!-.)/(\d\d))(?![\w/]|[-.]\d)"
)
_SHORT: Final = re.compile(r"(?<![\w./:-])(0?[1-9]|[12]\d|3[01])/(0?[1-9]|[12]\d|3[01])(?![\w/]|[-.]\d)")
_SHORT_AFTER: Final = frozenset(
    "on by until till since from before after due dated through ends end starts start expires begins valid opens "
    "closes".split()
)
_SHORT_RANGE: Final = re.compile(
    r"(?<![\w./:-])(0?[1-9]|[12]\d|3[01])/(0?[1-9]|[12]\d|3[01]) ?[-–] ?"
    r"(0?[1-9]|[12]\d|3[01])/(0?[1-9]|[12]\d|3[01])(?![\w/-]|[.,:]\d)"
)
_ERA: Final = (
    r"(?P<era>(?:AD|BCE|BC|CE)\b|A\.D\.?(?![A-Za-z])|B\.C\.E\.?(?![A-Za-z])|B\.C\.?(?![A-Za-z])|C\.E\.?(?![A-Za-z]))"
)
_MAY_GO_ON: Final = frozenset("not be have do now also only".split())
_FISCAL: Final = re.compile(r"\bFY ?(20\d\d)(?![\w]|[.,/-]\d)")
_TO_ERA: Final = re.compile(rf"(?<![\w.,/$£€-])(\d{{3,4}}) ?[-–] ?(?=\d{{1,4}} ?{_ERA})")
_IN_ERA: Final = re.compile(rf"(?<![\w.,/-])(?P<year>\d{{1,4}}|\d{{1,3}},\d{{3}}) ?{_ERA}")
_ERA_FIRST: Final = re.compile(r"\b(?:AD|A\.D\.) (?P<year>\d{1,4})(?![\w.,]\d|\w)")
_DECADE: Final = re.compile(r"(?<![\w.,/$£€])(?P<year>(?:1\d|20)\d0) ?['’]?s\b")
_SHORT_DECADE: Final = re.compile(r"(?<![\w.,/$£€-])(?P<mark>['’]?)(?P<year>[2-9]0)['’]?s\b")
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


def _to_date(match: re.Match[str], _: Reading) -> str:
    return re.sub(r" ?[-–] ?$", " to ", match.group())


def _season(match: re.Match[str], _: Reading) -> str:
    """Read "2019/20" as the season that it is: no fraction has such parts."""
    if (int(match[1]) + 1) % 100 != int(match[2]):
        return match.group()
    return f"{year(match[1])} {two_figures(int(match[2]))}"


def _iso_month(match: re.Match[str], _: Reading) -> str:
    return f"{MONTHS[int(match[2]) - 1]} {year(match[1])}"


def _is_verb(match: re.Match[str]) -> bool:
    """Whether "may" is no month: "groups 1-3 may board", "coach 5 may not enter"."""
    if match["month"] != "may" or match["year"] or match["suffix"]:
        return False
    after = next_word(match.string, match.end())
    verb = after.islower() and (after not in FUNCTION_WORDS or after in _MAY_GO_ON)
    return verb and word_before(match.string, match.start()) not in WITH_DAYS


def _days_of_month(match: re.Match[str], _: Reading) -> str:
    if _is_verb(match):
        return match.group()
    words = f"the {ordinal(int(match['from']))} to {ordinal(int(match['day']))} of {month_name(match['month'])}"
    return words + (f"{match['comma']} {year(match['year'])}" if match["year"] else "")


def _stopped(match: re.Match[str], _: Reading) -> str:
    """Put "Feb." into words, and leave what may be a name: "Ask Jan. She knows."."""
    short, stop = match[1], stop_after(match.string, match.end())
    if short in _NAMES_TOO and stop and word_before(match.string, match.start()) not in WITH_DAYS:
        return match.group()
    return month_name(short) + stop


def _month_day(match: re.Match[str], _: Reading) -> str:
    before = word_before(match.string, match.start())
    if before in {"in", "during"} and not (match["suffix"] or match["year"]) and counts(match.string, match.end()):
        return match.group()  # "In May 5 people came"
    a_verb = match["month"].lower() in {"may", "march"} and not (match["suffix"] or match["until"] or match["year"])
    # "March 5 miles": something to do rather than a day.
    if (
        a_verb
        and counts(match.string, match.end())
        and before not in WITH_DAYS
        and not re.match(r" [A-Z]", match.string[match.end() :][:2])
    ):
        return match.group()
    words = f"{month_name(match['month'])} {ordinal(int(match['day']))}"
    if match["until"]:
        words += f" to {ordinal(int(match['until']))}"
    return words + (f"{match['comma']} {year(match['year'])}" if match["year"] else "")


def _day_month(match: re.Match[str], _: Reading) -> str:
    if (match["of"] and not match["suffix"]) or (not match["of"] and _is_verb(match)):
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


def _short_range(match: re.Match[str], reading: Reading) -> str:
    days = [_short_date(int(match[i]), int(match[i + 1]), reading) for i in (1, 3)]
    return (
        " to ".join(days)
        if (_SHORT_AFTER | {"open", "closed"}) & {word_before(match.string, match.start())} and all(days)
        else match.group()
    )


def _short(match: re.Match[str], reading: Reading) -> str:
    if word_before(match.string, match.start()) not in _SHORT_AFTER:
        return match.group()
    if not match.string[max(0, match.start() - 2) : match.start() - 1].isalpha():
        return match.group()
    return _short_date(int(match[1]), int(match[2]), reading) or match.group()


def _short_date(first: int, second: int, reading: Reading) -> str:
    """Return a day and a month in words, in the order of the place where both are possible; "" where none is."""
    if min(first, second) > len(MONTHS):
        return ""
    day_first = first > len(MONTHS) or (reading.day_first and second <= len(MONTHS))
    day, month = (first, second) if day_first else (second, first)
    return spoken_date(month, day, "", Reading(day_first=day_first))


def _in_era(match: re.Match[str], _: Reading) -> str:
    written = match["year"].replace(",", "")
    # "340 A.D" is a year of three figures; "340 BC" counts.
    words = year(written) if len(written) > 3 or "." in match["era"] else cardinal(int(written))  # noqa: PLR2004
    return f"{words} {match['era'].replace('.', '')}"


def _to_era(match: re.Match[str], _: Reading) -> str:
    return f"{year(match[1])} to "


def _era_first(match: re.Match[str], _: Reading) -> str:
    return f"AD {year(match['year'])}"


def _decade(match: re.Match[str], _: Reading) -> str:
    return decade(match["year"])


def _short_decade(match: re.Match[str], reading: Reading) -> str:
    told = match["mark"] or reading.alone or tells_decade(match.string, match.start(), match.end())
    return decade(match["year"]) if told else match.group()


def _short_year(match: re.Match[str], _: Reading) -> str:
    return two_figures(int(match[1]))


def _years(match: re.Match[str], _: Reading) -> str:
    first, second = match[1], match[3]
    if second[0] == "0":
        return match.group()
    return f"{year(first)} to {year(second) if len(second) == len(first) else two_figures(int(second))}"


_READERS: Final = (
    (_TO_DATE, _to_date),
    (_TO_DAY, _to_date),
    (_SEASON, _season),
    (_ISO, _iso),
    (_NUMERIC, _numeric),
    (_SHORT_RANGE, _short_range),
    (_SHORT, _short),
    (_ISO_MONTH, _iso_month),
    (_DAYS_OF_MONTH, _days_of_month),
    (_MONTH_DAY, _month_day),
    (_DAY_MONTH, _day_month),
    (_MONTH_YEAR, _month_year),
    (_STOPPED, _stopped),
    (_FISCAL, lambda match, _: f"FY {year(match[1])}"),
    (_TO_ERA, _to_era),
    (_IN_ERA, _in_era),
    (_ERA_FIRST, _era_first),
    (_DECADE, _decade),
    (_SHORT_DECADE, _short_decade),
    (_SHORT_YEAR, _short_year),
    (_YEARS, _years),
)

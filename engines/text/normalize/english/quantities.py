"""Plain numbers: ordinals, ranges, versions, decimals, whole numbers."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.numbers import (
    as_ordinal,
    cardinal,
    decimal,
    digits,
    is_year,
    ordinal,
    suffix_of,
    whole,
    year,
)
from engines.text.normalize.english.patterns import DECIMAL, WHOLE, counts, next_word, rewrite, word_before
from engines.text.normalize.english.reading import Reading

_ORDINAL: Final = re.compile(rf"(?<![\w.,/])({WHOLE})(st|nd|rd|th)\b", re.IGNORECASE)
_PARTED_ORDINAL: Final = re.compile(r"(?<![\w.,/$£€-])(\d{1,3}) (st|nd|rd|th)(?![\w.])")
_ORDINAL_RANGE: Final = re.compile(r"(?<=\d(?:st|nd|rd|th)) ?[-–] ?(?=\d{1,4}(?:st|nd|rd|th)\b)")
_RANGE: Final = re.compile(rf"(?<![\w.,:/$£€+*=-])({DECIMAL}) ?([-–—]) ?({DECIMAL})(?![\w%°/=*+]|[.,:/-]\w|-)")
_VERSION: Final = re.compile(
    r"(?<![\w.,:/-])(?P<v>[vV]\.? ?|[vV]ersion |[rR]elease )?"
    r"(?P<figures>\d{1,6}(?:\.\d{1,6}){1,5})(?![\w]|\.\d|[,:/]\d)"
)
_DOTTED_THOUSANDS: Final = re.compile(r"(?<![\w.,])\d{1,3}(?:\.\d{3}){2,6}(?![\w.,]\d|\w)")
_SPACED_THOUSANDS: Final = re.compile(r"(?<![\w.,:/-])([1-9]\d{0,2}(?: \d{3}){1,5})(?![\w.,:/-]\d|\w| \d)")
_DECIMAL: Final = re.compile(
    r"(?P<minus>(?<![\w.,)\]%-])-)?(?<![\w.])(?P<figures>(?:(?:\d{1,3}(?:,\d{3}){1,6}|\d{1,24}))?\.\d{1,40})(?![\w]|\.\d)"
)
_WHOLE: Final = re.compile(rf"(?P<sign>(?<![\w.,)\]%:-])(?:-|[+](?=\d)))?(?<![\w.])(?P<figures>{WHOLE})(?![^\W\d_]|_)")
_PLAN: Final = re.compile(r"(?<![\w.,-])([1-9])0([1-9])(?:\(([a-z])\)|(k)\b)((?:\([a-z0-9]\)){0,3})", re.IGNORECASE)
_DIMENSIONS: Final = re.compile(rf"(?<![\w.,])({DECIMAL}) ?[x×] ?({DECIMAL})(?: ?[x×] ?({DECIMAL}))?(?![\w]|\.\d)")
_RATIO: Final = re.compile(r"(?<![\w.,:/-])(\d{1,4}):(\d{1,3}(?:,\d{3}){1,3}|\d{1,7})(?![\w:]|[.,]\d)")

_YEAR_AFTER: Final = frozenset(
    "in since year years until till by from before after during circa around spring summer autumn fall winter to and "
    "january february march april may june july august september october november december".split()
)
_RANGE_AFTER: Final = frozenset(
    "pages page chapters ages aged lines rooms items steps gates platforms verses floors levels rows seats zones "
    "weeks days hours years sections parts numbers stops tracks kids children halls bays blocks aisles groups grades "
    "monday tuesday wednesday thursday friday saturday sunday".split()
)
_CODES_RANGE: Final = re.compile(r"(?<![\w-])([A-Z])(\d{1,3}) ?[-–] ?(?P<second>\1?)(?=\d{1,3}(?![\w-]))")
_OPENING: Final = frozenset("monday tuesday wednesday thursday friday saturday sunday open hours daily".split())
_HOURS_OF_DAY: Final = 24
_LETTERS_RANGE: Final = re.compile(
    r"(?:(?<=[a-z]s )(?<!'s )([A-Z]) ?[-–] ?(?=[B-Z](?![\w'-]))|(?<![\w-])([Aa])-(?=[Zz](?![\w-])))"
)
_QUIET_AFTER: Final = frozenset("page pages chapter chapters section line lines room rooms".split())


def ordinals(text: str, reading: Reading) -> str:
    """Put ordinals into words. A wrong suffix is read by value in a sentence, and as it stands where it is alone."""
    text = rewrite(_PARTED_ORDINAL, _parted, text)
    text = rewrite(_ORDINAL_RANGE, " to ", text)
    return rewrite(_ORDINAL, lambda match: _ordinal(match, reading), text)


def ranges(text: str, reading: Reading) -> str:
    """Say "to" in "pages 5-10", and "by" in "1920 x 1080"."""
    text = rewrite(_DIMENSIONS, lambda match: _dimensions(match, reading), text)
    text = rewrite(_CODES_RANGE, _codes_range, text)
    text = rewrite(_LETTERS_RANGE, lambda match: f"{match[1] or match[2]} to ", text)
    return rewrite(_RANGE, lambda match: _range(match, reading), text)


def decimals(text: str, reading: Reading) -> str:
    """Put versions, plans such as 401(k), and numbers with a decimal point into words."""
    text = rewrite(_PLAN, _plan, text)
    text = rewrite(_SPACED_THOUSANDS, lambda match: _spaced(match, reading), text)
    if "." in text:
        text = rewrite(_DOTTED_THOUSANDS, lambda match: cardinal(int(match.group().replace(".", ""))), text)
        text = rewrite(_VERSION, _version, text)
        text = rewrite(_DECIMAL, lambda match: _decimal(match, reading), text)
    return text


def wholes(text: str, reading: Reading) -> str:
    """Put the remaining whole numbers into words: years as years, codes figure by figure, quantities as numbers."""
    text = rewrite(_RATIO, lambda match: _ratio(match, reading), text)
    return rewrite(_WHOLE, lambda match: _whole(match, reading), text)


def spoken_whole(written: str, *, counted: bool, after: str, reading: Reading) -> str:
    """Return the words of a whole number without commas.

    `counted`: it counts the things that follow; `after`: the word before it.
    """
    british = reading.british
    if written[0] == "0" and len(written) > 1:
        return digits(written)
    if is_year(written) and after not in {"equals", "plus", "times"}:
        as_number = counted and after not in _YEAR_AFTER
        return cardinal(int(written), british=british) if as_number else year(written)
    named = 4
    if len(written) <= named or counted:
        return whole(written, british=british)
    spelled, grasped = 7, 10
    if reading.alone or after in {"number", "no", "nr", "id", "reference"} or len(written) >= spelled:
        round_one = not reading.alone and written.endswith("000") and len(written) <= grasped
        return whole(written, british=british) if round_one else digits(written)
    return whole(written, british=british)


def _parted(match: re.Match[str]) -> str:
    """Join "25 th" where the suffix is the right one: "5 st" is a street."""
    return match[1] + match[2] if match[2] == suffix_of(int(match[1])) else match.group()


def _ordinal(match: re.Match[str], reading: Reading) -> str:
    number, suffix = int(match[1].replace(",", "")), match[2].lower()
    right = suffix_of(number)
    if suffix != right and reading.alone:
        return f"{whole(match[1])} {suffix}"
    return ordinal(number, british=reading.british) if len(match[1]) < 16 else as_ordinal(whole(match[1]))  # noqa: PLR2004


def _range(match: re.Match[str], reading: Reading) -> str:
    first, dash, second = match[1], match[2], match[3]
    if any(len(side) > 1 and side[0] == "0" and side[1] != "." for side in (first, second)):
        return match.group()
    rising = float(first.replace(",", "")) < float(second.replace(",", ""))
    joined = dash != "-" or " " not in match.group()
    before = word_before(match.string, match.start())
    if (
        before in _OPENING
        and first.isdecimal()
        and second.isdecimal()
        and max(int(first), int(second)) <= _HOURS_OF_DAY
    ):
        return f"{whole(first)} to {whole(second)}"
    listed = counts(match.string, match.end()) or before in _RANGE_AFTER
    named = re.search(r"[A-Z][\w'-]* $", match.string[max(0, match.start() - 24) : match.start()])
    model = named and named.start() and not listed
    if reading.alone or not rising or model or not (joined or listed):
        return match.group()
    return f"{_side(first, reading)} to {_side(second, reading)}"


def _codes_range(match: re.Match[str]) -> str:
    """Say "to" in "gates A1-A5", not in the code "A1-5"."""
    told = match["second"] or word_before(match.string, match.start()) in _RANGE_AFTER
    return f"{match[1]}{match[2]} to {match['second']}" if told else match.group()


def _side(written: str, reading: Reading) -> str:
    if "." in written:
        return decimal(written, british=reading.british)
    return year(written) if is_year(written) else whole(written, british=reading.british)


def _dimensions(match: re.Match[str], reading: Reading) -> str:
    if reading.alone and len(match[1]) == 1 and "×" not in match.group():
        return match.group()
    return " by ".join(_pixels(side, reading) for side in match.groups() if side)


def _pixels(side: str, reading: Reading) -> str:
    return decimal(side, british=reading.british) if "." in side or not is_year(side) else year(side)


def _plan(match: re.Match[str]) -> str:
    letters = " ".join([match[3] or match[4], *re.findall(r"[a-z0-9]", match[5], re.IGNORECASE)])
    return f"{cardinal(int(match[1]))} oh {cardinal(int(match[2]))} {letters}"


def _spaced(match: re.Match[str], reading: Reading) -> str:
    """Read "41 906 steps" as one number: ISO's thousands. Between other numbers nobody could tell."""
    groups = match[1].split(" ")
    if len(groups) < 3 and not counts(match.string, match.end()):  # noqa: PLR2004
        return match.group()
    return whole("".join(groups), british=reading.british)


def _version(match: re.Match[str]) -> str:
    figures = match["figures"].split(".")
    named = match["v"]
    if not named and len(figures) < 3:  # noqa: PLR2004  a decimal number
        return match.group()
    words = " point ".join(whole(part) for part in figures)
    return words if not named else ("version " if named[0] in "vV" else named) + words


def _decimal(match: re.Match[str], reading: Reading) -> str:
    minus = "minus " if match["minus"] else ""
    return minus + decimal(match["figures"], british=reading.british)


def _ratio(match: re.Match[str], reading: Reading) -> str:
    if match[2][0] == "0" and len(match[2]) > 1:
        return match.group()
    if match[1] == match[2] == "50":
        return "fifty fifty"
    joint = ": " if reading.alone and len(match.group()) < 4 else " to "  # noqa: PLR2004
    return f"{whole(match[1])}{joint}{whole(match[2])}"


def _whole(match: re.Match[str], reading: Reading) -> str:
    written, text = match["figures"], match.string
    sign = {"-": "minus ", "+": "plus "}.get(match["sign"] or "", "")
    if "," in written:
        words = whole(written, british=reading.british)
    else:
        after = word_before(text, match.start("figures"))
        counted = counts(text, match.end()) and after not in _QUIET_AFTER
        if next_word(text, match.end()) in {"million", "billion", "thousand", "trillion", "percent", "per"}:
            counted = True
        words = spoken_whole(written, counted=counted or bool(sign), after=after, reading=reading)
    # A number that touches what follows would make one word of the two: "a 4-kilogram bag" keeps its hyphen.
    return sign + words

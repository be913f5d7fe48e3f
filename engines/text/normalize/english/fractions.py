"""Fractions and mixed numbers."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.numbers import cardinal, ordinal, plural, whole
from engines.text.normalize.english.patterns import rewrite, word_before
from engines.text.normalize.english.reading import Reading

MIXED: Final = r"(?:(?:(?P<whole>\d{1,9}) (?=\d{1,9}/))?(?P<top>\d{1,9})/(?P<bottom>[1-9]\d{0,8})(?![\d/])(?!\.\d))?"
"""A fraction, with or without a whole number before it, or nothing."""

_FRACTION: Final = re.compile(
    r"(?:(?P<minus>(?<![\w.,)-])-)|(?<![\w.,/:-]))(?:(?P<whole>\d{1,9}) (?=\d{1,9} ?/))?(?P<top>\d{1,9})"
    r"(?P<gap> ?)/(?P=gap)(?P<bottom>\d{1,9})(?P<suffix>(?:st|nd|rd|th)s?)?(?![\w/]|[.,:]\d|-(?![a-z]{3}))",
    re.IGNORECASE,
)
_SAYINGS: Final = {
    "24/7": "twenty four seven",
    "9/11": "nine eleven",
    "20/20": "twenty twenty",
    "50/50": "fifty fifty",
}
"""Written like fractions, meant otherwise."""

_DAYS_OF_YEAR: Final = re.compile(r"(?<![\w/])24/7/365(?![\w/])")
_OUT_OF: Final = re.compile(r"(?<![\w.,/])(\d{1,3}(?:\.\d{1,2})?)/(5|10|20|100)(?![\w/]|[.,]\d)")
_RATED: Final = frozenset("rated rating rate score scored scores scoring graded".split())
_OF: Final = re.compile(
    r"\b(page|slide|step|part|item|stage|question|file|image|photo|track|task|lap|round|lesson|level|sheet|attempt|try|"
    r"disc|coach|car|carriage|lane)( \d{1,4})/(?=\d{1,4}(?![\w/]|[.,]\d"
    r"|[ -](?:of|mile|kilo|met|yard|foot|feet|inch|block|hour|minute|day|year|way|full|empty|cup|size|price)))",
    re.IGNORECASE,
)
"""But "the car 1/2 mile away"."""


def fractions(text: str, reading: Reading) -> str:
    """Put fractions into words: "one quarter", "two and three quarters"."""
    if "/" not in text:
        return text
    text = rewrite(_DAYS_OF_YEAR, "twenty four seven three sixty five", text)
    text = rewrite(_OUT_OF, _out_of, text)
    text = rewrite(_OF, r"\1\2 of ", text)
    return rewrite(_FRACTION, lambda match: _fraction(match, reading), text)


def _out_of(match: re.Match[str]) -> str:
    told = "." in match[1] or word_before(match.string, match.start()) in _RATED
    return f"{match[1]} out of {match[2]}" if told else match.group()


def spoken_fraction(whole_part: str | None, top: str, bottom: str) -> str:
    """Return the words of `whole_part` and `top`/`bottom`, each of them digits."""
    if bottom in {"0", "1"} or bottom[0] == "0" or (len(top) > 1 and top[0] == "0"):
        words = f"{whole(top)} over {whole(bottom)}"
    elif top == "0":
        words = f"zero {_parts(int(bottom), many=True)}"
    else:
        words = f"{cardinal(int(top))} {_parts(int(bottom), many=top != '1')}"
        if whole_part and words == "one half":
            words = "a half"
    return f"{whole(whole_part)} and {words}" if whole_part else words


def _parts(number: int, *, many: bool) -> str:
    if number == 2:  # noqa: PLR2004
        return "halves" if many else "half"
    one = "quarter" if number == 4 else ordinal(number)  # noqa: PLR2004
    return plural(one) if many else one


def _fraction(match: re.Match[str], _: Reading) -> str:
    saying = _SAYINGS.get(match.group())
    if saying:
        return saying
    if match["bottom"].startswith("0") or (len(match["top"]) > 1 and match["top"][0] == "0"):
        return f"{whole(match['top'])} slash {whole(match['bottom'])}"
    minus = "minus " if match["minus"] else ""
    words = minus + spoken_fraction(match["whole"], match["top"], match["bottom"])
    # "a 3/4-inch pipe" has no plural.
    return words.removesuffix("s") if match.string[match.end() : match.end() + 1] == "-" else words

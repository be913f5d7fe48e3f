"""Figures as other places and machines write them, put as English does: the rules behind know one form only."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.measures import PLACES, UNIT
from engines.text.normalize.english.money import CURRENCY
from engines.text.normalize.english.numbers import cardinal, plural, suffix_of
from engines.text.normalize.english.patterns import NO_NOUNS, counts, next_word, rewrite, stop_after, word_before
from engines.text.normalize.english.reading import Reading
from engines.text.normalize.english.units import DOUBTFUL

_APOSTROPHES: Final = re.compile(r"(?<![\w.,'])\d{1,3}(?:'\d{3}){1,5}(?![\w'])")
_SPACED: Final = re.compile(
    rf"(?<![\w.,:/+-])(?<!\d )(?:(?<=[$£€¥])|(?P<code>{CURRENCY} ))?(?P<number>[1-9]\d{{0,2}}(?: \d{{3}}){{1,5}})"
    rf"(?![\w:/-]| \d|[.,]\d{{3}})(?P<thing>[.,]\d\d)?(?P<unit> ?(?:{UNIT}|{CURRENCY})(?!\w))?"
)
_SEVERAL: Final = re.compile(r"\d [1-9]\d\d")
_OF_DOSES: Final = frozenset(("mg", "mcg", "µg", "μg"))
_COMMA: Final = re.compile(
    rf"(?<![\w.,])(\d{{1,3}}),(\d{{1,2}})(?=(?P<gap> ?)(?P<unit>{UNIT})(?![\w'])(?! and\b))"
    r"|(?<=[$£€])(?P<whole>\d{1,3}),(?P<part>\d{1,2})(?![\w,]|\.\d)"
)
_CONTINENTAL: Final = re.compile(r"(?<![\w.,])\d{1,3}(?:\.\d{3}){1,5},\d{1,2}(?![\w,])")
_OF_UNIT: Final = re.compile(rf"(?<![\w.,/])(\d{{1,5}}\.\d{{1,3}})/(?=\d{{1,5}}(?:\.\d{{1,3}})? ?(?:{UNIT})(?!\w))")
_PRESSURE: Final = re.compile(
    r"(?<![\w.,/])([12]?\d\d)/(\d{2,3})(?= ?(?:mm ?Hg|millimeters of mercury))"
    r"|(?:(?<=\bBP )|(?<=\bBP: )|(?<=pressure )|(?<=pressure is )|(?<=pressure was )|(?<=pressure: )|(?<=pressure of ))"
    r"([12]?\d\d)/(\d{2,3})(?![\w/])"
)
_UNITS_SLASH: Final = re.compile(
    rf"(?<=\d)( ?(?:{UNIT}))/(?=\d{{1,5}}(?:\.\d{{1,3}})? ?(?:{UNIT})(?!\w))(?!100)|(?<=\d)([A-Z])/(?=\d[A-Z](?!\w))"
)
_CIRCA: Final = re.compile(r"(?<![\w.])(?:ca?)\. ?(?=\d{3,4}(?!\w))")
_CENTURY: Final = re.compile(r"(?<=\d(?:st|nd|rd|th) )c(?:ent)?\.(?= (?:[a-z(]|[AB])|\s*\Z)")
_FACTOR: Final = re.compile(
    r"(?<![\w.,])(\d{1,4}(?:\.\d)?)x(?=/(?:day|week|month|year|hour)\b"
    r"| (?:more|faster|slower|better|cheaper|bigger|larger|smaller|higher|longer|as|daily|weekly|a|per|the)\b)"
)
_ORDINAL_SIGN: Final = re.compile(r"(?<![\w.,])(\d{1,4})[ºª](?! ?[CF]\b)")
_DEGREE_SIGN: Final = re.compile(r"(?<=\d)( ?)º(?= ?[CF]\b)")
_HUNDREDS: Final = re.compile(r"(?<![\w.,$£€])(10{1,3})s(?= of\b)")
_MANY: Final = re.compile(r"(?<![\w.,$£€¥+-])(\d{1,3}(?:\.\d{1,2})?)([KkMB])(?= [a-z])")
_MAGNITUDES: Final = {"K": "thousand", "k": "thousand", "M": "million", "B": "billion"}
_RESOLUTIONS: Final = frozenset(("2", "4", "5", "6", "8", "16"))
"""Of pictures: "4K screens"."""
_ADDRESS: Final = r"\d{1,3}(?:\.(?:1\d\d|2[0-4]\d|25[0-5])){3}(?![\d.])"
"""Of a computer: 192.168.100.200."""
_EURO_THOUSANDS: Final = re.compile(
    rf"(?<![\w.,])(?!{_ADDRESS})\d{{1,3}}(?:\.\d{{3}}){{2,5}}(?= ?(?:{UNIT}|{CURRENCY})(?!\w))"
    r"|(?<=[$£€¥])\d{1,3}(?:\.\d{3}){2,5}(?![\w.])"
)
_DASH: Final = re.compile(r"(?:\A|(?<=[(\n])|(?<=[a-z:] ))–(?=\d)")
"""A typographer's minus, where it parts no two numbers."""
_EVERY: Final = re.compile(r"\bq ?(\d{1,2}) ?h(?:rs?)?\b\.?")
_PER_ANNUM: Final = re.compile(r"(?<=[\d%] )p\. ?a\.(?!\w)")
_POINTS: Final = re.compile(r"\b((?:rose|fell|up|down|by|gained|lost|cut|of) (?:by )?\d{1,4}) (?:bps|bp)\b(?!\.\w)")
_BEFORE_FIGURES: Final = re.compile(r"(?<![\w.])(No|no|NO)\. ?(?=(\d{1,24})(?!\d))")
_ANSWERED: Final = frozenset("is was said says answered replied say with".split())
"""Before "no. 5 people left", these tell an answer."""
_NUMBER_OF: Final = re.compile(r"(?<=[a-z] )no\.(?=:| (?:is|was|ends|begins|reads)\b|:? (?:\d{3,4} ){2,})")
"""With a number that is read figure by figure, or none at hand."""
_NO_OF: Final = re.compile(r"\b([Nn])o\. of\b")
_ALWAYS: Final = re.compile(
    r"(?<![\w.,/])24[x×]7(?![\w/]|[.,]\d| ?=|[ -](?:[cmk]?m\b|ft\b|px\b|inch|foot|feet|(?:centi|milli)?met(?:er|re)"
    r"|pixel|grid|matrix))"
)
"""But a board of 24 x 7 inches is as long as that."""
_ABOUT: Final = re.compile(r"(?<![\w~])~ ?(?=-?[$£€¥]? ?[\d.])")


_SWAPPED: Final = str.maketrans(".,", ",.")


def figures(text: str, _: Reading) -> str:
    """Put thousands marked by apostrophes or spaces, decimal commas, "100K people" and "~5" as the others expect."""
    text = rewrite(_ABOUT, "about ", text)
    if "'" in text:
        text = rewrite(_APOSTROPHES, lambda match: match.group().replace("'", ","), text)
    text = rewrite(_SPACED, _spaced, text)
    if "," in text:
        text = rewrite(_COMMA, _comma, text)
        text = rewrite(_CONTINENTAL, lambda match: match.group().translate(_SWAPPED), text)
    text = rewrite(_EURO_THOUSANDS, lambda match: match.group().replace(".", ","), text)
    text = rewrite(_DASH, "-", text)
    text = rewrite(_NO_OF, r"\1umber of", text)
    text = rewrite(_NUMBER_OF, "number", text)
    text = rewrite(_BEFORE_FIGURES, _number_before, text)
    text = rewrite(_ALWAYS, "24/7", text)
    text = rewrite(_EVERY, lambda match: f"every {match[1]} hours", text)
    text = rewrite(_PER_ANNUM, lambda match: f"per annum{stop_after(match.string, match.end())}", text)
    text = rewrite(_POINTS, r"\1 basis points", text)
    text = rewrite(_PRESSURE, lambda match: f"{match[1] or match[3]} over {match[2] or match[4]}", text)
    text = rewrite(_UNITS_SLASH, lambda match: f"{match[1] or match[2]} slash ", text)
    text = rewrite(_OF_UNIT, r"\1 of ", text)
    text = rewrite(_CIRCA, "circa ", text)
    text = rewrite(_CENTURY, "century", text)
    text = rewrite(_FACTOR, lambda match: f"{match[1]} time{'' if match[1] == '1' else 's'}", text)
    if "º" in text or "ª" in text:
        text = rewrite(_DEGREE_SIGN, r"\1°", text)
        text = rewrite(_ORDINAL_SIGN, _ordinal_sign, text)
    text = rewrite(_HUNDREDS, _hundreds, text)
    return rewrite(_MANY, _many, text)


def _spaced(match: re.Match[str]) -> str:
    """Read "41 906 km" as one number: ISO's thousands, where a unit or a currency tells that it is one."""
    before = match.string[match.start() - 1 : match.start()]
    if not match["unit"] and not match["code"] and before not in {"$", "£", "€", "¥"}:
        return match.group()
    if word_before(match.string, match.start("number")) in PLACES:
        return match.group()  # "gate 12 500 m ahead"
    if _SEVERAL.fullmatch(match["number"]) and match["unit"] and not match["thing"]:
        after = next_word(match.string, match.end())
        if match["unit"].strip() in _OF_DOSES or (after and after.lower() not in NO_NOUNS):
            return match.group()  # "take 2 500 mg tablets": a thousand times as much is no risk to take
    number = match["number"].replace(" ", ",") + (match["thing"] or "").replace(",", ".")
    return (match["code"] or "") + number + (match["unit"] or "")


def _comma(match: re.Match[str]) -> str:
    """Read "5,5 g" as one number, not "rooms 3,4 in the east wing"."""
    if match["whole"]:
        return f"{match['whole']}.{match['part']}"
    listed = word_before(match.string, match.start()).removesuffix("s") in PLACES
    doubtful = match["gap"] and (match["unit"] in DOUBTFUL or match["unit"] == "A")
    return match.group() if listed or doubtful else f"{match[1]}.{match[2]}"


def _ordinal_sign(match: re.Match[str]) -> str:
    return match[1] + suffix_of(int(match[1]))


def _number_before(match: re.Match[str]) -> str:
    """Read "no. 5" as a number, before "No. 10 Downing Street" is an address; but "he said no. 5 people left"."""
    answered = word_before(match.string, match.start()) in _ANSWERED and counts(match.string, match.end(2))
    return match.group() if answered else f"{match[1][0]}umber "


def _hundreds(match: re.Match[str]) -> str:
    return plural(cardinal(int(match[1])).removeprefix("one "))


def _many(match: re.Match[str]) -> str:
    number, magnitude = match[1], match[2]
    if (number in _RESOLUTIONS and magnitude in "Kk") or not counts(match.string, match.end()):
        return match.group()
    return f"{number} {_MAGNITUDES[magnitude]}"

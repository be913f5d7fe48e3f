"""Numbers by themselves and before words: signs, ranges, fractions, and whatever else holds a digit."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import Final

from engines.text.normalize.tongues.amounts import signed, unit_names, unit_of
from engines.text.normalize.tongues.numeral import SPACED, Numeral, read
from engines.text.normalize.tongues.spans import GAP, SIGN, after, before, raised, sign_of
from engines.text.normalize.tongues.tongue import IN_PARTS, Form, Tongue, alternatives

_RANGE: Final = re.compile(
    rf"(?<![\w.,:-])(\d+(?:[.,:]\d+){{0,3}}(?:{GAP}[%°€h](?!\w))?) ?[-\u2013\u2014] ?"
    rf"(?=\d+(?:[.,:]\d+){{0,3}}(?![-\u2013:]\d|\d| ?=))"
)
_DIFFERENCE: Final = re.compile(r"(?<=\d) ?[-\u2013] ?(?=\d{1,15}(?:[.,]\d{1,15})? ?=)")
_FRACTION: Final = re.compile(r"(?<![\w.,/])(?:(\d{1,3}) )?(\d{1,3})/(\d{1,3})(?![\w/]|[.,]\d)")
_OPERATOR: Final = re.compile(r"(?<=\d) ?([x\u00d7*+=\u2212]) ?(?=[-\u2212]?\d)")
_NUMBER: Final = re.compile(rf"{SIGN}(?<!\d)(?P<number>{SPACED})(?P<gap> ?)")
_RAISED: Final = re.compile("[\u00b2\u00b3\u00b9\u2070-\u209c]+")
_LONG: Final = 4
"""A number of so many digits glued to letters is a model or a serial: each digit by itself."""


def ranges(tongue: Tongue, text: str) -> str:
    """Put the dash of 5-10, 8:00-17:00 and 5-10 °C into words; 2-3-4 is no range."""
    return _RANGE.sub(lambda found: f"{found[1]} {tongue.until} ", text)


def operators(tongue: Tongue, text: str) -> str:
    """Put signs between two numbers into words: 5 x 3, 2 + 2 = 4, 1920x1080."""
    words = dict.fromkeys("x\u00d7*", tongue.times)
    words |= {"+": tongue.plus, "=": tongue.equals, "\u2212": tongue.minus}
    text = _DIFFERENCE.sub(f" {tongue.minus} ", text)
    return _OPERATOR.sub(lambda found: f" {words[found[1]]} ", text)


def powers(tongue: Tongue, text: str) -> str:
    """Put x^2 and 10^-3 m into words."""

    def power(found: re.Match[str]) -> str:
        unit = f" {unit_of(tongue, found[3]).many}" if found[3] else ""
        return _exponent(tongue, found[1], found[2]) + unit

    return _powers(tongue).sub(power, text)


def fractions(tongue: Tongue, text: str) -> str:
    """Put 1/2, 2 3/4 and 5/12 into words."""

    def fraction(found: re.Match[str]) -> str:
        if before(found.string, found.start())[1] in IN_PARTS:
            return f"{tongue.whole(found[2])} {tongue.out_of} {tongue.whole(found[3])}"
        return _fraction(tongue, found[1], found[2], found[3])

    return _FRACTION.sub(fraction, text)


def parts_of_units(tongue: Tongue, text: str) -> str:
    """Put 1/4 l and 2 1/2 km into words."""

    def part(found: re.Match[str]) -> str:
        unit = tongue.currencies[found[4]].major if found[4] in tongue.currencies else unit_of(tongue, found[4])
        words = _fraction(tongue, found[1], found[2], found[3])
        half = (found[2], found[3]) == ("1", "2")
        if found[1]:
            return f"{words} {unit.many}"
        return f"{words} {unit.one if half else tongue.elide(tongue.of, unit.one)}"

    return _parted_units(tongue).sub(part, text) if "/" in text else text


def cardinals(tongue: Tongue, text: str) -> str:
    """Put every number that is left into words."""
    return _NUMBER.sub(lambda found: _number(tongue, text, found), text)


def leftovers(tongue: Tongue, text: str) -> str:
    """Say raised digits, and any other sign that Unicode counts among the digits."""
    text = _RAISED.sub(lambda found: _apart(found, _power(tongue, found[0])), text)
    if text.isascii() or not any(map(str.isdigit, text)):
        return text
    return "".join(f" {tongue.digits[unicodedata.digit(char)]} " if char.isdigit() else char for char in text)


def _exponent(tongue: Tongue, sign: str, digits: str) -> str:
    if digits == "2" and not sign:
        return f" {tongue.squared}"
    return f" {tongue.power} {tongue.minus + ' ' if sign else ''}{tongue.whole(digits)}"


def _power(tongue: Tongue, written: str) -> str:
    digits = "".join(char for char in written if char.isdigit())
    if not digits:
        return written
    if digits == "\u00b2":
        return tongue.squared
    return f"{tongue.power} {tongue.whole(raised(digits))}"


def _apart(found: re.Match[str], words: str) -> str:
    """Put spaces between words and what touches them; what is no number stays."""
    if words == found[0]:
        return words
    text, (start, end) = found.string, found.span()
    return " " * text[start - 1 : start].isalnum() + words + " " * text[end : end + 1].isalnum()


@lru_cache(maxsize=1024)
def _fraction(tongue: Tongue, whole: str | None, over: str, under: str) -> str:
    top, bottom = int(over), int(under)
    said = tongue.fraction(top, bottom) if "0" not in {over[0], under[0]} else None
    if said is None:
        join = tongue.out_of if top <= bottom and not whole and (over, under) != ("50", "50") else ""
        front = tongue.whole(whole) + " " if whole else ""
        return front + " ".join(filter(None, [tongue.whole(over), join, tongue.whole(under)]))
    return tongue.mixed(whole, said, half=(top, bottom) == (1, 2)) if whole else said


def _number(tongue: Tongue, text: str, found: re.Match[str]) -> str:
    start, (number_start, end) = found.start(), found.span("number")
    glued = number_start > 0 and text[number_start - 1].isalpha()
    front = signed(tongue, text, start, found["sign"]) if found["sign"] else (" " if glued else "")
    back = " " if text[end : end + 1].isalpha() else ""
    follows = "" if glued or back else after(text, end)
    counts = bool(follows) and tongue.is_noun(follows)
    numeral = read(found["number"], decimal=tongue.decimal, counts=counts)
    if numeral is None:
        words = _pieces(tongue, found["number"])
    elif glued or back:
        long = len(numeral.whole) >= _LONG and not numeral.fraction
        words = tongue.spell(numeral.whole) if long else tongue.say(numeral)
    else:
        words = _counted(tongue, found, numeral, follows if counts else "")
    return front + words + (back or ("" if words.endswith("'") else found["gap"]))


def _counted(tongue: Tongue, found: re.Match[str], numeral: Numeral, noun: str) -> str:
    second, first = before(found.string, found.start())
    if not noun or first in tongue.places:
        plain = not numeral.fraction and not sign_of(found.string, found.start(), found["sign"])
        return tongue.lone(numeral.whole, second, first) if plain else tongue.say(numeral)
    form: Form = tongue.gender_of(noun)
    one = tongue.plural_ends and not noun.endswith(tongue.plural_ends) and noun not in tongue.scales
    if one and numeral.whole != "1":
        form = "alone"  # "comboio 542 parte": what is one is not counted
    link = tongue.elide(tongue.link(numeral), noun).removesuffix(noun).strip()
    words = tongue.say(numeral, form)
    return f"{words} {link}" if link else tongue.elided(words, noun)


def _pieces(tongue: Tongue, written: str) -> str:
    """Say what is no number, such as 1,2,3 or 1.2.3,4, piece by piece."""
    pieces = re.split(r"(\D+)", written)
    return "".join(tongue.whole(piece) if piece.isdigit() else f"{piece.strip()} " for piece in pieces)


@cache
def _parted_units(tongue: Tongue) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w.,/])(?:(\d{{1,3}}) )?(\d{{1,3}})/([1-9]\d{{0,2}}){GAP}"
        rf"({unit_names(tongue)}|{alternatives(tongue.currencies)})(?![\w/]|[.,]\d)"
    )


@cache
def _powers(tongue: Tongue) -> re.Pattern[str]:
    return re.compile(rf"(?<=[^\W_])\^([-\u2212]?)(\d{{1,6}})(?!\w)(?:{GAP}({unit_names(tongue)}))?")

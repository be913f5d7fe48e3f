"""Quantities with their units, and percentages."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.fractions import MIXED, spoken_fraction
from engines.text.normalize.english.numbers import decimal, in_pairs, whole
from engines.text.normalize.english.patterns import (
    DECIMAL,
    begins_sentence,
    counts,
    is_attribute,
    next_word,
    rewrite,
    tells_decade,
    word_before,
)
from engines.text.normalize.english.reading import Reading
from engines.text.normalize.english.units import DOUBTFUL, LENGTHS, UNITS

UNIT: Final = "|".join(re.escape(unit) for unit in sorted(UNITS, key=lambda unit: (-len(unit), unit)))
_POWER: Final = r"(?:\^?[23](?!\d)|[²³])"
_OFTEN: Final = "second|minute|hour|day|night|week|month|year|dose|person|serving"
_MAGNITUDE: Final = r"(?P<size> (?:hundred|thousand|million|billion|trillion)(?= ))?"
_QUANTITY: Final = re.compile(
    rf"(?P<sign>(?<![\w.,)\]%°^-])[-±])?(?<![\w.,:/$£€¥^])(?<!\^-)(?<![^\W\d_]-)(?=[.\d]){MIXED}(?P<amount>{DECIMAL})?"
    rf"(?: ?(?P<to>[-–…]|\.\.\.|to) ?(?P<minus2>-)?(?P<amount2>{DECIMAL})|(?P<by>(?: ?[x×] ?{DECIMAL}){{1,2}}))?"
    rf"{_MAGNITUDE}(?P<gap>[ -]?)(?P<unit>{UNIT})(?P<power>{_POWER})?"
    rf"(?:/(?P<per_many>10{{2,3}} ?)?(?P<per>{UNIT}|{_OFTEN})(?P<per_power>{_POWER})?(?:/(?P<per2>{UNIT}|{_OFTEN}))?)?"
    r"(?![\w°²³]|[.'’]\w|/\w)(?P<stop>\.?)"
)
_UNIT_RANGE: Final = re.compile(rf"(?<![\w.,:/$£€¥])({DECIMAL})( ?(?:{UNIT})) ?[-–] ?(?={DECIMAL}\2(?!\w))")
_FEET: Final = re.compile(r"(?<![\w.,])(\d{1,2})['′](?: ?(\d{1,2}(?:\.\d)?)(?:\"|″|''))(?!\w)")
_INCHES: Final = re.compile(r"(?<![\w.,/])(?:(\d{1,3}(?:\.\d{1,3})?)|(?:(\d{1,3}) )?(\d{1,2})/([1-9]\d?))\"(?!\w)")
_INCHES_BY: Final = re.compile(r"(?<=\binches)(?: ?[x×] ?| by )(?=\w)")
_RATE: Final = re.compile(rf"(?<![\w.,/$£€¥-])({DECIMAL})/(min|hr|h|s|{_OFTEN})(?![\w/])")
_SIDES: Final = LENGTHS | {"px", "pixel", "nm", "°"}
_THINGS_PER: Final = re.compile(r"(?<=[a-z]s)/(?=(?:m?l|m?L|[mk]?g|k?m|[cm]?m[²³23]|min|h|s)(?![\w/]))")
_SEATS: Final = re.compile(r"(?<![\w.,-])(\d{1,3})([A-Z]) ?[-–] ?(?=(?:\d{1,3})?[A-Z](?![\w-]))")
_QUOTE: Final = re.compile(r"(?<!\d)\"")
"""A quotation mark that stands for no inches, so that others may stand for none either."""
_AFTER_PER: Final = re.compile(rf"(?<=\bper )({UNIT})({_POWER})?(?![\w/'-])")
_INCHES_TOLD: Final = re.compile(
    r" (?:wide|long|tall|high|deep|thick)(?= ?(?:[.,;:!?)]|\Z|(?:and|by|or|x)\b))"
    r"| (?:screen|display|monitor|panel|tablet|pipe)\b|\Z"
)
"""But "five in high school"."""
_INCHES_OF: Final = re.compile(r" (?:TVs?|screens?|displays?|monitors?|tablets?|pipes?|pizzas?|laptops?|wheels?)\b")
_FEET_BEFORE: Final = re.compile(r"\b(?:ft|feet|foot) $")
_MINUTES: Final = re.compile(
    r"(?<![\w.,])(\d{1,3})° ?(\d{1,2})'(?: ?(\d{1,2}(?:\.\d{1,4})?)(?:\"|''))?(?: ?([NSEW])\b)?"
)
_DEGREE_RANGE: Final = re.compile(r"(?<=\d)°(?= ?[-–] ?-?\d{1,4}(?:\.\d{1,3})? ?°)")
_SPEED: Final = re.compile(r"(?<![\w/])(k?m|mi|[mk]?g|m?l|L|[kMG][bB]|[kMG]bit)/(h|s|min|d|m³|m²|kg|l|L)(?![\w/])")
"""A unit without a number, where it can be nothing else."""
_PIXELS: Final = re.compile(
    rf"(?<![\w.,])(\d{{3,4}}) ?[x×] ?(\d{{3,4}})(?![.,]\d|\d| ?=)(?! ?(?!px)(?:{UNIT})(?!\w))( ?px\b)?"
)
_COMPASS: Final = {"N": "north", "S": "south", "E": "east", "W": "west"}
_DEGREES: Final = re.compile(r"(?<![\w°])° ?([CF])\b")
_OLD: Final = re.compile(r"(?<=\d)([ -])(?:yr\.?(?=[ -]olds?\b)|yrs\.?(?=[ -]olds\b))")
_MILESTONE: Final = re.compile(r"(?<![\w.])(?<!\d )km (?=\d)")
_WIND: Final = re.compile(r"(?<=[Ww]ind )([NSEW]{1,2})\b|(?<=[Ww]ind: )([NSEW]{1,2})\b|\b([NSEW]{1,2})(?= [Ww]inds?\b)")
_WINDS: Final = {
    **_COMPASS, "NE": "northeast", "NW": "northwest", "SE": "southeast", "SW": "southwest",
}  # fmt: skip
PLACES: Final = frozenset(
    "seat gate room row apt apartment flat platform terminal size block figure fig section page bay zone unit stand "
    "exit grade class level type model plan part hall building wing track lane line appendix table lot suite "
    "class form door group bus route vitamin step floor channel box cell".split()
)
"""Before a number and a letter, these tell that the letter belongs to a name: "Gate 5 A"."""
_GLUED_PLACES: Final = PLACES | frozenset("runway coach car carriage bed ward stall locker counter desk berth".split())
"""And these before a capital that touches the number: "Runway 27L", but "the car 5 m ahead"."""


_LETTERS: Final = frozenset("B L N t".split())


def measures(text: str, reading: Reading) -> str:
    """Put quantities into words, the unit's plural by value."""
    if "°" in text:
        text = rewrite(_MINUTES, _minutes, text)
        text = rewrite(_DEGREE_RANGE, "", text)
    text = rewrite(_SEATS, _seats, text)
    text = rewrite(_OLD, r"\1year", text)
    text = rewrite(_MILESTONE, "kilometer ", text)
    if "ind" in text:
        text = rewrite(_WIND, lambda match: _WINDS.get(match[1] or match[2] or match[3], match.group()), text)
    text = rewrite(_FEET, _feet, text)
    if '"' in text and not _QUOTE.search(text):
        text = rewrite(_INCHES, _inches, text)
        text = rewrite(_INCHES_BY, " by ", text)
    text = rewrite(_PIXELS, _pixels, text)
    text = rewrite(_UNIT_RANGE, lambda match: f"{match[1]}–", text)
    text = rewrite(_QUANTITY, lambda match: _quantity(match, reading), text)
    text = rewrite(_RATE, lambda match: f"{match[1]} per {_below(match[2], None, many=False, british=False)}", text)
    text = rewrite(_THINGS_PER, " per ", text)
    text = rewrite(_AFTER_PER, lambda match: unit_name(match[1], match[2], many=False, british=reading.british), text)
    if "/" in text:
        text = rewrite(_SPEED, lambda match: f"{unit_name(match[1])} per {unit_name(match[2], many=False)}", text)
    return rewrite(_DEGREES, lambda match: unit_name("°" + match[1]), text)


def unit_name(written: str, power: str | None = None, *, many: bool = True, british: bool = False) -> str:
    """Return the name of a unit of the table, squared or cubed where `power` says so."""
    name = UNITS[written][many]
    if power and _is_time(written):
        name += " squared" if power[-1] in "2²" else " cubed"
    elif power:
        name = ("square " if power[-1] in "2²" else "cubic ") + name
    return name.replace("meter", "metre").replace("liter", "litre") if british else name


def _below(written: str, power: str | None, *, many: bool, british: bool) -> str:
    """Return the name of what stands below a unit: another one, or a word, as in "mg/day"."""
    return unit_name(written, power, many=many, british=british) if written in UNITS else written


def _is_time(written: str) -> bool:
    """Whether a unit's powers are said behind it: "meters per second squared"."""
    return written in {"s", "h", "min"}


def _quantity(match: re.Match[str], reading: Reading) -> str:
    unit, power, amount = match["unit"], match["power"], match["amount"]
    if not (amount or match["top"]) or _no_unit(match, reading):
        return match.group()
    words, many = _number(match, reading)
    compound = match["gap"] == "-" or is_attribute(match.string, match.start(), match.end())
    if unit == "°" and power:
        return match.group()
    if power and unit not in LENGTHS and power[-1] not in "²³":
        return match.group()
    name = unit_name(unit, power, many=many and not compound, british=reading.british)
    if match["per"]:
        # An abbreviation that stays one keeps what stands below it: "three CC per S".
        below = (
            match["per"].upper()
            if unit == "cc"
            else _below(match["per"], match["per_power"], many=bool(match["per_many"]), british=reading.british)
        )
        number = whole(match["per_many"].strip()) + " " if match["per_many"] else ""
        name += f" per {number}{below}"
        if match["per2"]:
            name += f" per {_below(match['per2'], None, many=False, british=reading.british)}"
    ended = match["stop"] and (unit in {"%", "°"} or "°" in unit or begins_sentence(match.string, match.end()))
    return f"{words} {name}{'.' if ended else ''}"


def _no_unit(match: re.Match[str], reading: Reading) -> bool:
    """Whether what looks like a unit is none: "Seat 12A", "6 in the morning", "the 80s"."""
    unit, gap = match["unit"], match["gap"]
    if not unit.isalpha() or match["per"] or match["size"]:
        return bool(match["size"]) and unit in DOUBTFUL
    if unit == "s" and _is_decade(match, reading):
        return True
    if unit in DOUBTFUL and not match["power"] and not _is_told(match, reading):
        return True
    if gap == "-" and (len(unit) == 1 or match["amount2"]):
        return True
    if len(unit) > 1:
        return False
    named = unit.isupper() and gap == " " and re.match(r" [A-Z][a-z]", match.string[match.end() :][:3])
    return bool(named) or _names_a_place(match, glued=unit.isupper() and not gap)


def _names_a_place(match: re.Match[str], *, glued: bool) -> bool:
    before = word_before(match.string, match.start())
    return before in PLACES or (glued and before.removesuffix("s") in _GLUED_PLACES)


def _is_decade(match: re.Match[str], reading: Reading) -> bool:
    amount = match["amount"] or ""
    glued, quoted = not match["gap"], match.string[match.start() - 1 : match.start()] == "'"
    if re.fullmatch(r"\d{4}", amount) or (quoted and glued):
        return True
    told = reading.alone or tells_decade(match.string, match.start(), match.end())
    return glued and bool(re.fullmatch("[2-9]0", amount)) and told


def _is_told(match: re.Match[str], reading: Reading) -> bool:
    """Whether a doubtful unit is one: "6in", "6 in.", "2 L"."""
    unit, gap = match["unit"], match["gap"]
    if match["stop"] and not begins_sentence(match.string, match.end()):
        return True
    if unit == "in" and (
        _INCHES_TOLD.match(match.string, match.end()) or _FEET_BEFORE.search(match.string[: match.start()][-6:])
    ):
        return True
    if match["stop"] and unit in {"in", "mo", "pt"} and not match.string[match.end() :].strip():
        return True
    amount = match["amount"] or ""
    if unit == "K":
        # "273.15 K", "6500 K"; but "300 K people", "250 K of it" and "a 10 K run".
        things = counts(match.string, match.end()) or next_word(match.string, match.end()) in {"a", "an", "of", "per"}
        return gap == " " and not reading.alone and not things and ("." in amount or len(amount) > 2)  # noqa: PLR2004
    if unit in _LETTERS:
        # "2L bottles", "2 L"; but "Unit 2L."
        glued = unit == "L" and next_word(match.string, match.end()).islower()
        return unit in {"t", "L"} and (gap == " " or glued) and not reading.alone
    return not gap and unit != "st"


def _number(match: re.Match[str], reading: Reading) -> tuple[str, bool]:
    """Return the words of the number or range, and whether the unit is in the plural."""
    british = reading.british
    sign = {"-": "minus ", "±": "plus or minus "}.get(match["sign"] or "", "")
    if match["top"]:
        words = spoken_fraction(match["whole"], match["top"], match["bottom"])
        return sign + words, True
    words, many = decimal(match["amount"], british=british), match["amount"] != "1" or bool(match["size"])
    if match["amount2"]:
        minus = "minus " if match["minus2"] else ""
        words += f" to {minus}{decimal(match['amount2'], british=british)}"
        many = True
    for side in re.findall(DECIMAL, match["by"] or ""):
        joint = "by" if match["unit"] in _SIDES else "times"  # two sides of something, or two packs of 500 g
        words += f" {joint} {decimal(side, british=british)}"
        many = True
    return sign + words + (match["size"] or ""), many


def _pixels(match: re.Match[str]) -> str:
    return f"{in_pairs(match[1])} by {in_pairs(match[2])}{' pixels' if match[3] else ''}"


def _inches(match: re.Match[str]) -> str:
    one = match[1] == "1" or is_attribute(match.string, match.start(), match.end())
    one = one or bool(_INCHES_OF.match(match.string, match.end()))
    words = decimal(match[1]) if match[1] else spoken_fraction(match[2], match[3], match[4])
    return f"{words} {'inch' if one else 'inches'}"


def _minutes(match: re.Match[str]) -> str:
    """Read a place on the globe: degrees, minutes, seconds."""
    parts = [
        f"{decimal(number)} {name}{'' if number == '1' else 's'}"
        for number, name in zip(match.groups(), ("degree", "minute", "second"), strict=False)
        if number
    ]
    return " ".join([*parts, _COMPASS[match[4]]] if match[4] else parts)


def _seats(match: re.Match[str]) -> str:
    """Say "to" in "seats 14A-14C"."""
    named = word_before(match.string, match.start()).removesuffix("s") in _GLUED_PLACES
    return f"{match[1]}{match[2]} to " if named else match.group()


def _feet(match: re.Match[str]) -> str:
    feet, inches = match[1], match[2]
    words = f"{decimal(feet)} {'foot' if feet == '1' else 'feet'}"
    return f"{words} {decimal(inches)} {'inch' if inches == '1' else 'inches'}"

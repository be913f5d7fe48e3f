"""Money and units: so many of something that has a sign."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from engines.text.normalize.tongues.numeral import SPACED, Numeral, read
from engines.text.normalize.tongues.spans import GAP, SIGN, START, before, sign_of
from engines.text.normalize.tongues.tongue import Currency, Noun, Tongue, alternatives

_HUNDREDTHS: Final = 2
_NEXT: Final = 3
_RATE: Final = re.compile(r"(?<=\d)/(min|h|s)(?![\w/])")
_SEAT: Final = re.compile(r"\d{1,4}[A-Z]")
_SEATS: Final = frozenset(
    "platz sitz sitzplatz reihe wagen gleis tor gate terminal zimmer raum halle eingang ausgang linie bus block "
    "abschnitt place siège rang voiture quai porte chambre salle hall ligne bloc asiento butaca fila vagón andén "
    "puerta habitación sala línea bloque posto poltrona carrozza binario porta uscita camera linea blocco lugar "
    "assento carruagem quarto linha saída".split()
)
"""Before a number and a letter, these tell a name: no current flows through a seat, as it does through a motor."""


def money(tongue: Tongue, text: str) -> str:
    """Put sums into words: 5,99 €, $3.50, CHF 12.50, 3 Mio. €, 5€50."""
    text = _money_before(tongue).sub(lambda found: _sum(tongue, text, found), text)
    behind = text
    return _money_behind(tongue).sub(lambda found: _sum(tongue, behind, found), behind)


def units(tongue: Tongue, text: str) -> str:
    """Put measured values into words: 6.5 V, 20 °C, 45%, 64/min; 3 €/kg has been said by `money`."""
    text = _RATE.sub(lambda found: f" {tongue.per_one(tongue.units[found[1]].one)}", text)
    return _units(tongue).sub(lambda found: _value(tongue, text, found), text)


def scales(tongue: Tongue, text: str) -> str:
    """Put abbreviated thousands and millions into words: 3 Mio. Besucher."""
    return _scales(tongue).sub(lambda found: _scaled(tongue, text, found), text)


def signed(tongue: Tongue, text: str, start: int, sign: str) -> str:
    """Return what a sign that stands at `start` is called, or the sign itself where it is none."""
    meant = sign_of(text, start, sign)
    words = {"-": tongue.minus, "+": tongue.plus, "±": tongue.plus_minus, "": ""}[meant]
    if not words:
        return sign
    glued = start > 0 and text[start - 1].isalnum()
    return f"{' ' if glued else ''}{words} "


def _sum(tongue: Tongue, text: str, found: re.Match[str]) -> str:
    parts = found.groupdict()
    currency = tongue.currencies[parts["currency"]]
    numeral = read(parts["number"], decimal=tongue.decimal, counts=True)
    if numeral is None:
        return found[0]
    if parts.get("cents"):
        numeral = Numeral(numeral.whole, parts["cents"])
    front = signed(tongue, text, found.start(), parts["sign"]) if parts["sign"] else ""
    scale = parts.get("scale")
    words = _scaled_sum(tongue, numeral, tongue.scales[scale], currency) if scale else _plain(tongue, numeral, currency)
    return front + words + _per(tongue, parts.get("per"))


def _plain(tongue: Tongue, numeral: Numeral, currency: Currency) -> str:
    minor = currency.minor
    if minor is None or len(numeral.fraction) != _HUNDREDTHS:
        if numeral.fraction and not numeral.fraction.strip("0"):
            numeral = Numeral(numeral.whole)
        return tongue.count(numeral, currency.major)
    cents = int(numeral.fraction)
    if not cents:
        return tongue.count(Numeral(numeral.whole), currency.major)
    if not numeral.whole.strip("0"):
        return tongue.count(Numeral(str(cents)), minor)
    return tongue.money(tongue.count(Numeral(numeral.whole), currency.major), cents, minor)


def _scaled_sum(tongue: Tongue, numeral: Numeral, scale: Noun, currency: Currency) -> str:
    link = "" if scale.one in tongue.thousands else tongue.of
    return f"{tongue.count(numeral, scale)} {tongue.elide(link, currency.major.many)}"


def _value(tongue: Tongue, text: str, found: re.Match[str]) -> str:
    numeral = read(found["number"], decimal=tongue.decimal)
    if numeral is None or _is_seat(found):
        return found[0]
    front = signed(tongue, text, found.start(), found["sign"]) if found["sign"] else ""
    words = front + tongue.count(numeral, unit_of(tongue, found["unit"])) + _per(tongue, found["per"])
    # The point of an abbreviation ends a sentence, too, if it stands there.
    follows = text[found.end() :][:_NEXT].lstrip(" ")
    ends = not follows or follows[0] == "\n" or (follows[0].isupper() and not tongue.nouns_are_capital)
    return words + "." if found[0].endswith(".") and ends else words


def _is_seat(found: re.Match[str]) -> bool:
    """Whether a letter belongs to a name: Platz 14A."""
    if not _SEAT.fullmatch(found[0]):
        return False
    return before(found.string, found.start())[1] in _SEATS


def _scaled(tongue: Tongue, text: str, found: re.Match[str]) -> str:
    numeral = read(found["number"], decimal=tongue.decimal)
    if numeral is None:
        return found[0]
    front = signed(tongue, text, found.start(), found["sign"]) if found["sign"] else ""
    return front + tongue.count(numeral, tongue.scales[found["scale"]])


def _per(tongue: Tongue, unit: str | None) -> str:
    return f" {tongue.per_one(unit_of(tongue, unit).one)}" if unit else ""


def unit_of(tongue: Tongue, written: str) -> Noun:
    """Return the unit of a sign that `unit_names` takes; degrees are written ° C and ºC as well."""
    name = written if written in tongue.units else re.sub(rf"[°º]{GAP}", "°", written)
    return tongue.units[name]


def unit_names(tongue: Tongue) -> str:
    """Return a pattern of all units; one that ends in a letter ends there."""
    names = alternatives(tongue.units).replace("°", f"[°º]{GAP}")
    return rf"(?:{names})(?![^\W_])"


def _per_pattern(tongue: Tongue) -> str:
    return rf"(?:{GAP}/{GAP}(?P<per>{unit_names(tongue)}))?"


@cache
def _money_before(tongue: Tongue) -> re.Pattern[str]:
    names = alternatives(name for name in tongue.currencies if not name[0].islower())
    scale = rf"(?:{GAP}(?P<scale>{alternatives(tongue.scales)})(?!\w))?"
    return re.compile(rf"{SIGN}(?<![^\W_])(?P<currency>{names}){GAP}(?P<number>{SPACED}){scale}{_per_pattern(tongue)}")


@cache
def _money_behind(tongue: Tongue) -> re.Pattern[str]:
    scale = rf"{GAP}(?P<scale>{alternatives(tongue.scales)})(?:{GAP}(?:{tongue.of_pattern}))?"
    names = rf"(?P<currency>{alternatives(tongue.currencies)})(?:(?P<cents>(?<=[^\w.])\d\d(?!\d))|(?![^\W_]))"
    return re.compile(
        rf"{SIGN}{START}(?P<number>{SPACED})(?:,[-\u2013\u2014]{{1,2}})?"
        rf"(?:{scale}|{GAP}){GAP}{names}{_per_pattern(tongue)}"
    )


@cache
def _units(tongue: Tongue) -> re.Pattern[str]:
    return re.compile(
        rf"{SIGN}{START}(?P<number>{SPACED}){GAP}(?P<unit>{unit_names(tongue)})"
        rf"{_per_pattern(tongue)}"
    )


@cache
def _scales(tongue: Tongue) -> re.Pattern[str]:
    short = alternatives(name for name in tongue.scales if name in tongue.short_scales)
    return re.compile(rf"{SIGN}{START}(?P<number>{SPACED}){GAP}(?P<scale>{short})(?!\w)")

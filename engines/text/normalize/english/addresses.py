"""Postal addresses: house numbers, streets, states and their codes."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.numbers import digits, in_pairs
from engines.text.normalize.english.patterns import FUNCTION_WORDS, begins_sentence, rewrite
from engines.text.normalize.english.reading import Reading

STREETS: Final = {
    "st": "Street", "ave": "Avenue", "av": "Avenue", "blvd": "Boulevard", "rd": "Road", "dr": "Drive", "ln": "Lane",
    "ct": "Court", "expy": "Expressway", "hwy": "Highway", "pkwy": "Parkway", "pl": "Place", "sq": "Square",
    "ter": "Terrace", "cir": "Circle", "trl": "Trail", "fwy": "Freeway", "tpke": "Turnpike", "aly": "Alley",
    "xing": "Crossing", "cres": "Crescent", "plz": "Plaza", "brg": "Bridge", "pk": "Park", "pt": "Point",
    "hts": "Heights",
}  # fmt: skip
_IN_FULL: Final = (
    "Street|Avenue|Boulevard|Road|Drive|Lane|Court|Expressway|Highway|Parkway|Place|Square|Terrace|Circle|Way"
)
_DIRECTIONS: Final = {
    "N": "North", "S": "South", "E": "East", "W": "West",
    "NE": "Northeast", "NW": "Northwest", "SE": "Southeast", "SW": "Southwest",
}  # fmt: skip
_DIRECTION: Final = r"(?:[NS][EW]|[NSEW])\b\.?"
_STREET: Final = "|".join(sorted(STREETS, key=len, reverse=True))
_NAME: Final = r"(?:[A-Z][\w'’]{0,30}|\d{1,3}(?:st|nd|rd|th))"
_ADDRESS: Final = re.compile(
    rf"(?<![\w.,$£€/:-])(?P<number>\d{{1,5}})(?P<letter>[A-Za-z]?) (?:(?P<direction>{_DIRECTION}) )?"
    rf"(?P<name>{_NAME}(?: {_NAME}){{0,3}}?) (?:(?P<street>(?i:{_STREET}))\b(?P<stop>\.?)|(?P<full>{_IN_FULL})\b)"
    rf"(?: (?P<quarter>{_DIRECTION})(?=,|$|\.))?"
)
_STATES: Final = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California", "CO": "Colorado",
    "CT": "Connecticut", "DE": "Delaware", "DC": "DC", "FL": "Florida", "GA": "Georgia", "HI": "Hawaii", "ID": "Idaho",
    "IL": "Illinois", "IN": "Indiana", "IA": "Iowa", "KS": "Kansas", "KY": "Kentucky", "LA": "Louisiana",
    "ME": "Maine", "MD": "Maryland", "MA": "Massachusetts", "MI": "Michigan", "MN": "Minnesota", "MS": "Mississippi",
    "MO": "Missouri", "MT": "Montana", "NE": "Nebraska", "NV": "Nevada", "NH": "New Hampshire", "NJ": "New Jersey",
    "NM": "New Mexico", "NY": "New York", "NC": "North Carolina", "ND": "North Dakota", "OH": "Ohio",
    "OK": "Oklahoma", "OR": "Oregon", "PA": "Pennsylvania", "RI": "Rhode Island", "SC": "South Carolina",
    "SD": "South Dakota", "TN": "Tennessee", "TX": "Texas", "UT": "Utah", "VT": "Vermont", "VA": "Virginia",
    "WA": "Washington", "WV": "West Virginia", "WI": "Wisconsin", "WY": "Wyoming", "PR": "Puerto Rico",
}  # fmt: skip
_STATE: Final = re.compile(
    rf"(?<=[a-z],)( )({'|'.join(_STATES)})(?: (\d{{5}})(?:-(\d{{4}}))?)?(?=[,.;:!?)]|$|\n| (?:USA|US|U\.S\.|[a-z]))"
)
_ZIP: Final = re.compile(rf"\b({'|'.join(sorted(set(_STATES.values())))}),? (\d{{5}})(?:-(\d{{4}}))?(?![\w,.]\d|\w)")
_SAINT: Final = re.compile(
    r"\bSt\. (?=[A-Z])|(?<![A-Za-z\d] )(?<![A-Za-z])\bSt (?=[A-Z][a-z])|(?<=[a-z] )\bSt (?=[A-Z][a-z])"
)
_DIRECTED: Final = re.compile(
    r"(?<![\w.])([NSEW])\.? "
    rf"(?=[A-Z][a-z]{{1,20}} (?:{'|'.join(street.capitalize() for street in STREETS)}|{_IN_FULL})\b)"
)
_ROAD: Final = re.compile(r"(?<=[a-z] )(Ave|Blvd|Rd|Hwy|Pkwy|Ln|Expy|St)\.(?!\w)")
_ORDINAL_STREET: Final = re.compile(r"\b(\d{1,3}(?:st|nd|rd|th)) (St|Ave|Rd|Blvd|Dr|Pl)\b\.?")
_APARTMENT: Final = re.compile(r"\b(Apt|Ste|Bldg|Fl|Rm)\b\.? (?=#?\d|[A-Z]\b)")
_ROOMS: Final = {"Apt": "Apartment", "Ste": "Suite", "Bldg": "Building", "Fl": "Floor", "Rm": "Room"}


def addresses(text: str, _: Reading) -> str:
    """Put postal addresses into words: "fourteen twenty eight Elm Street"."""
    if any(sign.isdecimal() for sign in text):
        text = rewrite(_APARTMENT, lambda match: _ROOMS[match[1]] + " ", text)
        text = rewrite(_ADDRESS, _address, text)
        text = rewrite(_ORDINAL_STREET, lambda match: f"{match[1]} {STREETS[match[2].lower()]}{_stop(match)}", text)
        text = rewrite(_ZIP, lambda match: f"{match[1]} {_zip(match[2], match[3])}", text)
    text = rewrite(_DIRECTED, lambda match: _DIRECTIONS[match[1]] + " ", text)
    text = rewrite(_STATE, _state, text)
    text = rewrite(_SAINT, _saint, text)
    return rewrite(_ROAD, lambda match: STREETS[match[1].lower()] + _stop(match), text)


def _address(match: re.Match[str]) -> str:
    name = match["name"]
    if name.split()[0].lower() in FUNCTION_WORDS:
        return match.group()
    words = [in_pairs(match["number"])]
    if match["letter"]:
        words.append(match["letter"].upper())
    if match["direction"]:
        words.append(_DIRECTIONS[match["direction"].rstrip(".")])
    words += [name, match["full"] or STREETS[match["street"].lower()]]
    if match["quarter"]:
        words.append(_DIRECTIONS[match["quarter"].rstrip(".")])
    stop = "." if match["stop"] and begins_sentence(match.string, match.end()) else ""
    return " ".join(words) + stop


def _stop(match: re.Match[str]) -> str:
    return "." if match.group().endswith(".") and begins_sentence(match.string, match.end()) else ""


_TITLED: Final = re.compile(
    r"\b(?:Dr|Prof|Mr|Mrs|Ms|doctor|professor|mister|misses|miss)\.? (?:[A-Z][\w.'’-]* ?){1,3},$"
)
_SAID_BEFORE_OK: Final = frozenset(
    "yes sure fine well right good great alright thanks hey hello oh so no please smoke fire gas heat wait sorry look "
    "listen now say dear".split()
)
_WORDS_TOO: Final = frozenset("OK HI ME OH IN OR".split())
_PLACE: Final = re.compile(
    r"(?:^|\n|\b(?i:in|to|from|near|of|at|for|via|through|around|outside|between|and) )"
    r"([A-Z][\w'’.-]*)(?: [A-Z][\w'’.-]*){0,2},$"
)
"""A town, by what stands before it; else "Dear Tom, OK." would be spoken to Oklahoma."""


def _state(match: re.Match[str]) -> str:
    if not match[3]:
        # "Tulsa, OK", but "yes, OK", "smoke, CO detected" and "Dr. Jones, MD".
        before = match.string[max(0, match.start() - 60) : match.start()]
        last = re.search(r"[\w'’]+(?=,$)", before)
        named = last and last.group()[0].isupper() and last.group().lower() not in _SAID_BEFORE_OK
        if match[2] in _WORDS_TOO:
            place = _PLACE.search(before)
            named = named and place and place[1].lower() not in _SAID_BEFORE_OK
        if not named or _TITLED.search(before):
            return match.group()
    words = f"{match[1]}{_STATES[match[2]]}"
    return f"{words} {_zip(match[3], match[4])}" if match[3] else words


def _zip(five: str, four: str | None) -> str:
    return f"{digits(five)}, {digits(four)}" if four else digits(five)


def _saint(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 30) : match.start()]
    after = re.match(r"\w+", match.string[match.end() :])
    street = re.search(r"[A-Z][a-z'’]+ $", before) and after and after.group().lower() in FUNCTION_WORDS
    return "Street. " if street else "Saint "

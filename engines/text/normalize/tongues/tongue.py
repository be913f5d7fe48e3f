"""What a language has to know, so that numbers in its texts can be said: words, forms and customs.

A pure description. One object a language is shared by all threads; nothing in it changes once it is made.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final, Literal

from engines.text.normalize.tongues.numeral import Numeral

Form = Literal["alone", "m", "f"]
"""A number by itself (uno, eins), before a masculine or neuter noun (un, ein), before a feminine one (una, eine)."""

IN_PARTS: Final = frozenset("seite teil schritt folie page partie étape página parte paso etapa pagina passo".split())
"""After these words of all languages 3/10 is the third of ten."""

LARGEST: Final = 10**15
"""From here on numbers are said digit by digit: nobody follows them as quantities."""


@dataclass(frozen=True, slots=True)
class Noun:
    """What is counted: a unit, a currency, a power of ten."""

    one: str
    many: str
    gender: Form = "m"


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency and its hundredth, where it has one."""

    major: Noun
    minor: Noun | None = None


@dataclass(frozen=True, slots=True)
class Day:
    """A date as it was written; checked, so it is in the calendar. `year` and `month` may not have been written."""

    day: int
    month: int
    year: int | None = None


class Tongue(ABC):
    """One language. The class attributes are its words, the methods its grammar; numbers given are never negative."""

    decimal: str = ","
    """The mark before the fraction of a number in this locale: a comma or a point."""
    pairs_after_comma: ClassVar[bool] = True
    """Whether 6,25 is said "six comma twenty-five"; else, and for any other count of digits, they are said singly."""

    digits: tuple[str, ...]
    """Zero to nine, as one reads out a code."""
    month_first: bool = False
    """Whether 03/04/2026 is the fourth of March: by the configuration, no country of these languages."""
    comma: str
    minus: ClassVar[str]
    plus: ClassVar[str]
    plus_minus: ClassVar[str]
    times: ClassVar[str]
    equals: ClassVar[str]
    dot: ClassVar[str]
    """In versions and addresses: 1.2.3."""
    until: ClassVar[str]
    """In ranges: 5-10."""
    ratio: ClassVar[str]
    """In proportions: 16:9."""
    out_of: ClassVar[str]
    """In counts: 5/12."""
    squared: ClassVar[str]
    power: ClassVar[str]
    nouns_are_capital: ClassVar[bool] = False
    """Whether a capital letter tells a noun, so that it tells no new sentence."""
    phone_labels: ClassVar[frozenset[str]] = frozenset()
    """Those of `labels` that telephone numbers follow, where they are read otherwise than codes."""
    number_sign: ClassVar[str]
    """What "Nr." and "#" stand for."""
    number_signs: ClassVar[str]
    """A pattern of what is written for it before digits."""
    labels: ClassVar[frozenset[str]]
    """Words, in lower case, after which digits are a code or a telephone number, never a quantity."""
    places: ClassVar[frozenset[str]]
    """Words, in lower case, after which a number names something, so what follows is not counted: Gleis 1 Abschnitt."""
    no_nouns: ClassVar[frozenset[str]]
    """Words, in lower case, that follow a number without being counted by it: 3 und, 5 de."""

    months: tuple[str, ...]
    month_aliases: ClassVar[Mapping[str, int]] = {}
    units: Mapping[str, Noun]
    currencies: Mapping[str, Currency]
    """By each sign and code that is written for one."""
    scales: dict[str, Noun]
    """By each way to write a thousand, a million and so on behind a number."""
    thousands: ClassVar[frozenset[str]]
    """Those of `scales` that no "of" follows."""
    short_scales: ClassVar[frozenset[str]] = frozenset()
    """Those of `scales` that are abbreviations, whatever is counted."""
    of: ClassVar[str] = ""
    """Between millions and what is counted, its space included: un millón de euros."""
    of_pattern: ClassVar[str] = "(?!)"
    """How it may be written."""
    per: ClassVar[str]
    """In €/kg."""
    also: ClassVar[str]
    """And."""
    of_month: ClassVar[str] = ""
    """A pattern of what stands between a day, its month and its year, its space included."""
    clock_suffix: ClassVar[str] = "(?!)"
    """What may be written behind 8:05 and is said anyway, or not at all."""

    half: ClassVar[tuple[str, str] | tuple[()]] = ()
    """Half a masculine and half a feminine thing, what joins them included, where that takes the noun's gender."""
    and_half: ClassVar[tuple[str, str]] = ("", "")
    """Behind what is counted: y medio, y media."""
    plural_ends: ClassVar[tuple[str, ...]] = ()
    """What all plurals end in, where there is such."""

    duration_suffix: ClassVar[str] = "min"
    """What tells that 1 h 30 is no time of day."""

    @abstractmethod
    def cardinal(self, number: int, form: Form = "alone") -> str:
        """Return the words of a number below LARGEST."""

    @abstractmethod
    def ordinal(self, number: int, form: Form = "m") -> str:
        """Return the words of its place in a row; "alone" is the short form (primer, dritte)."""

    @abstractmethod
    def fraction(self, top: int, bottom: int) -> str | None:
        """Return the words of a fraction, or None where it is none that one would say as such."""

    @abstractmethod
    def date(self, day: Day, before: str) -> str:
        """Return the words of a day. `before`: the one or two words in front of it, in lower case."""

    @abstractmethod
    def clock(self, hour: int, minute: int, before: str) -> str:
        """Return the words of a time of day. `before`: the word in front of it, in lower case."""

    @abstractmethod
    def gender_of(self, noun: str) -> Form:
        """Guess the gender of a noun as it was written."""

    @abstractmethod
    def money(self, major: str, cents: int, minor: Noun) -> str:
        """Add hundredths, 1 to 99, to the words of whole euros or dollars."""

    @abstractmethod
    def ordinals(self, text: str) -> str:
        """Put every place in a row into words, as this language writes such: 3., 1º, 1er, 2ème."""

    def times_written(self, text: str) -> str:
        """Put into words the times of day that only this language writes so; 8:05 and 8h05 are common to all."""
        return text

    def year(self, year: int) -> str:
        """Return the words of a year."""
        return self.cardinal(year)

    def lone(self, whole: str, second: str, first: str) -> str:
        """Return a number without sign and fraction that counts nothing; `second first` are the words before it."""
        del second, first
        return self.whole(whole)

    def is_noun(self, word: str) -> bool:
        """Whether a word behind a number is what it counts."""
        return word.lower() not in self.no_nouns and word.lower() not in self.months

    def singular(self, noun: str) -> str:
        """Return a noun's singular, as far as its ending tells."""
        return re.sub(r"(?<=[aeo])s$", "", noun)

    def mixed(self, whole: str, fraction: str, *, half: bool) -> str:
        """Return a whole number and a fraction in words. `half`: the fraction is one."""
        del half
        return f"{self.whole(whole)} {self.also} {fraction}"

    def is_one(self, numeral: Numeral) -> bool:
        """Whether a counted noun stands in the singular."""
        return numeral.whole == "1" and not numeral.fraction

    def spell(self, digits: str) -> str:
        """Return digits one by one."""
        return " ".join(self.digits[int(digit)] for digit in digits)

    def phone_group(self, digits: str) -> str:
        """Return the digits between two gaps of a telephone number."""
        return self.spell(digits)

    def whole(self, digits: str, form: Form = "alone") -> str:
        """Return an integer as it was written: with leading zeros, or too long for anybody, it is spelled."""
        if (len(digits) > 1 and digits[0] == "0") or len(digits) > len(str(LARGEST)) - 1:
            return self.spell(digits)
        return self.cardinal(int(digits), form)

    def say(self, numeral: Numeral, form: Form = "alone") -> str:
        """Return a number with its sign and its fraction."""
        words = self.minus + " " if numeral.negative else ""
        if not numeral.fraction:
            return words + self.whole(numeral.whole, form)
        words += self.whole(numeral.whole)
        fraction = numeral.fraction
        pair = self.pairs_after_comma and len(fraction) == len("25") and fraction[0] != "0"
        return f"{words} {self.comma} {self.cardinal(int(fraction)) if pair else self.spell(fraction)}"

    def count(self, numeral: Numeral, noun: Noun) -> str:
        """Return so many of something."""
        link = self.link(numeral)
        name = noun.one if self.is_one(numeral) else noun.many
        return f"{self.say(numeral, noun.gender)} {self.elide(link, name)}"

    def link(self, numeral: Numeral) -> str:
        """Return what stands between a number and what it counts, besides a space."""
        whole = numeral.whole
        millions = len(whole) > len("000000") and whole.endswith("000000") and not numeral.fraction
        return self.of if millions else ""

    def per_one(self, name: str) -> str:
        """Return "per" and the unit that it is of."""
        return f"{self.per} {name}"

    def elide(self, link: str, name: str) -> str:
        """Join an "of" to what follows it."""
        return link + name

    def elided(self, number: str, noun: str) -> str:
        """Return the number as it sounds in front of that noun."""
        del noun
        return number

    @cached_property
    def month_pattern(self) -> str:
        """A pattern of all names and abbreviations of months."""
        return alternatives([*self.months, *self.month_aliases])

    def month_number(self, name: str) -> int:
        """Return 1 to 12 for a name that `month_pattern` takes."""
        name = name.lower()
        if name in self.month_aliases:
            return self.month_aliases[name]
        return [month.lower() for month in self.months].index(name) + 1


def alternatives(names: Iterable[str]) -> str:
    """Return a pattern that takes any of these, the longest that fits."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_GENDERS: Final[dict[str, Form]] = {"": "m", "f": "f", "-": "alone"}


def nouns(table: str) -> dict[str, Noun]:
    """Read lines `sign sign... | one | many | gender`.

    Without `many` both are the same, without a gender it is "m"; "-" takes the form that is used alone.
    """
    read: dict[str, Noun] = {}
    for line in table.strip().splitlines():
        signs, one, *rest = (cell.strip() for cell in line.split("|"))
        many = rest[0] if rest and rest[0] else one
        gender: Form = _GENDERS[rest[1] if len(rest) > 1 else ""]
        read.update(dict.fromkeys(signs.split(), Noun(one, many, gender)))
    return read


def currencies(table: str) -> dict[str, Currency]:
    """Read lines `sign sign... | one | many | one hundredth | hundredths`, the last two where there are such."""
    read: dict[str, Currency] = {}
    for line in table.strip().splitlines():
        signs, one, many, *minor = (cell.strip() for cell in line.split("|"))
        gender: Form = "f" if one.endswith("*") else "m"
        major = Noun(one.rstrip("*"), many, gender)
        read.update(dict.fromkeys(signs.split(), Currency(major, Noun(minor[0], minor[1]) if minor else None)))
    return read

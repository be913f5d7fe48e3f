"""Numbers in English words."""

from __future__ import annotations

from typing import Final

_ONES: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS: Final = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES: Final = " thousand million billion trillion quadrillion quintillion".split(" ")
_ORDINALS: Final = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}

MOST_DIGITS: Final = 3 * len(_SCALES)
"""Longer numbers have no name here, and nobody would follow it: they are read digit by digit."""

_YEARS: Final = range(1000, 3000)
_LONGEST_YEAR: Final = 4


def cardinal(number: int, *, british: bool = False) -> str:
    """Return 342 as "three hundred forty two", in British as "three hundred and forty two"."""
    if number < 0:
        return "minus " + cardinal(-number, british=british)
    written = str(number)
    if len(written) > MOST_DIGITS:
        return digits(written)
    if number == 0:
        return _ONES[0]
    words: list[str] = []
    for scale in range((len(written) - 1) // 3, -1, -1):
        part = number // 1000**scale % 1000
        if not part:
            continue
        if british and words and not scale and part < 100:  # noqa: PLR2004  below: two thousand *and* five
            words.append("and")
        words.append(_below_thousand(part, british=british))
        if scale:
            words.append(_SCALES[scale])
    return " ".join(words)


def _below_thousand(number: int, *, british: bool) -> str:
    hundreds, rest = divmod(number, 100)
    words = [_ONES[hundreds], "hundred"] if hundreds else []
    if rest:
        if hundreds and british:
            words.append("and")
        tens, ones = divmod(rest, 10)
        if rest < len(_ONES):
            words.append(_ONES[rest])
        else:
            words.append(_TENS[tens])
            if ones:
                words.append(_ONES[ones])
    return " ".join(words)


def ordinal(number: int, *, british: bool = False) -> str:
    """Return 21 as "twenty first"."""
    return as_ordinal(cardinal(number, british=british))


def as_ordinal(words: str) -> str:
    """Return a cardinal's words as an ordinal's: only the last one changes."""
    head, _, last = words.rpartition(" ")
    changed = _ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return f"{head} {changed}" if head else changed


_SUFFIXES: Final = {1: "st", 2: "nd", 3: "rd"}


def suffix_of(number: int) -> str:
    """Return what an ordinal in figures ends with: "st", "nd", "rd" or "th"."""
    return "th" if number // 10 % 10 == 1 else _SUFFIXES.get(number % 10, "th")


def digits(written: str) -> str:
    """Return "042" as "zero four two"; whatever is no digit is left out."""
    return " ".join(_ONES[int(digit)] for digit in written if digit.isdecimal())


def whole(written: str, *, british: bool = False) -> str:
    """Return digits, with or without thousands commas, as a number; with a leading zero one by one."""
    bare = written.replace(",", "")
    if len(bare) > 1 and bare[0] == "0":
        return digits(bare)
    return digits(bare) if len(bare) > MOST_DIGITS else cardinal(int(bare), british=british)


def decimal(written: str, *, british: bool = False) -> str:
    """Return "1,234.50", ".5" or "-3" in words."""
    sign = "minus " if written.startswith("-") else ""
    before, point, after = written.lstrip("-").partition(".")
    words = [whole(before, british=british)] if before else []
    if point:
        words += ["point", digits(after)]
    return sign + " ".join(words)


def year(written: str | int) -> str:
    """Return 1907 as "nineteen oh seven", 2005 as "two thousand five", 340 as "three forty"."""
    number = int(written)
    hundreds, rest = divmod(number, 100)
    if not hundreds or number % 1000 < len(_TENS) or len(str(number)) > _LONGEST_YEAR:
        return cardinal(number)
    if not rest:
        return cardinal(hundreds) + " hundred"
    return f"{cardinal(hundreds)} {two_figures(rest)}"


def two_figures(number: int) -> str:
    """Return 7 as "oh seven", 42 as "forty two": what follows the hour or the century."""
    return f"oh {_ONES[number]}" if number < len(_TENS) else cardinal(number)


def is_year(written: str) -> bool:
    """Whether four digits are usually a year: 1000 to 2999."""
    return len(written) == _LONGEST_YEAR and int(written) in _YEARS


def decade(written: str) -> str:
    """Return "1980" as "nineteen eighties", "90" as "nineties", "2000" as "two thousands"."""
    words = year(written) if len(written) == _LONGEST_YEAR else cardinal(int(written))
    return plural(words)


def plural(words: str) -> str:
    """Return a number's words in the plural: "sixties", "thirds", "quarters"."""
    if words.endswith("six"):
        return words + "es"
    return words[:-1] + "ies" if words.endswith("y") else words + "s"


def mixed(written: str) -> str:
    """Return digits within a code of letters and digits: a number while it can be grasped, else one by one."""
    graspable = 5
    return digits(written) if len(written) > graspable else whole(written)


def in_pairs(written: str, zero: str = "zero") -> str:
    """Return a number that names: 1428 as "fourteen twenty eight", 905 as "nine zero five", 300 as "three hundred"."""
    head, tail = written[:-2], written[-2:]
    if len(written) <= 2 or len(written) > 4 or written[0] == "0":  # noqa: PLR2004
        return digits(written) if written[0] == "0" else cardinal(int(written))
    if tail == "00":
        return cardinal(int(written)) if head.endswith("0") else f"{cardinal(int(head))} hundred"
    return f"{cardinal(int(head))} {zero + ' ' + digits(tail[1]) if tail[0] == '0' else cardinal(int(tail))}"

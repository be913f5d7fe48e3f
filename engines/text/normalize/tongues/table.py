"""Which language's rules go with a name, and the order in which they read a text.

The first to take a number keeps it: what is unmistakable comes first (a label, a date, a time), what would take
anything comes last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from engines.text.normalize.tongues import amounts, chinese, chinese_words, codes, dates, doses, halves, numbers, told
from engines.text.normalize.tongues.french import French
from engines.text.normalize.tongues.german import German
from engines.text.normalize.tongues.italian import Italian
from engines.text.normalize.tongues.portuguese import Portuguese
from engines.text.normalize.tongues.spanish import Spanish
from engines.text.normalize.tongues.spans import has_number, plain_digits
from engines.text.normalize.tongues.times import times
from engines.text.normalize.tongues.tongue import Tongue

_LATIN_AMERICA: Final = frozenset("419 us pr do gt hn ni pa pe sv".split())
"""Spanish with a decimal point; the other countries of South America write a comma."""

_TONGUES: Final[dict[str, Callable[[str], Tongue]]] = {
    "de": German,
    "es": Spanish,
    "fr": French,
    "it": Italian,
    "pt": Portuguese,
}

_BARE_POINT: Final = re.compile(r"(?<![\w.,])\.(?=\d)")
"""Some sensors write .5 for 0.5."""

_STEPS: Final[tuple[Callable[[Tongue, str], str], ...]] = (
    dates.dates,
    codes.numbered,
    codes.labelled,
    codes.phones,
    numbers.ranges,
    times,
    codes.dotted,
    numbers.powers,
    numbers.operators,
    lambda tongue, text: tongue.ordinals(text),
    halves.halves,
    numbers.parts_of_units,
    doses.doses,
    amounts.money,
    amounts.units,
    amounts.scales,
    numbers.fractions,
    numbers.cardinals,
    numbers.leftovers,
)


def written_forms(language: str, *, month_first: bool = False) -> Callable[[str], str] | None:
    """Return what puts the written forms of a language into words, or None for a language that has no rules here.

    `month_first`: 03/04/2026 is the fourth of March.

    `language` as espeak-ng or BCP 47 names it: "de", "de-at", "es-419", "fr-ch", "pt-br", "cmn"; either case, _ or -.
    The function is pure and takes time linear to its text; any thread may call it. Digits do not outlive it.
    """
    parts = _parts(language)
    if parts[0] in {"zh", "cmn"}:
        return partial(_chinese, month_first=month_first)
    tongue = tongue_of(language, month_first=month_first)
    if tongue is None:
        return None
    _read(tongue, "0 x")  # compiles the patterns, 40 ms that the first sentence need not wait for
    return partial(_read, tongue)


def say_as(text: str, interpret_as: str, fmt: str | None, language: str) -> str | None:
    """Return `text` read as what SSML's say-as calls it, or None where it cannot be read so.

    `interpret_as`: cardinal, ordinal, digits, characters, fraction, date, time, telephone, currency or unit. `fmt`:
    for a date the order of its parts, such as "dmy", "mdy", "ymd", "dm" or "my".
    """
    forms = written_forms(language)
    if forms is None:
        return None
    plain = plain_digits(text.strip())
    fmt = fmt.upper() if fmt and interpret_as == "currency" else fmt
    tongue = tongue_of(language)
    if interpret_as == "characters":
        from engines.text.normalize.tongues.shorthand import sign_names  # noqa: PLC0415  it needs this module

        return told.spelled(plain, tongue.digits if tongue else chinese_words.DIGITS, sign_names(_parts(language)[0]))
    if tongue is None:
        return told.chinese_as(plain, interpret_as, fmt, forms)
    return told.say_as(tongue, plain, interpret_as, fmt, forms)


def tongue_of(language: str, *, month_first: bool = False) -> Tongue | None:
    """Return the description of a language that parts its words by spaces, or None where there is none here."""
    name, region = _parts(language)
    if name == "es" and region in _LATIN_AMERICA:
        region = "419"
    return _made(name, region, month_first) if name in _TONGUES else None


@lru_cache(maxsize=32)
def _made(name: str, region: str, month_first: bool) -> Tongue:  # noqa: FBT001  a cache's key has no names
    tongue = _TONGUES[name](region)
    tongue.month_first = month_first
    return tongue


def _parts(language: str) -> tuple[str, str]:
    name, _, rest = language.lower().replace("_", "-").partition("-")
    return name, rest.rpartition("-")[2]


def _read(tongue: Tongue, text: str) -> str:
    if not has_number(text):
        return text
    text = _BARE_POINT.sub("0.", plain_digits(text))
    for step in _STEPS:
        text = step(tongue, text)
    return text


def _chinese(text: str, *, month_first: bool) -> str:
    if not has_number(text):
        return text
    return chinese.written_forms(plain_digits(text), month_first=month_first)

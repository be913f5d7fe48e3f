"""Letters and digits glued together: model names, codes, formulas."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.numbers import digits, mixed
from engines.text.normalize.english.patterns import rewrite, word_before
from engines.text.normalize.english.reading import Reading

_SERIAL: Final = re.compile(
    r"(?<![\w-])(?<!\d[,.])(?=[\w/-]{0,60}\d)(?=[\w/-]{0,60}[^\W\d_])[^\W_]{1,60}(?:[-/][^\W_]{1,60}){0,12}(?![\w])"
)
_PARTS: Final = re.compile(r"\d+|[^\W\d_]+|[-/]")
_SEVEN: Final = re.compile(r"\b7-(eleven|11)\b", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"(?<![\w-])([Aa]) (?=[a-z])")
"""Before a number espeak-ng takes "A" for the article, unless the two are joined."""

_POINT: Final = re.compile(
    r"(?<![\w.])(\w{0,20}[^\W\d_]-?)(\d{1,9}\.\d{1,9})(?![\w]|\.\d)|(?<![\w.,])(\d{1,9}\.\d{1,9})([^\W\d_]{1,20})(?!\w)"
)
_PLAIN_HYPHEN: Final = re.compile(r"\d+-[^\W\d_]+(?:-[^\W\d_]+)*")


def serials(text: str, _: Reading) -> str:
    """Part letters and digits: "t zero t twenty five d twelve"; figures with a leading zero one by one."""
    text = rewrite(_SEVEN, "seven eleven", text)
    text = rewrite(_POINT, _point, text)
    return rewrite(_SERIAL, _serial, text)


def _serial(match: re.Match[str]) -> str:
    written = match.group()
    room = _flight(match)
    words = []
    for part in _PARTS.findall(written):
        if part.isdecimal():
            words.append(digits(part) if room else mixed(part))
        else:
            words.append(part)
    return _ARTICLE.sub(r"\1-", re.sub(r" ?([-/]) ?", r"\1", " ".join(words)))


def _flight(match: re.Match[str]) -> bool:
    """Whether the figures are read one by one: a flight, a licence plate, a code."""
    return word_before(match.string, match.start()) in {
        "flight",
        "code",
        "pin",
        "plate",
        "password",
        "ticket",
        "reference",
    }


def _point(match: re.Match[str]) -> str:
    letters, number = (match[1], match[2]) if match[2] else (match[4], match[3])
    before, after = number.split(".")
    words = f"{mixed(before)} point {digits(after)}"
    if match[2]:
        letters = "version " if letters in {"v", "V"} else letters if letters.endswith("-") else letters + " "
        return letters + words
    return f"{words} {letters}"

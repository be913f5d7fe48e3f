"""Signs that are left, by name, and the last digits."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.numbers import digits
from engines.text.normalize.english.patterns import rewrite
from engines.text.normalize.english.reading import Reading

_NAMES: Final = {
    "%": "percent", "&": "and", "@": "at", "#": "hash", "+": "plus", "=": "equal sign", "*": "asterisk", "$": "dollar",
    "£": "pound", "€": "euro", "¥": "yen", "₹": "rupee", "₩": "won", "₽": "ruble", "¢": "cent", "°": "degrees",
    "©": "copyright", "®": "registered trademark", "™": "trademark", "§": "section", "¶": "paragraph", "~": "tilde",
    "^": "caret", "_": "underscore", "\\": "backslash", "÷": "divided by", "×": "times", "‰": "per mille",
    "<": "less than", ">": "greater than", "µ": "micro", "℃": "degrees Celsius", "℉": "degrees Fahrenheit",
    "−": "minus", "♯": "sharp", "♭": "flat", "²": "squared", "³": "cubed", "₪": "shekel", "₿": "bitcoin",
}  # fmt: skip
_ANY: Final = re.compile("\\s?([" + "".join(re.escape(sign) for sign in _NAMES) + "])\\s?")
_CPP: Final = re.compile(r"\b([A-Z])(\+\+|#)(?!\w)")
_NUMBER_SIGN: Final = re.compile(r"(?<!\w)# ?(?=\d)")
_STARS: Final = re.compile(r"(?<![\w.])([1-7])\* (?=[a-z])")
_OR: Final = re.compile(r"(?<=[^\W_]) / (?=[^\W_])|(?<=[^\W\d_])/(?=[^\W\d_])(?!or\b)")
_PER: Final = re.compile(
    r"(?:(?<=[a-z]s)|(?<=\b[Oo]nce)|(?<=\b[Tt]wice))/(?=(?:second|minute|hour|day|night|week|month|year|person|visit|room)\b)"
)
_AND_OR: Final = re.compile(r"\band/or\b", re.IGNORECASE)
_SLASH: Final = re.compile(r"(?<=\w)/(?=\s|$)|(?<![^\s])/(?=[\w\s]|$)")
_QUOTED_SLASH: Final = re.compile(r"(?<=['\"“‘])/{1,3}(?=['\"”’])")
_LONE_SLASH: Final = re.compile(r"(?<!\w)/(?!\w)")
_MINUS_LEFT: Final = re.compile(r"(?<![\w.,)\]-])-(?=[\d.])")
_DIGITS: Final = re.compile(r"\d+")
_MARKS: Final = re.compile(r"(?<=\w) ?[®™]")
_GLUED_MARK: Final = re.compile(r"(?<=[a-z])([,;:])(?=[a-z])")
"""Between words that were figures: "1,2,3"."""
_LEFT_POINT: Final = re.compile(r"(?<=\d)\.(?=\d)")
_NUMBER_WORD: Final = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|"
    "(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand|million"
)
_POINT_IN_WORDS: Final = re.compile(rf"\b({_NUMBER_WORD})\.(?=(?:{_NUMBER_WORD})\b)")
_BARS: Final = re.compile(r"(?<=\w)\s{1,3}[|¦]\s{1,3}(?=\w)")
"""Between entries of a menu: a pause."""
_UNSAID: Final = re.compile("[|¦†‡№]")
_FIGURES_SLASH: Final = re.compile(r"(?<=\d)/(?=\d)")
_GLUED_NUMBER_SIGN: Final = re.compile(r"(?<=[a-z])#(?=\d)")
_ARROW: Final = re.compile(r"(?<=[\w)])\s?→\s?(?=\w)")
_ARROWS: Final = re.compile("[\u2190-\u21d1\u21d3-\u21ff]")
_RULE: Final = re.compile(r"[_*=~^+#-]{3,}")


def number_signs(text: str, reading: Reading) -> str:
    """Put what stands before a number into words: "#1" as "number one", "~5" as "about 5"."""
    text = rewrite(_CPP, lambda match: f"{match[1]} {'sharp' if match[2] == '#' else 'plus plus'}", text)
    text = rewrite(_STARS, r"\1 star ", text)
    if "/" in text:
        text = rewrite(_AND_OR, "and or", text)
        text = rewrite(_PER, " per ", text)
        text = rewrite(_OR, " slash ", text)
        text = rewrite(_FIGURES_SLASH, " slash ", text)
    text = rewrite(_GLUED_NUMBER_SIGN, " number ", text)
    return text if reading.alone else rewrite(_NUMBER_SIGN, "number ", text)


def signs(text: str, _: Reading) -> str:
    """Name the signs that nothing else has read. A line of them, as between paragraphs, is not read at all."""
    text = rewrite(_RULE, " ", text)
    if "/" in text:
        text = rewrite(_SLASH, " slash ", text)
        text = rewrite(_QUOTED_SLASH, " slash ", text)
        text = rewrite(_LONE_SLASH, " ", text)
    text = rewrite(_MARKS, " ", text)
    text = rewrite(_ANY, lambda match: f" {_NAMES[match[1]]} ", text)
    text = rewrite(_ARROW, " to ", text)
    text = rewrite(_ARROWS, " ", text)
    text = rewrite(_BARS, ", ", text)
    text = rewrite(_UNSAID, " ", text)
    if any(sign.isdecimal() for sign in text):
        text = rewrite(_LEFT_POINT, " point ", text)
        text = rewrite(_DIGITS, _digits, text)
    text = rewrite(_POINT_IN_WORDS, r"\1 point ", text)
    return rewrite(_GLUED_MARK, r"\1 ", text)


def _digits(match: re.Match[str]) -> str:
    text, start, end = match.string, match.start(), match.end()
    before = " " if text[start - 1 : start].isalnum() else ""
    after = " " if text[end : end + 1].isalnum() else ""
    return before + digits(match.group()) + after

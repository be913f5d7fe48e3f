"""Unicode repair: the same character for what means the same, and nothing that is not to be heard."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_TABLE: Final = {
    **dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u2060\ufeff\u180e\u034f"), None),  # soft hyphen, zero width
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C], None),  # direction
    **dict.fromkeys([*range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0)], None),  # variants of a glyph; not emoji's
    **dict.fromkeys(map(ord, "\u00a0\u1680\u202f\u205f\u3000"), " "),
    **dict.fromkeys(range(0x2000, 0x200B), " "),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\u00b4\u02b9\u2032\uff07"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033\uff02"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\ufe63\uff0d"), "-"),
    ord("\u2028"): "\n", ord("\u2029"): "\n\n", ord("\x0b"): "\n", ord("\x0c"): "\n", ord("\x85"): "\n",
    ord("\u2044"): "/", ord("\u2215"): "/", ord("\u00b5"): "\u03bc", ord("\u2126"): "\u03a9", ord("\u212a"): "K",
    ord("\u2103"): "°C", ord("\u2109"): "°F", ord("\u2116"): "№", ord("\u066b"): ".", ord("\u066c"): ",",
}  # fmt: skip
_TABLE.update(
    dict.fromkeys((code for code in [*range(0x20), *range(0x7F, 0xA0)] if chr(code) not in "\n\r\x0b\x0c\x85\t"), " ")
)
_ODD: Final = re.compile(r"[^\x20-\x7e\n]")
"""A text without any of these needs no repair."""

_MINUS: Final = re.compile(r"\u2212(?=[\d.])(?<![\w)]\u2212)(?<!\d \u2212)")
_JOINED: Final = re.compile(r"(?<=[^\W\d_])\u2013(?=[^\W\d_])")
_BACKTICK: Final = re.compile(r"(?<=[^\W\d_])`(?=[^\W\d_])")
_COMPATIBLE: Final = re.compile(
    "[\uff01-\uff5e\ufb00-\ufb06\u2460-\u249b\u24b6-\u24ff\u2776-\u2793\u2100-\u2102\u2104-\u2108\u210a-\u2115\u2117-\u2121\u2123-\u2125"
    "\u2150-\u215f\u00bc-\u00be\u3250-\u33ff\U0001d400-\U0001d7ff\U0001f100-\U0001f12f\u2070\u2074-\u208e]"
    "|(?<=[0-9])[\u02b0-\u02b8\u02e0-\u02e4\u1d2c-\u1d6a]{1,4}"
)
"""Forms of letters and digits for looks alone: wide, circled, joined, bold. Not ² and ³, which the rules read."""

_RAISED: Final = re.compile(
    "(?<=[0-9a-zA-Z)])(?<![a-zA-Z]{2})([\u207a\u207b]?[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,6})"
)
_ISOTOPE: Final = re.compile("(?<![\\w)])([\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,3})(?=[A-Z][a-z]?(?![a-z]))")
_DIGIT: Final = re.compile(r"(?![0-9])\d")
_NUMERAL: Final = re.compile("[^\\W\\d_a-zA-Z²³¹\u2150-\u218f\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[\u00b9]")
_ROMAN_SIGN: Final = re.compile("[\u2160-\u2182\u2185-\u2188]")


def repair(text: str) -> str:
    """Return `text` in composed characters, without what is invisible, its quotes and spaces the plain ones.

    Digits of all scripts become 0 to 9, lone surrogates U+FFFD; "½" becomes "1/2", apart from a digit before it.
    """
    if not _ODD.search(text):
        return _BACKTICK.sub("'", text) if "`" in text else text
    # By way of UTF-16, two surrogates that belong together become their character.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = unicodedata.normalize("NFC", text).translate(_TABLE)
    text = _ISOTOPE.sub(lambda match: unicodedata.normalize("NFKC", match[1]), text)
    text = _RAISED.sub(_raised, text)
    text = _COMPATIBLE.sub(_compatible, text)
    text = _DIGIT.sub(lambda match: str(unicodedata.decimal(match.group())), text)
    text = _NUMERAL.sub(_numeral, text)
    text = _MINUS.sub("-", text)
    text = _JOINED.sub("-", text)
    text = _BACKTICK.sub("'", text)
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")


def _raised(match: re.Match[str]) -> str:
    """Put an exponent but ² and ³ into digits behind "^"."""
    written = match[1]
    return written if written in {"²", "³"} else "^" + unicodedata.normalize("NFKC", written).replace("\u2212", "-")


def plain_numerals(text: str) -> str:
    """Return `text` with Unicode's Roman numerals as digits, for languages whose rules know of no rulers."""
    return _ROMAN_SIGN.sub(lambda match: f" {int(unicodedata.numeric(match.group()))} ", text)


def _compatible(match: re.Match[str]) -> str:
    sign = match.group()
    plain = unicodedata.normalize("NFKC", sign).replace("\u2044", "/")
    before = match.string[match.start() - 1 : match.start()]
    after = match.string[match.end() : match.end() + 1]
    if unicodedata.category(sign[0]) != "No":
        return plain
    # A fraction or a circled number that touches a figure is no part of it.
    return (" " if before.isnumeric() else "") + plain.strip("().") + (" " if after.isalnum() else "")


def _numeral(match: re.Match[str]) -> str:
    """Put a numeral of another script into digits: it has no digits of its own kind around it."""
    sign = match.group()
    value = unicodedata.numeric(sign, None)
    if value is None or unicodedata.category(sign) == "Lo":
        return sign
    return f" {value:g} " if "e" not in f"{value:g}" else f" {int(value)} "

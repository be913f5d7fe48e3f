"""What espeak-ng leaves unsaid of numbers, in languages that have no rules of their own: a minus, a decimal point.

Without them -4 degrees are 4. Everything else of a number is left to espeak-ng.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

_MINUS: Final = {
    "ar": "ناقص", "bg": "минус", "ca": "menys", "cs": "mínus", "cy": "minws", "da": "minus", "el": "μείον",
    "et": "miinus", "fa": "منفی", "fi": "miinus", "hi": "माइनस", "hr": "minus", "hu": "mínusz", "is": "mínus",
    "ja": "マイナス", "ka": "მინუს", "kk": "минус", "ko": "마이너스", "lb": "minus", "lt": "minus", "lv": "mīnus",
    "nb": "minus", "nl": "min", "no": "minus", "pl": "minus", "ro": "minus", "ru": "минус", "sk": "mínus",
    "sl": "minus", "sr": "minus", "sv": "minus", "tr": "eksi", "uk": "мінус", "vi": "âm",
}  # fmt: skip
"""Tried on espeak-ng 1.52: some twenty of these say -4 as 4. Those that do not say the same with the word."""

_POINTLESS: Final = frozenset(("nl", "pl", "ro"))
"""Here 3.5 is said as "three five", 3,5 with the word for the comma."""

_SIGN: Final = re.compile(r"(?<![\w)\]°%.,\u2212\u2013-])[-\u2212\u2013](?=\d|[.,]\d)")
_POINT: Final = re.compile(r"(?<![\w.,:/-])(\d{1,12})\.(\d{1,2}|\d{4,12})(?!\d|[.,:/-]\d)")
_TIME: Final = re.compile(r"(?:[01]?\d|2[0-3])\.[0-5]\d")


def unsaid(language: str) -> Callable[[str], str] | None:
    """Return what puts these signs into words, None where nothing is known of a language, named in two letters.

    The function is pure and takes time linear to its text; any thread may call it.
    """
    minus = _MINUS.get(language)
    return None if minus is None else partial(_read, minus, language in _POINTLESS)


def _read(minus: str, comma: bool, text: str) -> str:  # noqa: FBT001  bound by position
    text = _SIGN.sub(f"{minus} ", text)
    return _POINT.sub(_with_comma, text) if comma and "." in text else text


def _with_comma(match: re.Match[str]) -> str:
    """Return a sensor's 3.5 as 3,5; what may be a time of day stays."""
    return match[0] if _TIME.fullmatch(match[0]) else f"{match[1]},{match[2]}"

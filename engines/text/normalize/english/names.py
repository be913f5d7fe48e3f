"""Names that have numbers, and are not read as quantities: models, standards, flights."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.numbers import digits, in_pairs
from engines.text.normalize.english.patterns import rewrite
from engines.text.normalize.english.reading import Reading

_MODEL: Final = re.compile(
    r"\b(Boeing|RTX|GTX|Radeon|Porsche|Peugeot|(?i:highway|route|interstate|hwy))(\.? )(\d{3,4})(?:(-)(\d{3}))?"
    r"(?![\w/]|[.,:-]\d)"
)
_HIGHWAY: Final = re.compile(r"\b[Hh]wy\b\.? (?=\d)")
_AIRBUS: Final = re.compile(r"(?<![\w-])A(3[0-8]\d)(neo|ceo)?(?![\w]|[.,]\d)")
_HYPHENED: Final = re.compile(r"(?<![\w-])(SHA|AES|RSA|US|SR|CA|I|U|Pu|Cs)-([1-9]\d{2,3})(?![\w.,-]\d|\w)")
_FLIGHTS: Final = re.compile(
    r"(?<=[Ff]lights )([A-Z][A-Z0-9]\d{1,4}(?:(?:/|, | and | & )[A-Z][A-Z0-9]\d{1,4}){1,8})(?!\w)"
)
_WIRELESS: Final = re.compile(r"(?<![\w.])802\.(\d{1,2})([a-z]{0,2})(?!\w)")
_STANDARD: Final = re.compile(r"(?<![\w.-])([A-Z])\.(\d{2,4})(?![\w]|[.,-]\d)")
_FLIGHT: Final = re.compile(
    r"\b([Ff]lights? (?:no\. |number )?)([A-Z][A-Z0-9]|[A-Z]{3})([ -]?)(\d{1,4})(?![\w.,/-]\d|\w)"
)
_PICTURE: Final = re.compile(r"(?<![\w.,])(480|576|720|1080|1440|2160)([pi])(?!\w)")
_WORLD_WAR: Final = re.compile(r"\bWW ?(?:(II|2)|(I|1))(?![\w])")
_VERSIONED: Final = re.compile(
    r"\b(Python|Java|Ubuntu|Debian|Android|iOS|macOS|Linux|kernel|JetPack|CUDA|TensorRT|Node|Bluetooth|USB|HDMI|TLS|MQTT|"
    r"ROS|firmware|software|release|revision|build)( )(\d{1,4}(?:\.\d{1,4}){1,3})(?![\w]|[.,]\d)"
)


def names(text: str, reading: Reading) -> str:
    """Put names into words: "Boeing seven forty seven", "Highway one oh one", "flight LH four five four"."""
    text = rewrite(_HIGHWAY, "Highway ", text)
    text = rewrite(_FLIGHTS, _flights, text)
    text = rewrite(_FLIGHT, lambda match: f"{match[1]}{match[2]} {digits(match[4])}", text)
    text = rewrite(_MODEL, _model, text)
    if not reading.alone:
        text = rewrite(_AIRBUS, lambda match: f"A-{in_pairs(match[1], 'oh')} {match[2] or ''}".rstrip(), text)
        text = rewrite(_HYPHENED, lambda match: f"{match[1]} {in_pairs(match[2], 'oh')}", text)
    text = rewrite(_PICTURE, lambda match: f"{in_pairs(match[1])} {match[2]}", text)
    text = rewrite(_WORLD_WAR, lambda match: f"World War {'two' if match[1] else 'one'}", text)
    if "." in text:
        text = rewrite(_WIRELESS, _wireless, text)
        text = rewrite(_STANDARD, lambda match: f"{match[1]} {in_pairs(match[2], 'oh')}", text)
        text = rewrite(_VERSIONED, lambda match: f"{match[1]} {_version(match[3])}", text)
    return text


def _flights(match: re.Match[str]) -> str:
    return re.sub(r"([A-Z][A-Z0-9])(\d{1,4})", lambda one: f"{one[1]} {digits(one[2])}", match.group())


def _model(match: re.Match[str]) -> str:
    words = f"{match[1]}{match[2]}{in_pairs(match[3], 'oh')}"
    return f"{words} {in_pairs(match[5], 'oh')}" if match[5] else words


def _wireless(match: re.Match[str]) -> str:
    letters = " ".join(match[2].upper())
    return f"eight oh two dot {in_pairs(match[1])} {letters}".rstrip()


def _version(written: str) -> str:
    return " point ".join(in_pairs(part) if len(part) < 3 else digits(part) for part in written.split("."))  # noqa: PLR2004

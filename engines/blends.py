"""Blends of styles and style vectors, as they are sent: what is none is refused, whatever the voice."""

from __future__ import annotations

import base64
import binascii
import math
import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from engines.errors import StyleError

VECTOR_NUMBERS: Final = 256

SMALLEST_NORM: Final = 0.5
LARGEST_NORM: Final = 30.0
"""Of a vector: rows of Kokoro's 54 styles have norms of 1 to 13; far beyond, its decoder gives noise."""

_MOST_PARTS: Final = 8

NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_PART: Final = re.compile(rf"\s*({NAME})\s*(?::\s*([0-9.]{{1,10}})\s*)?")

Blend = tuple[tuple[str, float], ...]
"""Names and their weights, which add up to 1."""


@dataclass(frozen=True, slots=True)
class Mix:
    """A style in between, for a family that has styles: just one of the two is given."""

    parts: tuple[tuple[int, float], ...] = ()
    """Speakers and their weights, which add up to 1."""
    vector: bytes = b""
    """256 float16, little-endian."""


def read_blend(text: str) -> Blend:
    """Read `name` or `name:weight+name:weight`; weights count in relation to each other. StyleError where it is none.

    What has no weight is left out, so that 100 % of one is just that one.
    """
    parts: dict[str, float] = {}
    pieces = text.split("+")
    if len(pieces) > _MOST_PARTS:
        raise StyleError(text, f"blends more than {_MOST_PARTS} styles")
    for piece in pieces:
        found = _PART.fullmatch(piece)
        try:
            weight = float(found[2] or 1) if found else math.nan
        except ValueError:
            weight = math.nan
        if found is None or not math.isfinite(weight):
            raise StyleError(text, "should read like calm or af_heart:0.7+bf_emma:0.3")
        parts[found[1]] = parts.get(found[1], 0.0) + weight
    total = sum(parts.values())
    if total <= 0:
        raise StyleError(text, "has no weight at all")
    return tuple((name, weight / total) for name, weight in parts.items() if weight)


def read_vector(text: str) -> bytes:
    """Give the 256 float16, little-endian, of a style vector in base64; of nothing, nothing. StyleError otherwise."""
    if not text:
        return b""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise StyleError("style_vector", "is not base64") from None
    if len(content) != 2 * VECTOR_NUMBERS:
        raise StyleError("style_vector", f"has {len(content)} bytes, not the {2 * VECTOR_NUMBERS} of 256 float16")
    vector = np.frombuffer(content, "<f2").astype(np.float32)
    if not np.isfinite(vector).all():
        raise StyleError("style_vector", "holds what is no number")
    norm = float(np.linalg.norm(vector))
    if not SMALLEST_NORM <= norm <= LARGEST_NORM:
        raise StyleError("style_vector", f"has a norm of {norm:.3g}, not {SMALLEST_NORM:g} to {LARGEST_NORM:g}")
    return content


def check(style: str, vector: str) -> None:
    """Read both, of which one at most may be given. StyleError where one is none."""
    if style and vector:
        raise StyleError("style", "and style_vector are not both to be given")
    read_vector(vector)
    if style:
        read_blend(style)

"""English readings of a text whose kind is told."""

from __future__ import annotations


def said_as(text: str, interpret_as: str) -> str | None:
    """Return `text` in words, None where it is no such thing."""
    return " ".join(text) if interpret_as in {"characters", "spell-out"} else None

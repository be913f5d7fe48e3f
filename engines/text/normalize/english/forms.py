"""English written forms in words, whatever their kind."""

from __future__ import annotations


def written_forms(text: str) -> str:
    """Return `text` with its written forms in words."""
    return text

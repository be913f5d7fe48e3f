"""Long texts in pieces, so that speech can begin before the last page is understood."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

# ruff: noqa: RUF001  the marks of many scripts are what this is about
_CLOSING: Final = "[\"'”’»›)\\]}」』】]*"

_CUTS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?=\n\s*\n)",  # a paragraph
        rf"[.!?…]+{_CLOSING}(?=\s)|[。！？]+{_CLOSING}|(?=\n)",  # a sentence; CJK writes no space after it
        r"[,;:](?=\s)|[，、；：]",  # a clause
        r"(?=\s)",  # a word
    )
)
"""Where a text may be cut, best first: at the end of a match, which never includes white space."""

_SPACE: Final = re.compile(r"\s*")


def blocks(text: str, *, max_chars: int) -> Iterator[str]:
    """Yield `text` in order, in pieces of at most `max_chars` characters.

    Each cut is the last one of the best kind that fits: paragraph, sentence, clause, word, or wherever it must be.
    White space at a cut and around the text is dropped, nothing else is; no piece is blank. A text that fits
    comes back whole. ValueError where `max_chars` is below 1.
    """
    if max_chars < 1:
        raise ValueError(f"max_chars is {max_chars}")
    start = _after_space(text, 0)
    end = len(text.rstrip())
    while start < end:
        cut = end if end - start <= max_chars else _best_cut(text, start, start + max_chars)
        yield text[start:cut].rstrip()
        start = _after_space(text, cut)


def complete(text: str, *, least_chars: int) -> tuple[str, str]:
    """Divide a text that is still being written after its last complete sentence: (that far, the rest).

    A sentence is complete once something follows it. A first part of fewer than `least_chars` characters is not worth
    a cut: the first part is then empty, and the rest the whole text.
    """
    ends = [match.end() for match in _CUTS[1].finditer(text) if match.end() < len(text)]
    if not ends or ends[-1] < least_chars:
        return "", text
    return text[: ends[-1]], text[ends[-1] :]


def _after_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _best_cut(text: str, start: int, limit: int) -> int:
    """Return the end of a piece that begins at `start`, which is no white space, and ends at `limit` or before."""
    for pattern in _CUTS:
        # One character beyond the limit is looked at: the space that makes a mark at the limit a good cut.
        ends = [match.end() for match in pattern.finditer(text, start, limit + 1)]
        fitting = [end for end in ends if start < end <= limit]
        if fitting:
            return fitting[-1]
    return limit

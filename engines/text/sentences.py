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
        rf"(?<![.!?…])[.!?…]+{_CLOSING}(?=\s)|[。！？]+{_CLOSING}|(?=\n)",  # a sentence; CJK writes no space after it
        r"[,;:](?=\s)|[，、；：]",  # a clause
        r"(?=\s)",  # a word
    )
)
"""Where a text may be cut, best first: at the end of a match, which never includes white space.

A run of marks is looked at from its beginning only: a line of dots else takes time in the square of its length.
"""

_SENTENCES: Final = _CUTS[1]

_ABBREVIATED: Final = frozenset(
    "mr mrs ms dr prof st rev hon gen col maj capt lt sgt sen rep gov pres mt ft messrs mme mlle sr sra srta "
    "no nr vs vol fig ch pp approx ca cf viz al "
    "bzw ca usw evtl ggf inkl zzgl str tel abs art".split()
)
"""Words whose full stop ends no sentence, since something must follow; of the languages of most voices."""

_LAST_WORD: Final = re.compile(r"(?:^|[\s(\[\"'“‘„«])((?:[^\W\d_]\.){0,6}[^\W\d_]{1,8})$")
_DAYTIME: Final = re.compile(r"[ap]\.m|[A-Z](?:\.[A-Z])+|e\.g|i\.e|z\.B|d\.h|u\.a")
_NEXT: Final = re.compile(r"\s*[\"'“‘„«(\[]?(.)")

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
    ends = [match.end() for match in _SENTENCES.finditer(text) if match.end() < len(text) and _ends(match)]
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
        matches = pattern.finditer(text, start, limit + 1)
        fitting = [
            match.end()
            for match in matches
            if start < match.end() <= limit and (pattern is not _SENTENCES or _ends(match))
        ]
        if fitting:
            return fitting[-1]
    return limit


def _ends(match: re.Match[str]) -> bool:
    """Whether a mark ends a sentence: not the full stop of "Dr. Smith", "J. Smith", "at 9 a.m. sharp", "z.B. dies"."""
    if match.group() != ".":
        return True
    text, start, end = match.string, match.start(), match.end()
    before = _LAST_WORD.search(text, max(0, start - 24), start)
    if before is None:
        return True
    word = before[1]
    following = _NEXT.match(text, end)
    goes_on = following is not None and not following[1].isupper()
    if word.lower() in _ABBREVIATED:
        return False
    if len(word) == 1:
        return word == "I" or not word.isupper() or following is None
    return not (_DAYTIME.fullmatch(word) and goes_on)

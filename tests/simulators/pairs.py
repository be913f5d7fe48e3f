"""Files of lines `written~spoken`, as test sets of text normalisation are kept, and how they are compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path


def pairs(file: Path) -> Iterator[tuple[str, str]]:
    """Yield what is written and what is to be said. A "~" of the text's own would be the first one."""
    for line in file.read_text(encoding="utf-8").split("\n"):
        written, parted, spoken = line.rpartition("~")
        if parted:
            yield written, spoken


def bare(words: str) -> str:
    """Return words in lower case, without punctuation, hyphens as spaces, without "and": what is compared."""
    letters = re.sub(r"[^\w\s]|_", "", words.lower().replace("-", " "))
    return " ".join(word for word in letters.split() if word != "and")


def wrong(file: Path, normalize: Callable[[str], str]) -> list[str]:
    """Tell of each pair that is read otherwise."""
    told = []
    for written, spoken in pairs(file):
        words = normalize(written)
        if bare(words) != bare(spoken):
            told.append(f"{written!r} is read {words!r}, not {spoken!r}")
    return told

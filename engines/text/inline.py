"""Spans of a sentence as one text: what is no written text is a single character there, which no step touches.

So the steps from written text to words see whole sentences. The characters are of Unicode's private use area, and none
of the author's own of these remain, which nothing could pronounce.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from engines.text.script import Mark, Reading, Span

_FIRST, _LAST = 0xE000, 0xF8FF
TOKEN: Final = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_PRIVATE: Final = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}\U000f0000-\U0010ffff]")
_OTHER_DIGIT: Final = re.compile(r"(?![0-9])\d")

CAPACITY: Final = _LAST - _FIRST + 1


def written(text: str) -> str:
    """Give a text of an author without what stands for other things here; digits of all scripts are 0 to 9."""
    return _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), _PRIVATE.sub(" ", text))


class Inlays:
    """What the characters of one text stand for."""

    def __init__(self) -> None:
        self._items: list[Reading | Mark] = []

    def put(self, item: Reading | Mark) -> str:
        """Give the character that stands for this from now on; a blank once there is no more room."""
        if len(self._items) == CAPACITY:
            return " "
        self._items.append(item)
        return chr(_FIRST + len(self._items) - 1)

    def item(self, character: str) -> Reading | Mark:
        """Give what a character stands for. IndexError for others."""
        return self._items[ord(character) - _FIRST]

    def text(self, spans: Sequence[Span]) -> str:
        """Give spans as one text."""
        return "".join(written(span) if isinstance(span, str) else self.put(span) for span in spans)

    def expanded(self, text: str, expand: Callable[[Reading | Mark], str | None]) -> str:
        """Replace characters by what `expand` gives for what they stand for; None leaves one as it is.

        A word in the place of one that stood beside a letter is parted from it.
        """
        parts: list[str] = []
        end = 0
        for match in TOKEN.finditer(text):
            parts.append(text[end : match.start()])
            end = match.end()
            replacement = expand(self.item(match[0]))
            parts.append(match[0] if replacement is None else _parted(parts, replacement, text[end : end + 1]))
        return "".join((*parts, text[end:]))

    def readings(self, text: str) -> Iterator[Reading]:
        """Give the readings in a text, in order."""
        for match in TOKEN.finditer(text):
            item = self.item(match[0])
            if isinstance(item, Reading):
                yield item


def _parted(before: list[str], replacement: str, after: str) -> str:
    last = next((part[-1] for part in reversed(before) if part), "")
    left = " " if replacement[:1].isalnum() and last.isalnum() else ""
    right = " " if replacement[-1:].isalnum() and after.isalnum() else ""
    return left + replacement + right

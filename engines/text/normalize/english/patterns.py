"""Parts that the rules' patterns are made of. Each repeats a bounded number of times: none can run away."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

WHOLE: Final = r"(?:\d{1,3}(?:,\d{3}){1,6}(?![\d])|\d{1,24}(?!\d))"
"""1,234 or 1234. What is longer is no quantity."""

DECIMAL: Final = rf"(?:(?:\d{{1,3}}(?:,\d{{3}}){{1,6}}|\d{{1,24}})?\.\d{{1,24}}(?![\d])|{WHOLE})"
"""1,234.5, .5 or 12."""

MONTH: Final = (
    r"(?P<month>(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
"""The name of a month, in full or abbreviated."""

FUNCTION_WORDS: Final = frozenset(
    "a an the it its he his she her they their we our you your i my this that these those there then here in on "
    "at by for from to with when while where what who why how if and but or so as after before since until once "
    "is are was were do does did has have had can could will would may might must should no not yes now please "
    "all some many most nobody everybody people one".split()
)
"""Capitalised after a full stop, they begin a sentence: no name begins with them."""

_NEXT_WORD: Final = re.compile(r"[ \t]{0,3}([^\W\d_]{1,40})")
_WORD_BEFORE: Final = re.compile(r"([^\W_]{1,40})[.:#]?[ \t]{0,3}[#(\"']?$")


def next_word(text: str, position: int) -> str:
    """Return the word that follows, "" where a mark or the end does."""
    found = _NEXT_WORD.match(text, position)
    return found.group(1) if found else ""


def word_before(text: str, position: int) -> str:
    """Return the word that goes before in lower case, "" where none does."""
    found = _WORD_BEFORE.search(text[max(0, position - 48) : position])
    return found.group(1).lower() if found else ""


def begins_sentence(text: str, position: int) -> bool:
    """Whether what follows an abbreviation's full stop begins a sentence of its own, or nothing follows."""
    word = next_word(text, position)
    return not text[position:].strip() or (word[:1].isupper() and word.lower() in FUNCTION_WORDS)


def stop_after(text: str, position: int) -> str:
    """Return the full stop that an abbreviation's own was as well, "" where the sentence goes on."""
    return "." if begins_sentence(text, position) else ""


_NO_PLURALS: Final = frozenset(
    "is was has does as this its us his yes plus minus less always perhaps across towards thus versus vs gas bus plays "
    "says gets goes comes means needs sends takes makes gives runs starts ends seems looks shows opens closes leaves "
    "arrives departs works wins unless besides afterwards percents dollars pounds".split()
)
_IRREGULAR_PLURALS: Final = frozenset(
    "people men women children feet fish sheep mice teeth species aircraft data".split()
)
_PLURAL_AHEAD: Final = re.compile(r"[ \t]{1,3}(?:[a-z]{2,20}[ \t]{1,3})?([a-z]{3,30})\b")


def counts(text: str, position: int) -> bool:
    """Whether a number that ends at `position` counts things: "1907 steps", "700 paying visitors"."""
    word = next_word(text, position)
    if not word or not text[position : position + 1].isspace():
        return False
    if _is_plural(word):
        return True
    ahead = _PLURAL_AHEAD.match(text, position)
    return bool(ahead) and word.lower() not in FUNCTION_WORDS and _is_plural(ahead.group(1)) if ahead else False


def _is_plural(word: str) -> bool:
    if word in _IRREGULAR_PLURALS:
        return True
    return word.islower() and word.endswith("s") and not word.endswith(("ss", "us", "is")) and word not in _NO_PLURALS


_DECADE_AFTER: Final = frozenset("the early late mid his her their my our your roaring swinging".split())
_DECADE_BEFORE: Final = frozenset("music style fashion film films movie movies hits rock design art era party".split())


def tells_decade(text: str, start: int, end: int) -> bool:
    """Whether the words beside "80s" tell that it is a decade."""
    return word_before(text, start) in _DECADE_AFTER or next_word(text, end) in _DECADE_BEFORE


NO_NOUNS: Final = FUNCTION_WORDS | frozenset(
    "of per each every off away ahead apart ago later more less than over under above below plus minus into "
    "onto".split()
)


def is_attribute(text: str, start: int, end: int) -> bool:
    """Whether an amount goes before the thing that it tells of, and so has no plural: "a 50 kg bag"."""
    word = next_word(text, end)
    if not word or text[end : end + 1] != " " or word.lower() in NO_NOUNS:
        return False
    return word_before(text, start) in {"a", "an"}


def rewrite(pattern: re.Pattern[str], words: Callable[[re.Match[str]], str] | str, text: str) -> str:
    """Return `text` with each match put into words, apart from letters and figures that it touched.

    What `words` gives back as it was stays where it was. A string is expanded as `re.sub` does.
    """
    made: list[str] = []
    done = 0
    for match in pattern.finditer(text):
        said = match.expand(words) if isinstance(words, str) else words(match)
        start, end = match.span()
        if said != match.group():
            touches = start == done if made else text[start - 1 : start].isalnum()
            if said[:1].isalnum() and (touches or (start and text[start - 1].isalnum())):
                said = " " + said
            if said[-1:].isalnum() and text[end : end + 1].isalnum():
                said += " "
        made += [text[done:start], said]
        done = end
    return "".join([*made, text[done:]]) if made else text

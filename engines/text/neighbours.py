"""What part of an English sentence a word is, as far as its neighbours tell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Part: TypeAlias = Literal["noun", "verb", "adjective", "past", "first", "last"]
"""`past`: a verb of what has happened. `first` and `last`: where in its sentence the word is, in any language."""


def word_set(words: str) -> frozenset[str]:
    """Give words that are parted by spaces."""
    return frozenset(words.split())


DETERMINERS: Final = word_set("the a an this that these those my your his her its our their every each any some no")
_OBJECTS: Final = word_set("me him it them us her you this that these those everything something anything")
_SUBJECTS: Final = word_set("i you we they who")
_THIRD: Final = word_set("he she it")
_LEADS_TO_VERB: Final = word_set(
    "to will would can could shall should may might must do does did don't doesn't didn't cannot can't won't "
    "wouldn't couldn't shouldn't let's please not never i'll you'll we'll they'll he'll she'll it'll i'd you'd"
)
_PREPOSITIONS: Final = word_set(
    "of in on at by for from with without into onto about over under between through near during per via"
)
_HAVE: Final = word_set(
    "have has had having i've you've we've they've haven't hasn't hadn't was were been being be is are already "
    "just wasn't weren't isn't aren't"
)
_BE: Final = word_set(
    "is are was were be been being am i'm you're we're they're it's he's she's isn't aren't wasn't very so too "
    "quite more most feel feels felt seem seems go goes went"
)
_PAST_TIMES: Final = word_set("yesterday ago earlier before previously")
_TIMES: Final = word_set("night week weekend month year time summer winter monday tuesday friday sunday")
_CLAUSE_STARTS: Final = word_set("and or then now but first next finally also so if when just")
_ADVERBS: Final = word_set("also always often usually just only really already ever still again quickly carefully")
_FUNCTION_WORDS: Final = (
    DETERMINERS | _OBJECTS | _SUBJECTS | _THIRD | _LEADS_TO_VERB | _PREPOSITIONS | _HAVE | _BE | _CLAUSE_STARTS
    | word_set(
    "as than there here what which where why how because while until after before up down off out"
)
)  # fmt: skip

WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")  # noqa: RUF001  the apostrophe that people type
_END: Final = re.compile(r"[.!?…]+(?:[\"'”’)\]]*)(?=\s|$)|\n|[;:]")  # noqa: RUF001  likewise
_CLAUSE_END: Final = re.compile(r"[,;:.!?…\n()]")


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The words around one, in lower case, nearest first, as far as its clause goes; `near` as far as its sentence."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    near: frozenset[str]
    first: bool
    """Whether its sentence begins with it."""
    last: bool

    def previous(self, distance: int = 1) -> str:
        """Give the word so many before it; empty where its clause begins later."""
        return self.before[distance - 1] if len(self.before) >= distance else ""

    def following(self, distance: int = 1) -> str:
        """Give the word so many after it; empty where its clause ends earlier."""
        return self.after[distance - 1] if len(self.after) >= distance else ""


_REACH: Final = 80
"""Characters to each side that are looked at."""


def around(text: str, start: int, end: int) -> Neighbours:
    """Look at what stands around `text[start:end]`. Takes the same time however long the text is."""
    left, right = text[max(0, start - _REACH) : start], text[end : end + _REACH]
    sentence_left = left[max((m.end() for m in _END.finditer(left)), default=0) :]
    ending = _END.search(right)
    sentence_right = right[: ending.start()] if ending else right
    clause_left = sentence_left[max((m.end() for m in _CLAUSE_END.finditer(sentence_left)), default=0) :]
    clause_right = sentence_right[: m.start()] if (m := _CLAUSE_END.search(sentence_right)) else sentence_right
    words_left, words_right = _words(sentence_left), _words(sentence_right)
    return Neighbours(
        before=tuple(reversed(_words(clause_left))),
        after=tuple(_words(clause_right)),
        near=frozenset((*words_left, *words_right)),
        first=not words_left,
        last=not words_right,
    )


def part_of(neighbours: Neighbours) -> Part | None:
    """Guess what a word is that may be a noun, a verb or an adjective. None where its neighbours do not tell."""
    previous, following = neighbours.previous(), neighbours.following()
    if previous in _ADVERBS and neighbours.previous(2):
        previous = neighbours.previous(2)
    takes_object = following in DETERMINERS or following in _OBJECTS
    if previous in _LEADS_TO_VERB or previous in _SUBJECTS:
        return "verb"
    if previous in DETERMINERS or previous in _PREPOSITIONS:
        return "adjective" if following and following not in _FUNCTION_WORDS else "noun"
    if (not previous or previous in _CLAUSE_STARTS) and takes_object:
        return "verb"
    if previous in _BE and not takes_object:
        return "adjective"
    if previous and previous not in _FUNCTION_WORDS and following in _OBJECTS | {"the", "a", "an", "my", "your"}:
        return "verb"
    return None


def is_past(neighbours: Neighbours) -> bool:
    """Tell whether a verb that is written alike in past and present is in the past."""
    previous = neighbours.previous()
    if previous in _ADVERBS and neighbours.previous(2):
        previous = neighbours.previous(2)
    if previous in _HAVE or neighbours.previous() in _HAVE:
        return True
    if previous in _LEADS_TO_VERB or neighbours.previous(2) in _LEADS_TO_VERB:
        return False
    last_time = "last" in neighbours.near and neighbours.near & _TIMES
    past = bool(neighbours.near & _PAST_TIMES or last_time)
    return previous in _THIRD or (past and bool(previous) and previous not in DETERMINERS)


def is_part(part: Part, neighbours: Neighbours) -> bool:
    """Tell whether a word is a part of this kind, as far as can be told."""
    match part:
        case "first":
            return neighbours.first
        case "last":
            return neighbours.last
        case "past":
            return is_past(neighbours)
    return part_of(neighbours) == part


def _words(text: str) -> list[str]:
    return [match[0].lower().replace("’", "'") for match in WORD.finditer(text)]  # noqa: RUF001  likewise

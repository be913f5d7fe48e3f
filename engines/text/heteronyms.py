"""English words that are written alike and sound otherwise, told apart by their neighbours.

Most are a noun or a verb: espeak-ng knows both sounds, and tells the verb from the noun after "to" and pronouns only;
"Use the lift", "Please close the door" and "Excuse me" it reads as nouns. So what is missing is which one it is; how
that sounds espeak-ng is asked, in a phrase where it knows. For the few whose sounds it lacks a respelling is given.

Known misses: row (argument), sow (pig), does (deer), number (more numb), sewer (who sews), tower (who tows), putting
(golf), Job, Nice, Reading and Polish at the beginning of a sentence (names, against common words), axes (tools, against
lines), resume without accents where no article stands before it, and every word whose neighbours are those of its other
sound ("I read it" alone may be any day's).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from engines.text.neighbours import DETERMINERS, Neighbours, around, is_past, part_of, word_set

AsVerb, AsNoun = "to {}", "the {}"  # phrases in which espeak-ng knows what the word is

_BY_PART: Final = word_set(
    "abuse advocate alternate appropriate approximate attribute close conduct conflict console content contract "
    "converse convict defect deliberate desert digest elaborate estimate export graduate house increase insert "
    "moderate object perfect permit present produce progress project rebel recall record refuse separate subject "
    "survey suspect tear torment transfer transport update upgrade upset use"
)
"""espeak-ng knows both sounds of these."""

_METAL: Final = word_set(
    "pipe pipes acid poisoning paint battery batteries weight weights glass crystal shielding solder ore oxide free"
)
_TINY: Final = word_set(
    "detail details amount amounts difference differences quantity quantities particle particles traces"
)
_BOATS: Final = word_set("ship boat stern vessel deck thruster thrusters hull port starboard")
_FISH: Final = word_set("fish fishing caught lake sea striped river trout grilled")
_COORDINATES: Final = word_set(
    "x y z graph chart plot coordinate horizontal vertical robot arm rotation motion six three"
)
_ON_AIR: Final = word_set("from on in at now today tonight and")


@dataclass(frozen=True, slots=True)
class Sense:
    """One sound of a word."""

    phrase: str = ""
    """espeak-ng says it in this phrase, as its last word."""
    words: str = ""
    """Or: what sounds like it."""
    ipa: str = ""
    """Or: its sound, where nothing else is written so."""


_VERB, _NOUN = Sense(AsVerb), Sense(AsNoun)


def _by_part(around_it: Neighbours) -> Sense | None:
    match part_of(around_it):
        case "verb":
            return _VERB
        case "noun" | "adjective":
            return _NOUN
    return None


def _close(around_it: Neighbours) -> Sense | None:
    timed = {"at", "in", "on", "soon", "now", "automatically", "behind", "early", "when", "after", "before"}
    if around_it.previous().endswith("s") and around_it.following() in timed:  # "doors close in five minutes"
        return _VERB
    return _NOUN if around_it.following() == "to" and part_of(around_it) != "verb" else _by_part(around_it)


def _read(around_it: Neighbours) -> Sense | None:
    return Sense(words="red") if is_past(around_it) else None


def _lead(around_it: Neighbours) -> Sense | None:
    made_of = around_it.previous() == "of" and around_it.previous(2) in {
        "made",
        "full",
        "kilos",
        "tons",
        "grams",
        "traces",
    }
    if around_it.following() in _METAL or made_of or around_it.previous() in {"contains", "containing", "molten"}:
        return Sense(words="led")
    return None


def _wind(around_it: Neighbours) -> Sense | None:
    verb = part_of(around_it) == "verb" or around_it.following() in {"up", "back"}
    return _VERB if verb and around_it.previous() not in DETERMINERS else None


def _tear(around_it: Neighbours) -> Sense | None:
    worn = around_it.previous() == "and" and around_it.previous(2) == "wear"
    cloth = around_it.following() == "in" and around_it.following(3) in {
        "fabric",
        "cloth",
        "paper",
        "sail",
        "seal",
        "belt",
    }
    apart = around_it.following() in {"off", "up", "apart", "open", "along", "here"}
    return _VERB if worn or cloth or apart or part_of(around_it) == "verb" else None


def _bow(around_it: Neighbours) -> Sense | None:
    bends = part_of(around_it) == "verb" or (
        around_it.previous() == "a" and around_it.previous(2) in {"take", "took", "takes"}
    )
    return _VERB if bends or around_it.near & _BOATS else None


def _live(around_it: Neighbours) -> Sense | None:
    if not around_it.previous() and around_it.following() in _ON_AIR:
        return _NOUN if around_it.following() == "from" else None
    on_air = around_it.previous() in {"go", "goes", "went", "going", "gone", "broadcast", "broadcasting", "streaming"}
    return _NOUN if on_air else None


def _minute(around_it: Neighbours) -> Sense | None:
    return Sense(ipa="maɪnˈuːt") if around_it.following() in _TINY else None


def _content(around_it: Neighbours) -> Sense | None:
    pleased = part_of(around_it) == "adjective" and around_it.previous() not in DETERMINERS
    if around_it.following() in {"is", "was", "of", "are"} or around_it.previous() in DETERMINERS:
        return _NOUN
    return _VERB if pleased and around_it.previous() not in {"of", "in", "for", "with", "on"} else None


def _bass(around_it: Neighbours) -> Sense | None:
    return Sense(words="bas") if around_it.near & _FISH else None


def _wound(around_it: Neighbours) -> Sense | None:
    turned = around_it.following() in {"up", "around", "round", "down", "onto", "through"}
    subject = around_it.previous() in {"i", "he", "she", "we", "they"}
    return Sense(words="wowned") if turned or subject else None


def _excuse(around_it: Neighbours) -> Sense | None:
    return Sense(words="excuze") if part_of(around_it) == "verb" else None


def _resume(around_it: Neighbours) -> Sense | None:
    document = around_it.previous() in {"my", "your", "his", "her", "their", "a"} and part_of(around_it) == "noun"
    return Sense(words="rezzumay") if document else None


def _used(around_it: Neighbours) -> Sense | None:
    habit = around_it.following() == "to" and around_it.previous() in {
        "i",
        "you",
        "he",
        "she",
        "we",
        "they",
        "it",
        "get",
    }
    return Sense(words="yoost") if habit else None


def _axes(around_it: Neighbours) -> Sense | None:
    return Sense(words="axeez") if around_it.near & _COORDINATES else None


def _dove(around_it: Neighbours) -> Sense | None:
    return _VERB if around_it.previous() in {"i", "he", "she", "we", "they"} else None


_RULES: Final[Mapping[str, Callable[[Neighbours], Sense | None]]] = {
    **dict.fromkeys(_BY_PART, _by_part),
    "axes": _axes,
    "bass": _bass,
    "bow": _bow,
    "close": _close,
    "content": _content,
    "dove": _dove,
    "excuse": _excuse,
    "lead": _lead,
    "live": _live,
    "minute": _minute,
    "read": _read,
    "resume": _resume,
    "tear": _tear,
    "used": _used,
    "wind": _wind,
    "wound": _wound,
}

_WORDS: Final = re.compile(rf"(?<![\w'’-])(?:{'|'.join(sorted(_RULES))})(?![\w'’])", re.IGNORECASE)  # noqa: RUF001  apostrophes


def heteronyms(text: str, language: str, put: Callable[[str, Sense], str]) -> str:
    """Replace each word whose neighbours tell its sound by what `put` gives for it and that sound. English only."""
    if not language.lower().startswith("en"):
        return text

    def replaced(match: re.Match[str]) -> str:
        sense = _RULES[match[0].lower()](around(text, match.start(), match.end()))
        return match[0] if sense is None else put(match[0], sense)

    return _WORDS.sub(replaced, text)

"""Text and IPA in one sentence: espeak-ng gets a made-up word in each IPA's place, and the IPA takes its sound's place.

So what is around keeps its stress, its links ("the" before a vowel) and its marks. Made-up words that come back as
something else, which their number tells, have the text phonemized in parts: then each part stands alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from engines.text.ipa import begins_with_vowel, is_sound
from engines.text.phonemes import Clause

_BEGINNINGS: Final = ("nulime", "olime")
"""Before a consonant, before a vowel."""

_ENDINGS: Final = ("k", "n", "ss")
"""Before a voiceless sound, a voiced one and a sibilant. Only in English, whose "'s" follows them; else the first one.

Made-up words begin and end as nouns do. Of thirteen pairs those on k came back unchanged most often, at the beginning,
middle and end of sentences in 33 languages; in Polish and Catalan a voiced sound after them changes the k.
"""

_STRESS: Final = "[ˈˌ]*"
_LEADING_MARK: Final = re.compile(r"\s*([.,;:!?])")
_ENDED: Final = re.compile(r"[.!?…][\"')\]]*\s*$")
_AROUND: Final = re.compile("[ˈˌːʲ]")


class Phonemizes(Protocol):
    """`engines.text.phonemes.Phonemizer`, or one that stands before it."""

    def phonemize(self, text: str, voice: str) -> list[Clause]:
        """Give the clauses of a text."""


class Splicer:
    """Phonemizes texts with IPA in them. Thread-safe as its phonemizer is."""

    def __init__(self, phonemizer: Phonemizes) -> None:
        self._phonemizer = phonemizer
        self._sounds = functools.lru_cache(maxsize=64)(self._sound)

    def phonemize(self, parts: Sequence[str], ipa: Sequence[str], voice: str) -> list[Clause]:
        """Give the clauses of `parts[0] ipa[0] parts[1] ...`; there is one part more than IPA.

        Raises what the phonemizer does.
        """
        if not ipa:
            return self._phonemizer.phonemize(parts[0], voice)
        places = [_place(sound, voice) for sound in ipa]
        text = parts[0]
        for place, part in zip(places, parts[1:], strict=True):
            # A full stop ends no sentence before a small letter.
            text = _beside(_beside(text, place.capitalize() if _ENDED.search(text) else place), part)
        clauses = self._phonemizer.phonemize(text, voice)
        pattern = re.compile("|".join(f"(?:{self._sounds(place, voice)})" for place in sorted(set(places))))
        found = [place for clause in clauses for place in pattern.findall(clause.phonemes)]
        if len(found) != len(ipa):
            return self._in_parts(parts, ipa, voice)
        following = iter(ipa)
        return [replace(clause, phonemes=pattern.sub(lambda _: next(following), clause.phonemes)) for clause in clauses]

    def _sound(self, place: str, voice: str) -> str:
        """Give a pattern of what a made-up word sounds like, however it is stressed."""
        sound = _AROUND.sub("", "".join(clause.phonemes for clause in self._phonemizer.phonemize(place, voice)))
        return _STRESS + "[ˈˌː]*".join(map(re.escape, sound.strip())) + "ː*ʲ?"

    def _in_parts(self, parts: Sequence[str], ipa: Sequence[str], voice: str) -> list[Clause]:
        clauses: list[Clause] = []
        for i, part in enumerate(parts):
            mark = _LEADING_MARK.match(part)
            if clauses and mark:
                clauses[-1] = replace(clauses[-1], terminator=mark[1], ends_sentence=mark[1] in ".!?")
            spoken = self._phonemizer.phonemize(part, voice) if part.strip() else []
            for clause in spoken:
                _append(clauses, clause)
            if i < len(ipa):
                _append(clauses, Clause(ipa[i], "", ends_sentence=False))
        return clauses


def _place(sound: str, voice: str) -> str:
    """Give a made-up word for IPA: it begins and ends alike, as far as what is beside it depends on that."""
    last = next((c for c in reversed(sound) if is_sound(c)), "")
    ending = 0 if not voice.startswith("en") or last in "ptkfθ" else 2 if last in "szʃʒ" else 1
    return _BEGINNINGS[begins_with_vowel(sound)] + _ENDINGS[ending]


def _append(clauses: list[Clause], clause: Clause) -> None:
    """Add a clause: it goes on with the last one where that has no mark, and what has none but a mark ends it."""
    if clauses and not clauses[-1].terminator:
        joined = f"{clauses[-1].phonemes} {clause.phonemes}".strip()
        clauses[-1] = replace(clause, phonemes=joined)
    else:
        clauses.append(clause)


def _beside(left: str, right: str) -> str:
    return f"{left} {right}" if left[-1:].isalnum() and right[:1].isalnum() else left + right

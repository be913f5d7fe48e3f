"""Which scripts a language is written in: what a voice does not know it must not name letter by letter."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from typing import Final

_CYRILLIC, _ARABIC, _HAN, _NAGARI = (
    frozenset({"CYRILLIC"}),
    frozenset({"ARABIC"}),
    frozenset({"CJK"}),
    frozenset({"DEVANAGARI"}),
)

_SCRIPTS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("ru", "uk", "bg", "be", "mk", "sr", "kk", "ky", "tt", "ba", "cv"), _CYRILLIC),
    **dict.fromkeys(("ar", "fa", "ur", "ug", "sd"), _ARABIC),
    **dict.fromkeys(("hi", "mr", "ne", "kok"), _NAGARI),
    **dict.fromkeys(("zh", "cmn", "yue", "hak"), _HAN | {"BOPOMOFO"}),
    "ja": _HAN | {"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"},
    "ko": _HAN | {"HANGUL"},
    "el": frozenset({"GREEK"}),
    "grc": frozenset({"GREEK"}),
    "he": frozenset({"HEBREW"}),
    "hy": frozenset({"ARMENIAN"}),
    "ka": frozenset({"GEORGIAN"}),
    "am": frozenset({"ETHIOPIC"}),
    "as": frozenset({"BENGALI"}),
    "bn": frozenset({"BENGALI"}),
    "gu": frozenset({"GUJARATI"}),
    "kn": frozenset({"KANNADA"}),
    "ml": frozenset({"MALAYALAM"}),
    "my": frozenset({"MYANMAR"}),
    "or": frozenset({"ORIYA"}),
    "pa": frozenset({"GURMUKHI"}),
    "si": frozenset({"SINHALA"}),
    "ta": frozenset({"TAMIL"}),
    "te": frozenset({"TELUGU"}),
    "th": frozenset({"THAI"}),
    "chr": frozenset({"CHEROKEE"}),
}
"""Language -> its scripts beside Latin, which espeak-ng reads everywhere, by the first words of characters' names."""

_NAMES: Final = {"CJK": "Chinese", "DEVANAGARI": "Devanagari"}

_SPOKEN_ALONE: Final = frozenset({"GREEK"})
"""A single letter of these is a name that people mean, of an angle or of ohms."""


def without_foreign(text: str, language: str) -> tuple[str, list[tuple[str, str]]]:
    """Leave out of a text what is written in scripts that a language does not use; tell (script, what was left out)."""
    if text.isascii():
        return text, []
    known = _SCRIPTS.get(language.lower().split("-")[0], frozenset())
    kept: list[str] = []
    left_out: list[tuple[str, str]] = []
    run: list[str] = []
    foreign = ""

    def end() -> None:
        nonlocal foreign
        word = "".join(run)
        if foreign in _SPOKEN_ALONE and sum(map(str.isalpha, word)) == 1:
            kept.append(word)
        elif word:
            left_out.append((_NAMES.get(foreign, foreign.capitalize()), word))
            kept.append(" ")
        run.clear()
        foreign = ""

    for character in text:
        script = _script(character)
        if script and script not in known:
            if foreign and script != foreign:
                end()
            foreign = script
            run.append(character)
        elif foreign and not script and unicodedata.category(character) in {"Mn", "Mc", "Me", "Cf"}:
            run.append(character)
        else:
            if foreign:
                end()
            kept.append(character)
    if foreign:
        end()
    return "".join(kept), left_out


@functools.lru_cache(maxsize=4096)
def _script(character: str) -> str:
    """Give the script of a letter or of a mark that only one script has; empty for Latin and what no script owns."""
    if character < "\u0370" or unicodedata.category(character)[0] not in "LM":
        return ""
    name = unicodedata.name(character, "LATIN").split(" ")[0]
    # Full-width, mathematical and modifier letters are forms of others, which an earlier step makes of them.
    own = {
        "LATIN",
        "FULLWIDTH",
        "HALFWIDTH",
        "MATHEMATICAL",
        "MODIFIER",
        "COMBINING",
        "DOUBLE-STRUCK",
        "SCRIPT",
        "KELVIN",
    }
    return (
        "" if name in own | {"ANGSTROM", "OHM", "MICRO", "VARIATION", "FEMININE", "MASCULINE", "BLACK-LETTER"} else name
    )


def script_of(text: str) -> str:
    """Give the script that most letters of a text are of; empty for Latin."""
    counts: dict[str, int] = {}
    for character in text:
        if character.isalpha():
            script = _script(character)
            counts[script] = counts.get(script, 0) + 1
    return max(counts, key=lambda script: counts[script]) if counts else ""


def languages_in(script: str, languages: list[str]) -> list[str]:
    """Give those of some languages that are written in a script; Latin is empty."""
    of = {language: _SCRIPTS.get(language.lower().split("-")[0], frozenset()) for language in languages}
    return [language for language in languages if (script in of[language] if script else not of[language])]


LONGEST_WORD_BYTES: Final = 64
"""Of a word that espeak-ng gets in one piece: its buffers overflow from 136 bytes on, of some words."""

_LONG: Final = re.compile("[^\\s\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]{17,}")
"""Shorter ones have less than 64 bytes in UTF-8. Scripts without spaces are left out: there espeak-ng parts words."""

_BREAKS: Final = re.compile(r"(?<=[^\w'])|(?<=_)")


def without_long_words(text: str) -> str:
    """Part what is longer than any word by spaces: after a sign where there is one, else anywhere."""
    return _LONG.sub(lambda match: _broken(match[0]), text)


def _broken(word: str) -> str:
    if len(word.encode("utf-8", "replace")) < LONGEST_WORD_BYTES:
        return word
    pieces: list[str] = []
    piece, size = "", 0
    for part in _BREAKS.split(word):
        for character in part:
            width = len(character.encode("utf-8", "replace"))
            if size + width >= LONGEST_WORD_BYTES:
                pieces.append(piece)
                piece, size = "", 0
            piece += character
            size += width
        if size >= LONGEST_WORD_BYTES // 2:
            pieces.append(piece)
            piece, size = "", 0
    return " ".join((*pieces, piece)).rstrip()

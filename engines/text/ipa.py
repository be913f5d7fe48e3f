"""The International Phonetic Alphabet as people write it, and as espeak-ng and voices trained on it do."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_SPACE: Final = re.compile(r"\s+")
_BRACKETS: Final = re.compile(r"^[/\[]|[/\]]$")
_UNSAID: Final = re.compile("[.\u0361\u035c\u203f]")  # marks between syllables and ties
_MISTYPED: Final = str.maketrans(
    {"g": "ɡ", "'": "ˈ", "’": "ˈ", ":": "ː", ",": "ˌ", "ʧ": "tʃ", "ʤ": "dʒ", "ʦ": "ts", "ʣ": "dz"}  # noqa: RUF001  looks alike: that is it
)
"""What is typed for a sign that looks like it, and signs that Unicode has for two."""

_ENGLISH: Final = {"r": "ɹ", "ɝː": "ɜː", "ɝ": "ɜː", "t̬": "ɾ"}
_WRITTEN: Final = re.compile("|".join(_ENGLISH))

_LENGTH_AND_STRESS: Final = frozenset("ˈˌːˑʲ")

LONGEST: Final = 200
"""Characters of one reading: no word is as long, and espeak-ng's own buffers are of this size."""


def clean_ipa(text: str) -> str:
    """Give IPA as espeak-ng writes it: NFC, words parted by one space; empty where nothing of it sounds."""
    text = _BRACKETS.sub("", unicodedata.normalize("NFC", text).strip())
    text = _SPACE.sub(" ", _UNSAID.sub("", text)).strip().translate(_MISTYPED)[:LONGEST]
    return text if any(is_sound(character) for character in text) else ""


def for_language(text: str, language: str) -> str:
    """Give cleaned IPA in the signs that espeak-ng has for a language.

    English has one r, which many write so. American dictionaries write the vowel of "bird" and the tap of "better" in
    signs that it does not use, and that voices trained on it do not know.
    """
    return _WRITTEN.sub(lambda sign: _ENGLISH[sign[0]], text) if language.lower().startswith("en") else text


def is_sound(character: str) -> bool:
    """Tell whether this is a vowel or a consonant, no stress, length or pause."""
    return character.isalpha() and character not in _LENGTH_AND_STRESS


def sounds(text: str) -> int:
    """Count the vowels and consonants."""
    return sum(is_sound(character) for character in text)


def begins_with_vowel(text: str) -> bool:
    """Tell what stands before it: 'the' sounds otherwise before a vowel."""
    first = next((c for c in unicodedata.normalize("NFD", text) if is_sound(c)), "")
    return first in frozenset("aeiouyæɐɑɒɔəɚɛɜɝɪɨɵøœɶʉʊʌɯɤʏ")

"""espeak-ng's phonemes in Kokoro's set, which was made for another phonemizer: one letter for each diphthong.

The table follows from the vocabulary of the model and from what espeak-ng writes for its languages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

_EVERYWHERE: Final = {
    "tʃ": "ʧ",
    "dʒ": "ʤ",
    "ts": "ʦ",
    "dz": "ʣ",
    "tɕ": "ʨ",
    "dʑ": "ʥ",
    "eɪ": "A",
    "aɪ": "I",
    "aʊ": "W",
    "ɔɪ": "Y",
    "oʊ": "O",
    "əʊ": "Q",
    "g": "ɡ",
    "ʱ": "ʰ",  # what is breathy, of which the model knows no sign
}

_ENGLISH: Final = {
    "ʔn\N{COMBINING VERTICAL LINE BELOW}": "tᵊn",
    "ʔn": "tn",
    "ʔ": "t",
    "n\N{COMBINING VERTICAL LINE BELOW}": "ᵊn",
    "l\N{COMBINING VERTICAL LINE BELOW}": "ᵊl",
    "m\N{COMBINING VERTICAL LINE BELOW}": "ᵊm",
    "əl": "ᵊl",
    "r": "ɹ",
    "x": "k",
    "ç": "k",
    "ɐ": "ə",
    "ɬ": "l",
    "ʲ": "",  # espeak-ng's glide between two vowels, which the model never saw in English
}

_AMERICAN: Final = {
    "ɜːɹ": "ɜɹ",
    "ɜː": "ɜɹ",
    "ɚɹ": "əɹ",
    "ɚ": "əɹ",
    "ɪə": "iə",
    "ɾ": "T",
    "o": "ɔ",
    "e": "A",
    "ː": "",
}

_BRITISH: Final = {"eə": "ɛː", "iə": "ɪə", "e": "ɛ", "æ": "a"}
"""Kokoro's British knows no æ: "cat" is kˈat to it. Of 200 words of bf_emma the recogniser errs in 60, with æ in 63."""

_PLAIN: Final = frozenset({"ts", "dz"})
"""Two sounds in English ("cats"), one letter elsewhere."""


def table_for(language: str) -> Mapping[str, str]:
    """Give what is written otherwise in Kokoro's set, for an espeak-ng voice."""
    if not language.startswith("en"):
        return _EVERYWHERE
    common = {sound: sign for sound, sign in _EVERYWHERE.items() if sound not in _PLAIN}
    return common | _ENGLISH | (_BRITISH if language.startswith("en-gb") else _AMERICAN)


class KokoroPhonemes:
    """Phonemes to the ids of a vocabulary."""

    def __init__(self, language: str, vocabulary: Mapping[str, Sequence[int]]) -> None:
        """`vocabulary`: sign -> its one id."""
        self._vocabulary = vocabulary
        self._table = table_for(language)
        self._pattern: Final = re.compile("|".join(sorted(map(re.escape, self._table), key=len, reverse=True)))

    def converted(self, phonemes: Sequence[str]) -> str:
        """Give a sentence in Kokoro's set; signs that it lacks stay."""
        return self._pattern.sub(lambda found: self._table[found[0]], "".join(phonemes))

    def ids(self, phonemes: Sequence[str]) -> tuple[list[int], list[str]]:
        """Give the ids of a sentence, without the padding at its ends, and what the vocabulary lacks, each once."""
        ids: list[int] = []
        unknown: dict[str, None] = {}
        for sign in self.converted(phonemes):
            if sign in self._vocabulary:
                ids += self._vocabulary[sign]
            else:
                unknown[sign] = None
        return ids, list(unknown)

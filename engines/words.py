"""Where words begin in a sentence of speech, by the durations that its voice gave its phonemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

_SPACE = " "


class WordFinder:
    """Knows which phoneme ids of a voice part words and which sound."""

    def __init__(self, id_map: Mapping[str, Sequence[int]]) -> None:
        """`id_map`: symbol -> ids, as a Piper voice has it."""
        self._spaces = frozenset(id_map.get(_SPACE, ()))
        sounds = (ids for symbol, ids in id_map.items() if any(character.isalpha() for character in symbol))
        self._sounds = frozenset(i for ids in sounds for i in ids)

    def starts(self, ids: Sequence[int], durations: NDArray[np.float32]) -> list[int]:
        """Give the first latent frame of each word: of the first 0, of the others what follows the space before it.

        `durations`: the latent frames of each id. What holds no sound between two spaces is no word.
        """
        ends = np.cumsum(durations)
        starts: list[int] = []
        start, sounds = 0, False
        for i, symbol in enumerate(ids):
            if symbol in self._spaces:
                start, sounds = int(ends[i]), False
            elif symbol in self._sounds and not sounds:
                sounds = True
                starts.append(start if starts else 0)
        return starts

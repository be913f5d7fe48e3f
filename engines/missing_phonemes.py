"""Phonemes that a voice does not know: they are left out of what is said."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

_LOG = logging.getLogger(__name__)

_MOST_TOLD: Final = 100
"""Phonemes that are logged: a voice that takes characters could be sent a million that it lacks."""


class MissingPhonemes:
    """Tells of each phoneme once, and counts how often voices lacked some. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: set[tuple[str, str]] = set()
        self._counts: Counter[str] = Counter()

    def note(self, voice: str, phonemes: Sequence[str]) -> None:
        """Take note of those that a sentence has and its voice lacks, each once."""
        if not phonemes:
            return
        with self._lock:
            self._counts[voice] += len(phonemes)
            for phoneme in phonemes:
                if (voice, phoneme) not in self._told and len(self._told) < _MOST_TOLD:
                    self._told.add((voice, phoneme))
                    _LOG.warning("voice %s has no phoneme %r, which is left out", voice, phoneme)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many were left out so far, by voice: each phoneme once in each sentence."""
        with self._lock:
            return dict(self._counts)

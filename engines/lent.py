"""Voices for one utterance of a render thread."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from engines.shared_voices import SharedVoices
from engines.shelf import Preferences
from engines.voice import Voice


class Lent:
    """`Voices`: what a render thread borrows of those that all of them share, for one utterance."""

    def __init__(self, voices: SharedVoices, preferences: Preferences, borrowed: ExitStack) -> None:
        """`borrowed` gives all of them back."""
        self.store: Final = voices.store
        self.preferences: Final = preferences
        self._voices = voices
        self._borrowed = borrowed
        self._held: dict[str, Voice] = {}

    def get(self, name: str = "", language: str | None = None) -> Voice:
        """See `Voices.get`; each voice is borrowed once."""
        # Under one name only: who borrows twice is waited for twice, where windows are computed together.
        name = self.store.find(name, language, self.preferences.preferred)
        voice = self._held.get(name)
        if voice is None:
            voice = self._held[name] = self._borrowed.enter_context(self._voices.borrow(name))
        return voice

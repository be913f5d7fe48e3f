"""Which voice says a passage of a script: the one that it names, one of its language, or the utterance's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Final, Protocol

from engines.errors import VoiceError, excerpt
from engines.shared_voices import SharedVoices
from engines.shelf import Preferences
from engines.text.languages import by_language
from engines.text.script import Passage, Script
from engines.vits import Delivery
from engines.voice import Voice


class Voices(Protocol):
    """Where voices are to be had. Implementations: the engine thread's shelf, what render threads borrow."""

    def get(self, name: str = "", language: str | None = None) -> Voice:
        """Give the voice `name`, else one of `language`. VoiceError where there is none."""

    def languages(self) -> Sequence[str]:
        """Give the languages of all voices."""

    def delivery(
        self, voice: Voice, *, speaker: int | str | None = None, gain: float = 1.0, rate: float = 1.0
    ) -> Delivery:
        """Say how a voice is to speak."""


def in_its_languages(script: Script, voices: Voices, own: Voice) -> tuple[Script, Voice]:
    """Have each sentence said in its language, where that is clear; gives who says most of it too.

    For a script whose sender named neither voice nor language: all of it in another language has another voice.
    """
    script = by_language(script, own.info.language, voices.languages())
    wanted = {passage.language for passage in script.passages if not passage.voice}
    language = wanted.pop() if len(wanted) == 1 else None
    if language is None or is_of(own.info.language, language):
        return script, own
    with suppress(VoiceError):  # `Casting` tells of it
        return script, voices.get(language=language)
    return script, own


class Lent:
    """What a render thread borrows of the voices that all of them share, for one utterance."""

    def __init__(self, voices: SharedVoices, preferences: Preferences, borrowed: ExitStack) -> None:
        """`borrowed` gives all of them back."""
        self._voices = voices
        self._preferences = preferences
        self._borrowed = borrowed
        self._held: dict[str, Voice] = {}

    def get(self, name: str = "", language: str | None = None) -> Voice:
        """See `Voices.get`; each voice is borrowed once."""
        if not name and language is not None:
            name = self._voices.of_language(language, self._preferences.voice)
        # Under one name only: who borrows twice is waited for twice, where windows are computed together.
        name = self._voices.default_name(name or self._preferences.voice)
        voice = self._held.get(name)
        if voice is None:
            voice = self._held[name] = self._borrowed.enter_context(self._voices.borrow(name))
        return voice

    def languages(self) -> Sequence[str]:
        """See `Voices.languages`."""
        return self._voices.languages()

    def delivery(
        self, voice: Voice, *, speaker: int | str | None = None, gain: float = 1.0, rate: float = 1.0
    ) -> Delivery:
        """See `Preferences.delivery`."""
        return self._preferences.delivery(voice.info, speaker=speaker, gain=gain, rate=rate)


class Casting:
    """Chooses the voices of one utterance. For one thread."""

    def __init__(
        self,
        voices: Voices,
        own: Voice,
        delivery: Delivery,
        warn: Callable[[str], None],
        *,
        gain: float = 1.0,
        rate: float = 1.0,
    ) -> None:
        """`own` and `delivery` are the utterance's, `gain` and `rate` what was asked of it: they count for all voices.

        `warn` takes what its author should know.
        """
        self._voices = voices
        self._own: Final = own.info
        self._delivery = delivery
        self._warn = warn
        self._gain = gain
        self._rate = rate

    def __call__(self, passage: Passage) -> tuple[Voice, Delivery]:
        """Give who says a passage, and how. VoiceError where the utterance's own voice is gone."""
        voice = self._voices.get(self._name(passage))
        if voice.info.name == self._own.name:
            return voice, self._delivery
        speaker = voice.info.default_speaker
        return voice, self._voices.delivery(voice, speaker=speaker, gain=self._gain, rate=self._rate)

    def _name(self, passage: Passage) -> str:
        if passage.voice and passage.voice != self._own.name:
            try:
                return self._voices.get(passage.voice).info.name
            except VoiceError:
                self._warn(f"there is no voice {excerpt(passage.voice)!r}: the command's own speaks")
        elif passage.language is not None and not is_of(self._own.language, passage.language):
            try:
                return self._voices.get(language=passage.language).info.name
            except VoiceError:
                # Of another region it is still the same language.
                if not is_of(self._own.language, passage.language.split("-")[0]):
                    self._warn(f"no voice speaks {excerpt(passage.language)!r}: the command's own does")
        return self._own.name


def is_of(spoken: str, wanted: str) -> bool:
    """Tell whether a language is what was asked for, or a region of it."""
    spoken, wanted = spoken.lower(), wanted.lower()
    return spoken == wanted or spoken.startswith(wanted + "-")

"""Which voice says a passage of a script, and in which manner.

A passage names its voice or style, is in another language, or is said by the utterance's own voice as that was asked
to. What is asked of the utterance is settled, or refused, before any of it is said.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Protocol

from engines.blends import read_vector
from engines.errors import EngineError, VoiceError, excerpt
from engines.pack_info import AnyInfo
from engines.pack_store import PackStore
from engines.shelf import Preferences
from engines.styles import Style, dressed, find
from engines.text.languages import by_language
from engines.text.script import Passage, Script
from engines.vits import Delivery
from engines.voice import Voice

Warn = Callable[[str], None]
"""Takes what an utterance's author should know."""


class Voices(Protocol):
    """Where voices are to be had. Implementations: the engine thread's shelf, what render threads borrow."""

    @property
    def store(self) -> PackStore:
        """All that are installed."""

    @property
    def preferences(self) -> Preferences:
        """What the owner wants of each."""

    def get(self, name: str = "", language: str | None = None) -> Voice:
        """Give the voice `name`, else one of `language`, else the preferred one.

        VoiceError or EngineError concern this voice alone.
        """


@dataclass(frozen=True, slots=True)
class Wish:
    """What a command asks of who speaks."""

    voice: str = ""
    """A pack's name; empty: of `language`, or the preferred one."""
    language: str | None = None
    speaker: int | str | None = None
    style: str = ""
    """A name or a blend."""
    style_vector: str = ""
    """In base64, in place of it."""
    gain: float = 1.0
    rate: float = 1.0
    """Factors, for all voices of the utterance."""


def direct(script: Script, wish: Wish, voices: Voices, warn: Warn) -> tuple[Script, Casting]:
    """Settle who speaks an utterance, and give its script with the languages that its sentences are in.

    Where the wanted voice is there but fails, the preferred one speaks in its usual way, and `warn` is told.
    VoiceError, SpeakerError or StyleError where what is asked for is not there.
    """
    wanted = voices.preferences
    style, vector = find(wish.style, wanted.styles), read_vector(wish.style_vector)
    name = wish.voice or style.voice
    voice, failed = get_or_usual(voices, name, wish.language, warn)
    by_language = not name and wish.language is not None
    if not (name or wish.language or style.blend or vector) and wish.speaker is None:
        usual_voice = voice
        script, voice = in_its_languages(script, voices, voice)
        by_language = voice is not usual_voice
    usual = wanted.delivery(
        voice.info,
        speaker=None if failed else wish.speaker,
        gain=wish.gain * style.gain,
        rate=wish.rate * style.rate,
    )
    strict = not failed and not (by_language and wish.style in wanted.styles)
    delivery = dressed(usual, voice.info, style, vector, wanted.styles, lenient=not strict)
    lead = Lead(voice, delivery, style, failed=failed, by_language=by_language)
    casting = Casting(voices, lead, wish, warn)
    casting.check(script)
    return script, casting


def get_or_usual(voices: Voices, name: str, language: str | None, warn: Warn) -> tuple[Voice, bool]:
    """Give a voice, or the preferred one where the wanted one is there but cannot be used; and whether that is so.

    `warn` is told then. VoiceError where there is none of that name or language.
    """
    store, preferred = voices.store, voices.preferences.preferred
    wanted = store.find(name, language, preferred)
    try:
        return voices.get(wanted), False
    except (VoiceError, EngineError) as error:
        if wanted == store.find("", None, preferred) or wanted not in store.names():
            raise
        warn(f"the usual voice speaks, since {error}")
        return voices.get(), True


def in_its_languages(script: Script, voices: Voices, own: Voice) -> tuple[Script, Voice]:
    """Have each sentence said in its language, where that is clear; gives who says most of it too.

    For a script whose sender named neither voice nor language: all of it in another language has another voice.
    """
    styles = voices.preferences.styles
    passages = [
        replace(passage, language=own.info.language)
        if passage.language is None and passage.style and find(passage.style, styles).names_somebody
        else passage
        for passage in script.passages
    ]
    script = by_language(replace(script, passages=tuple(passages)), own.info.language, voices.store.languages())
    wanted = {passage.language for passage in script.passages if not passage.voice}
    language = wanted.pop() if len(wanted) == 1 else None
    if language is None or is_of(own.info.language, language):
        return script, own
    with suppress(VoiceError, EngineError):  # `Casting` tells of it
        return script, voices.get(language=language)
    return script, own


@dataclass(frozen=True, slots=True)
class Lead:
    """Who says whatever does not ask for somebody else, and how."""

    voice: Voice
    delivery: Delivery
    style: Style
    failed: bool
    """Whether it speaks for one that cannot."""
    by_language: bool
    """Whether it was chosen by that."""


class Casting:
    """Chooses the voices of one utterance. For one thread."""

    def __init__(self, voices: Voices, lead: Lead, wish: Wish, warn: Warn) -> None:
        """Of `wish`, gain and rate count for all voices."""
        self.own: Final = lead.voice
        self.delivery: Final = lead.delivery
        self.volume: Final = wish.gain * lead.style.gain
        """Factor on the sounds that the utterance plays."""
        self._lead = lead
        self._voices = voices
        self._wish = wish
        self._warn = warn
        self._styles = voices.preferences.styles

    def __call__(self, passage: Passage) -> tuple[Voice, Delivery]:
        """Give who says a passage, and how. VoiceError where the utterance's own voice is gone."""
        style = find(passage.style, self._styles) if passage.style else replace(self._lead.style, blend=(), voice="")
        voice, strict = self._voice(passage, style)
        is_own = voice.info.name == self.own.info.name
        if is_own and not passage.style:
            return voice, self.delivery
        usual = self._voices.preferences.delivery(
            voice.info,
            speaker=voice.info.default_speaker,
            gain=self._wish.gain * style.gain,
            rate=self._wish.rate * style.rate,
        )
        if is_own:
            usual = replace(usual, speaker=self.delivery.speaker, mix=self.delivery.mix)
        return voice, dressed(usual, voice.info, style, b"", self._styles, lenient=not strict)

    def check(self, script: Script) -> None:
        """Refuse styles that whoever is to say them does not have: StyleError. Loads no voice."""
        asking = {(part.style, part.voice, part.language): part for part in script.passages if part.style}
        for passage in asking.values():
            style = find(passage.style, self._styles)
            with suppress(VoiceError):  # whoever is not there is told of later, and spoken for
                info, strict = self._info(passage, style)
                dressed(self.delivery, info, style, b"", self._styles, lenient=not strict)

    def _info(self, passage: Passage, style: Style) -> tuple[AnyInfo, bool]:
        """Give who would say a passage, and whether its style must be one that this voice has.

        Whoever asks for a language may ask for a style of the configuration, whatever voice that comes to.
        """
        store = self._voices.store
        if name := self._other_name(passage, style):
            return store.info(name), True
        if self._is_foreign(passage):
            with suppress(VoiceError):  # then the utterance's own speaks
                name = store.find("", passage.language, self._voices.preferences.preferred)
                return store.info(name), passage.style not in self._styles
        return self.own.info, self._is_strict(passage)

    def _voice(self, passage: Passage, style: Style) -> tuple[Voice, bool]:
        """Give who says a passage, as `_info` does; where that one cannot, the utterance's own."""
        if name := self._other_name(passage, style):
            try:
                return self._voices.get(name), True
            except (VoiceError, EngineError) as error:
                there = name in self._voices.store.names()
                self._warn(
                    f"the command's own voice speaks, since {error}"
                    if there
                    else f"there is no voice {excerpt(name)!r}: the command's own speaks"
                )
            return self._voices.get(self.own.info.name), False
        if self._is_foreign(passage):
            try:
                voice = self._voices.get(language=passage.language)
            except (VoiceError, EngineError):
                # Of another region it is still the same language.
                if not is_of(self.own.info.language, (passage.language or "").split("-")[0]):
                    self._warn(f"no voice speaks {excerpt(passage.language or '')!r}: the command's own does")
                return self._voices.get(self.own.info.name), False
            return voice, passage.style not in self._styles
        return self._voices.get(self.own.info.name), self._is_strict(passage)

    def _is_strict(self, passage: Passage) -> bool:
        """See `_info`, of a passage that the utterance's own voice says."""
        named = passage.voice == self.own.info.name
        return not self._lead.failed and (named or not self._lead.by_language or passage.style not in self._styles)

    def _other_name(self, passage: Passage, style: Style) -> str:
        name = passage.voice or style.voice
        return "" if name == self.own.info.name else name

    def _is_foreign(self, passage: Passage) -> bool:
        named = passage.voice == self.own.info.name
        return not named and passage.language is not None and not is_of(self.own.info.language, passage.language)


def is_of(spoken: str, wanted: str) -> bool:
    """Tell whether a language is what was asked for, or a region of it."""
    spoken, wanted = spoken.lower(), wanted.lower()
    return spoken == wanted or spoken.startswith(wanted + "-")

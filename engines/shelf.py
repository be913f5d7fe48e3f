"""The voices that are loaded, and how each one is to speak where a command says nothing else."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from engines.backends import Gpu, Wanted, load_voice
from engines.loudness import gain_for
from engines.pack import REVISION, PackInfo, PackStore
from engines.text.gaps import NO_GAPS, Gaps
from engines.vits import Delivery, VitsVoice

_LOG = logging.getLogger(__name__)

_MOST_LOADED: Final = 3
"""A medium voice takes 80 MB when loaded; a museum's three languages stay at hand without a wait."""


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the owner wants of every voice. None: as the voice itself says."""

    voice: str = ""
    """Pack name; empty: the first one."""
    speaker: int | None = None
    length_scale: float | None = None
    noise_scale: float | None = None
    noise_w: float | None = None
    seed: int | None = None
    loudness_lufs: float | None = None
    """To which each voice is brought."""
    gaps: Gaps = NO_GAPS
    engine: Wanted = field(default_factory=Wanted)

    def delivery(
        self, info: PackInfo, *, speaker: int | str | None = None, gain: float = 1.0, rate: float = 1.0
    ) -> Delivery:
        """Say how a voice is to speak, `rate` times as fast as usual. SpeakerError where it has no such speaker."""

        def first(*values: float | None) -> float:
            return next(value for value in values if value is not None)

        if speaker is None:
            speaker = info.default_speaker if self.speaker is None else self.speaker
        return Delivery(
            speaker=info.speaker_id(speaker),
            noise_scale=first(self.noise_scale, info.noise_scale),
            length_scale=first(self.length_scale, info.length_scale) / rate,
            noise_w=first(self.noise_w, info.noise_w),
            gain=gain * gain_for(info, self.loudness_lufs),
            gaps=self.gaps,
        )


class VoiceShelf:
    """Loads voices when they are first asked for and keeps the last few. For one thread."""

    def __init__(self, store: PackStore, preferences: Preferences, gpu: Gpu | None = None) -> None:
        """Load voices of `store`; on `gpu`, for as long as that is open, where it is the quickest."""
        self._gpu = gpu
        self._store = store
        self._preferences = preferences
        self._loaded: OrderedDict[str, VitsVoice] = OrderedDict()
        self.seed: Final = preferences.seed

    def get(self, name: str = "", language: str | None = None) -> VitsVoice:
        """Give the voice `name`, else one of `language`, else the preferred one.

        VoiceError or EngineError concern this voice alone.
        """
        if not name and language is not None:
            name = self._store.of_language(language, self._preferences.voice)
        name = self._store.default_name(name or self._preferences.voice)
        voice = self._loaded.get(name)
        if voice is None:
            voice = load_voice(self._store.get(name), self._preferences.engine, self._gpu)
            self._loaded[name] = voice
            if voice.info.revision < REVISION:
                _LOG.warning("voice %s is of an older speakd, which took no note of its loudness: add it again", name)
            if len(self._loaded) > _MOST_LOADED:
                self._loaded.popitem(last=False)[1].close()
        self._loaded.move_to_end(name)
        return voice

    @property
    def loaded(self) -> list[VitsVoice]:
        """Those that are loaded."""
        return list(self._loaded.values())

    def languages(self) -> tuple[str, ...]:
        """Give the languages of all voices, each once."""
        return self._store.languages()

    def delivery(
        self, voice: VitsVoice, *, speaker: int | str | None = None, gain: float = 1.0, rate: float = 1.0
    ) -> Delivery:
        """See `Preferences.delivery`."""
        return self._preferences.delivery(voice.info, speaker=speaker, gain=gain, rate=rate)

    def close(self) -> None:
        """Free all voices. Idempotent."""
        while self._loaded:
            self._loaded.popitem()[1].close()

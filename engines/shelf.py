"""The voices that are loaded, and how each one is to speak where a command says nothing else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from engines.backends import Gpu, Wanted
from engines.families import load
from engines.pack import PackStore
from engines.pack_info import AnyInfo, PackInfo
from engines.styles import Style
from engines.vits import Delivery
from engines.voice import Voice

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
    engine: Wanted = field(default_factory=Wanted)
    styles: Mapping[str, Style] = field(default_factory=dict)
    """That commands may name."""

    def delivery(
        self, info: AnyInfo, *, speaker: int | str | None = None, gain: float = 1.0, rate: float = 1.0
    ) -> Delivery:
        """Say how a voice is to speak, `rate` times as fast as usual. SpeakerError where it has no such speaker."""

        def first(*values: float | None) -> float:
            return next(value for value in values if value is not None)

        if speaker is None:
            speaker = info.default_speaker if self.speaker is None else self.speaker
        noise_scale, noise_w = (info.noise_scale, info.noise_w) if isinstance(info, PackInfo) else (0.0, 0.0)
        return Delivery(
            speaker=info.speaker_id(speaker),
            noise_scale=first(self.noise_scale, noise_scale),
            length_scale=first(self.length_scale, info.length_scale) / rate,
            noise_w=first(self.noise_w, noise_w),
            gain=gain,
        )


class VoiceShelf:
    """Loads voices when they are first asked for and keeps the last few. For one thread."""

    def __init__(self, store: PackStore, preferences: Preferences, gpu: Gpu | None = None) -> None:
        """Load voices of `store`; on `gpu`, for as long as that is open, where it is the quickest."""
        self._gpu = gpu
        self._store = store
        self._preferences = preferences
        self._loaded: OrderedDict[str, Voice] = OrderedDict()
        self.seed: Final = preferences.seed
        self.styles: Final = preferences.styles

    def get(self, name: str = "", language: str | None = None) -> Voice:
        """Give the voice `name`, else one of `language`, else the preferred one.

        VoiceError or EngineError concern this voice alone.
        """
        if not name and language is not None:
            name = self._store.of_language(language, self._preferences.voice)
        name = self._store.default_name(name or self._preferences.voice)
        voice = self._loaded.get(name)
        if voice is None:
            voice = load(self._store.open(name), self._preferences.engine, self._gpu)
            self._loaded[name] = voice
            if len(self._loaded) > _MOST_LOADED:
                self._loaded.popitem(last=False)[1].close()
        self._loaded.move_to_end(name)
        return voice

    @property
    def loaded(self) -> list[Voice]:
        """Those that are loaded."""
        return list(self._loaded.values())

    def languages(self) -> tuple[str, ...]:
        """Give the languages of all voices, each once."""
        return self._store.languages()

    def delivery(
        self, voice: Voice, *, speaker: int | str | None = None, gain: float = 1.0, rate: float = 1.0
    ) -> Delivery:
        """See `Preferences.delivery`."""
        return self._preferences.delivery(voice.info, speaker=speaker, gain=gain, rate=rate)

    def close(self) -> None:
        """Free all voices. Idempotent."""
        while self._loaded:
            self._loaded.popitem()[1].close()

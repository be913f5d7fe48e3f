"""The voices that are loaded, and how each one is to speak where a command says nothing else."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from engines.backends import Gpu, Wanted
from engines.errors import VoiceError, excerpt
from engines.families import load
from engines.loudness import gain_for
from engines.pack import REVISION, AnyPack, BrokenPack
from engines.pack_info import AnyInfo, PackInfo
from engines.pack_store import PackStore
from engines.styles import Style
from engines.text.gaps import NO_GAPS, Gaps
from engines.vits import Delivery
from engines.voice import Voice
from engines.voice_memory import LoadedVoices, Loads, VoiceBudget

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the owner wants of every voice. None: as the voice itself says."""

    voice: str = ""
    """Pack name; empty: the first one."""
    for_languages: Sequence[str] = ()
    """Packs that come before others of their language."""
    speaker: int | None = None
    """Of `voice`."""
    length_scale: float | None = None
    noise_scale: float | None = None
    noise_w: float | None = None
    seed: int | None = None
    loudness_lufs: float | None = None
    """To which each voice is brought."""
    gaps: Gaps = NO_GAPS
    engine: Wanted = field(default_factory=Wanted)
    voices_limit_bytes: int | None = None
    """Of memory for voices; None: as many as are asked for."""
    preload: Sequence[str] = ()
    """Voices to load before somebody asks."""
    styles: Mapping[str, Style] = field(default_factory=dict)
    """That commands may name."""

    @property
    def preferred(self) -> Sequence[str]:
        """Pack names, `voice` first: what speaks where none is named."""
        return (self.voice, *self.for_languages)

    def delivery(
        self, info: AnyInfo, *, speaker: int | str | None = None, gain: float = 1.0, rate: float = 1.0
    ) -> Delivery:
        """Say how a voice is to speak, `rate` times as fast as usual. SpeakerError where it has no such speaker."""

        def first(*values: float | None) -> float:
            return next(value for value in values if value is not None)

        if speaker is None:
            is_preferred = self.voice in {"", info.name}
            speaker = self.speaker if self.speaker is not None and is_preferred else info.default_speaker
        noise_scale, noise_w = (info.noise_scale, info.noise_w) if isinstance(info, PackInfo) else (0.0, 0.0)
        return Delivery(
            speaker=info.speaker_id(speaker),
            noise_scale=first(self.noise_scale, noise_scale),
            length_scale=first(self.length_scale, info.length_scale) / rate,
            noise_w=first(self.noise_w, noise_w),
            gain=gain * gain_for(info, self.loudness_lufs),
            gaps=self.gaps,
        )


def unmet(store: PackStore, wanted: Preferences) -> list[str]:
    """Tell which voices, and which styles of voices, the owner names that are not there. Loads none."""
    try:
        infos = {pack.info.name: pack.info for pack in store.list() if not isinstance(pack, BrokenPack)}
    except VoiceError as error:
        return [str(error)]
    named = [("voice.for_languages", voice) for voice in wanted.for_languages]
    named += [(f"the style {name!r}", style.voice) for name, style in wanted.styles.items() if style.voice]
    told = [
        f"{who} names the voice {excerpt(v)!r}, which is not there or is broken" for who, v in named if v not in infos
    ]
    for name, style in wanted.styles.items():
        those = [info for info in infos.values() if style.voice in {"", info.name}]
        for part, _ in style.blend if those else ():
            if not any(part in info.speaker_names for info in those):
                told.append(f"the style {name!r} names {part!r}, which is no style of {style.voice or 'any voice'}")
    return told


class VoiceShelf:
    """Loads voices when they are first asked for and keeps as many as the budget lets it. For one thread."""

    def __init__(
        self, store: PackStore, preferences: Preferences, gpu: Gpu | None = None, budget: VoiceBudget | None = None
    ) -> None:
        """Load voices of `store`; on `gpu`, for as long as that is open, where it is the quickest.

        `budget`: where others have voices too; else what is preferred is for these.
        """
        self.store: Final = store
        self.preferences: Final = preferences
        self._gpu = gpu
        self._loaded: Final = LoadedVoices(budget or VoiceBudget(preferences.voices_limit_bytes))
        self.seed: Final = preferences.seed
        self.styles: Final = preferences.styles
        self.preload: Final = preferences.preload

    def get(self, name: str = "", language: str | None = None) -> Voice:
        """See `Voices.get`."""
        name = self.store.find(name, language, self.preferences.preferred)
        return self._loaded.get(name, lambda: self.store.open(name), self._load)

    def _load(self, pack: AnyPack) -> Voice:
        info = pack.info
        if isinstance(info, PackInfo) and info.revision < REVISION:
            _LOG.warning("voice %s is of an older speakd, which took no note of its loudness: add it again", info.name)
        return load(pack, self.preferences.engine, self._gpu)

    @property
    def load_s(self) -> float:
        """Time spent loading voices so far."""
        return self._loaded.load_s

    @property
    def counts(self) -> Mapping[str, Loads]:
        """Of each voice that was ever loaded, by name."""
        return self._loaded.counts

    @property
    def loaded(self) -> list[Voice]:
        """Those that are loaded."""
        return self._loaded.all

    def delivery(
        self, voice: Voice, *, speaker: int | str | None = None, gain: float = 1.0, rate: float = 1.0
    ) -> Delivery:
        """See `Preferences.delivery`."""
        return self.preferences.delivery(voice.info, speaker=speaker, gain=gain, rate=rate)

    def close(self) -> None:
        """Free all voices. Idempotent."""
        self._loaded.close()

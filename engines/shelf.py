"""The voices that are loaded, and how each one is to speak where a command says nothing else."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from engines import calibration
from engines.errors import EngineError, VoiceError
from engines.pack import Pack, PackStore
from engines.vits import Delivery, VitsVoice

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
    backend: str = "auto"
    precision: str = "auto"
    threads: int = 0
    """Per engine; 0: one per core."""


def load_voice(pack: Pack, *, threads: int) -> VitsVoice:
    """Load a pack with the speed known of it on this device; measured now, in half a second, where it is not."""
    voice = VitsVoice.load(pack, threads=threads)
    device = calibration.device_name(voice, threads)
    speed = calibration.known_speed(pack, device)
    if speed is None:
        speed = calibration.measure_speed(voice)
        calibration.keep_speed(pack, device, speed)
    voice.speed = speed
    return voice


class VoiceShelf:
    """Loads voices when they are first asked for and keeps the last few. For one thread."""

    def __init__(self, store: PackStore, preferences: Preferences) -> None:
        self._store = store
        self._preferences = preferences
        self._loaded: OrderedDict[str, VitsVoice] = OrderedDict()
        self.seed: Final = preferences.seed

    def get(self, name: str = "", language: str | None = None) -> VitsVoice:
        """Give the voice `name`, else one of `language`, else the preferred one.

        VoiceError or EngineError concern this voice alone.
        """
        if not name and language is not None:
            name = self._of_language(language)
        name = self._store.default_name(name or self._preferences.voice)
        voice = self._loaded.get(name)
        if voice is None:
            wanted = self._preferences
            if wanted.backend not in {"auto", "ort"} or wanted.precision not in {"auto", "fp32"}:
                raise EngineError(f"backend {wanted.backend}", f"with precision {wanted.precision} is not built in")
            voice = load_voice(self._store.get(name), threads=wanted.threads)
            self._loaded[name] = voice
            if len(self._loaded) > _MOST_LOADED:
                self._loaded.popitem(last=False)[1].close()
        self._loaded.move_to_end(name)
        return voice

    def delivery(
        self, voice: VitsVoice, *, speaker: int | str | None = None, gain: float = 1.0, rate: float = 1.0
    ) -> Delivery:
        """Say how `voice` is to speak, `rate` times as fast as usual. SpeakerError where it has no such speaker."""
        wanted, info = self._preferences, voice.info

        def first(*values: float | None) -> float:
            return next(value for value in values if value is not None)

        if speaker is None:
            speaker = info.default_speaker if wanted.speaker is None else wanted.speaker
        return Delivery(
            speaker=info.speaker_id(speaker),
            noise_scale=first(wanted.noise_scale, info.noise_scale),
            length_scale=first(wanted.length_scale, info.length_scale) / rate,
            noise_w=first(wanted.noise_w, info.noise_w),
            gain=gain,
        )

    def _of_language(self, language: str) -> str:
        """Give the preferred voice where it speaks `language`, else the first by name. VoiceError where none does.

        "de" takes "de", "en" takes "en-us" and "en-gb", "en-us" takes "en-us" only.
        """
        packs = {pack.info.name: pack for pack in self._store.list() if isinstance(pack, Pack)}
        preferred = self._store.default_name(self._preferences.voice)
        for name in sorted(packs, key=lambda name: (name != preferred, name)):
            spoken = packs[name].info.language.lower()
            if spoken == language.lower() or spoken.startswith(language.lower() + "-"):
                return name
        known = ", ".join(sorted({pack.info.language for pack in packs.values()})) or "none"
        raise VoiceError(language, f"is spoken by no voice in {self._store.folder} (languages: {known})")

    def close(self) -> None:
        """Free all voices. Idempotent."""
        while self._loaded:
            self._loaded.popitem()[1].close()

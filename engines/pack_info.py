"""What is known of a voice on the disk: one model per family, told apart by `family`."""

from __future__ import annotations

import math
from dataclasses import astuple
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator, model_validator

from engines.errors import SpeakerError
from engines.windows import Margins

FORMAT: Final = 2
"""Counts up with every change that an older speakd could not read."""

_LARGEST_MARGIN: Final = 1000
"""Latent frames, ten seconds: more would only be a mistake in the file."""

KOKORO_LUFS: Final = -25.6
"""To which each style of Kokoro is brought: the loudness of the default voice, en_US-joe-medium."""

_LARGEST_GAIN: Final = 10.0
"""20 dB: a style that needed more would be noise."""

LengthScale = Annotated[float, Field(ge=0.05, le=20, allow_inf_nan=False)]
"""Speech 20 times as long or short is nobody's wish; what lies beyond takes memory without bound."""

NoiseScale = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]


class _CommonInfo(BaseModel):
    """What `pack.json` holds of every voice."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[2] = FORMAT
    revision: int
    """Of the import that made it; see `REVISION`."""
    name: str
    language: str
    """espeak-ng's name of the voice, such as `en-us`."""
    phoneme_type: Literal["espeak", "text"]
    phoneme_ids: dict[str, list[int]]
    sample_rate: Annotated[int, Field(gt=0)]
    """Hertz, of the voice before its resampler."""
    speaker_count: Annotated[int, Field(gt=0)]
    speaker_names: dict[str, int]
    default_speaker: int
    length_scale: LengthScale
    sources: dict[str, str]
    """File name -> SHA-256 of what the pack was made from."""
    files: dict[str, str]
    """File name -> SHA-256 of the pack's own files."""

    def speaker_id(self, speaker: int | str) -> int:
        """Look a speaker up by number or name; SpeakerError where the voice has no such one."""
        number = self.speaker_names.get(speaker, -1) if isinstance(speaker, str) else speaker
        if not 0 <= number < self.speaker_count:
            raise SpeakerError(self.name, speaker, self.speaker_count, tuple(self.speaker_names))
        return number


class PackInfo(_CommonInfo):
    """A voice of the VITS family."""

    family: Literal["vits"] = "vits"
    clusters: list[list[str]]
    """Phonemes that count as one where they follow each other, the id being that of all of them joined."""
    hop: Annotated[int, Field(gt=0)]
    """Samples per latent frame."""
    channels: Annotated[int, Field(gt=0)]
    """Per latent frame."""
    margins: Margins
    """Measured at import."""
    loudness_lufs: Annotated[float, Field(ge=-70, le=10)] | None = None
    """Of its default speaker, measured at import (ITU-R BS.1770); None: not known, or it makes no sound."""
    multi_speaker: bool
    duration_noise: bool
    noise_scale: NoiseScale
    noise_w: NoiseScale

    @field_validator("phoneme_ids")
    @classmethod
    def _has_marks(cls, value: dict[str, list[int]]) -> dict[str, list[int]]:
        if absent := [symbol for symbol in "_^$" if not value.get(symbol)]:
            raise ValueError(f"no id for {' '.join(absent)}")
        return value

    @field_validator("margins")
    @classmethod
    def _is_plausible(cls, value: Margins) -> Margins:
        if not all(0 <= margin <= _LARGEST_MARGIN for margin in astuple(value)):
            raise ValueError(f"a margin is not between 0 and {_LARGEST_MARGIN}")
        return value


class KokoroInfo(_CommonInfo):
    """A voice of the Kokoro family; its speakers are styles, a table each."""

    family: Literal["kokoro"]
    gains: list[float]
    """By speaker: the factor that brings each to `loudness_lufs`."""
    loudness_lufs: Annotated[float, Field(ge=-70, le=10)] | None = KOKORO_LUFS
    """Of all of them, once they have their gains."""

    @field_validator("gains")
    @classmethod
    def _are_plausible(cls, value: list[float]) -> list[float]:
        if not all(math.isfinite(gain) and 0 < gain <= _LARGEST_GAIN for gain in value):
            raise ValueError(f"a gain is not between 0 and {_LARGEST_GAIN:g}")
        return value

    @model_validator(mode="after")
    def _is_complete(self) -> KokoroInfo:
        if len(self.gains) != self.speaker_count:
            raise ValueError(f"{len(self.gains)} gains for {self.speaker_count} speakers")
        return self


AnyInfo: TypeAlias = PackInfo | KokoroInfo

_ANY: Final[TypeAdapter[AnyInfo]] = TypeAdapter(Annotated[AnyInfo, Field(discriminator="family")])


def info_of(content: bytes) -> AnyInfo:
    """Read `pack.json`. ValidationError where it is none."""
    return _ANY.validate_json(content)

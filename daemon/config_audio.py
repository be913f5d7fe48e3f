"""The keys of the loudspeaker."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from daemon.config_section import TEXT, Section, Text

_NIGHT: Final = 'two times of day such as "22:00-07:00"'
_Night = Annotated[str, Field(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9])?$")]


class AudioConfig(Section):
    """Where speech goes."""

    output: Literal["alsa", "wav", "null"] = Field(
        default="alsa", description="Kind of output: a loudspeaker, a WAV file, or nothing at a loudspeaker's pace"
    )
    device: Text = Field(
        default="default",
        description='ALSA PCM name of the loudspeaker for output "alsa", best by the card\'s id: '
        f'"plughw:CARD=Device"; {TEXT}',
    )
    lead_ms: int = Field(
        default=40,
        ge=20,
        le=120,
        description="Sound kept ahead of what is heard: less falls silent sooner when told to, "
        "more outlasts a busier machine; milliseconds",
    )
    lost_wait_s: int = Field(
        default=0,
        ge=0,
        le=3600,
        description="How long speech waits for a loudspeaker that was lost, to go on where it stopped, "
        "0 for not at all; seconds",
    )
    idle_close_s: int = Field(
        default=0,
        ge=0,
        le=86400,
        description="Silence after which the loudspeaker is closed, so that it may sleep and others may have it, "
        "0 for never; seconds",
    )
    wake_ms: int = Field(
        default=0,
        ge=0,
        le=5000,
        description="Silence played before speech to a loudspeaker that sleeps: amplifiers, HDMI and Bluetooth "
        "swallow what comes first; milliseconds",
    )
    wake_after_s: int = Field(
        default=10, ge=0, le=3600, description="Silence after which it sleeps, 0 for at once; seconds"
    )
    mixer: Text = Field(
        default="",
        description='Volume control of the card, as `amixer scontrols` lists it, such as "Master", "" for a volume '
        f"in software; {TEXT}",
    )
    night: _Night = Field(
        default="",
        max_length=11,
        description=f'When it must be quieter, local time, "" for never; {_NIGHT}',
        examples=["22:00-07:00"],
    )
    night_volume: float = Field(
        default=0.4, ge=0.0, le=2.0, description="Largest volume by night; volume, 1 being the voice's own level"
    )
    duck_db: float = Field(
        default=0.0,
        ge=0.0,
        le=60.0,
        description="How much other programs' sound is turned down while speech is heard, through PulseAudio or "
        "PipeWire, 0 for not at all; decibels",
    )
    loudness_lufs: float = Field(
        default=-23.0,
        ge=-40.0,
        le=-10.0,
        description="Loudness to which each voice is brought, and each chime; LUFS (EBU R 128), -23 being broadcast's",
    )
    watermark: bool = Field(
        default=False,
        description="Whether speech carries an inaudible mark by which programs can tell that it is synthetic; "
        "`speakd watermark add` installs it",
    )
    path: Text = Field(default="", description=f'WAV file to write for output "wav"; {TEXT}')

    @field_validator("path")
    @classmethod
    def _given_for_wav(cls, value: str, info: ValidationInfo) -> str:
        if not value and info.data.get("output") == "wav":
            raise ValueError('the file to write, because output is "wav"')
        return value

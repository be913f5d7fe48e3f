"""The sections of the configuration file, a class each.

A description reads "what it is; unit". From it and the bounds come the messages about mistakes,
the comments of `speakd config show` and the reference in the manual.
"""

from __future__ import annotations

import re
import socket
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from daemon.config_section import HOST, TEXT, TOPIC, TOPIC_CHARACTER, Section, Text
from device.opus import OpusSettings

_SCOPES: Final = ("all", "group", "render")
"""What stands in topics in a device's place."""


def _host_name() -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "", socket.gethostname())[:64] or "unnamed"


class DeviceConfig(Section):
    """Who this device is."""

    name: str = Field(
        default_factory=_host_name,
        description="Name of this device in every topic, the host name if left out; "
        "text of 1 to 64 characters without / + # or white space",
        pattern=rf"^{TOPIC_CHARACTER}+$",
        max_length=64,
    )
    groups: tuple[Annotated[str, Field(pattern=rf"^{TOPIC_CHARACTER}+$", max_length=64)], ...] = Field(
        default=(),
        strict=False,  # TOML has arrays only
        max_length=32,
        description="Groups whose commands this device takes too, beside its own and those to all; "
        "list of up to 32 texts without / + # or white space",
    )

    @field_validator("name")
    @classmethod
    def _is_no_scope(cls, value: str) -> str:
        if value in _SCOPES:
            raise ValueError(f"a name other than {' and '.join(_SCOPES)}, which address more than one device")
        return value


class MqttConfig(Section):
    """The broker, and how to reach it."""

    host: str = Field(
        default="localhost",
        description="Host name or address of the broker; text of 1 to 253 characters without white space, "
        "at most 63 of them between two dots",
        pattern=HOST,
        max_length=253,
    )
    port: int = Field(default=1883, ge=1, le=65535, description="TCP port of the broker; port number")
    topic_prefix: str = Field(
        default="speakd",
        description="First part of every topic, before the device's name; text of 1 to 128 characters without "
        "+ # or white space, no $ at its start, and a / only between other characters",
        pattern=TOPIC,
        max_length=128,
    )
    keepalive_s: int = Field(
        default=30, ge=5, le=3600, description="Longest silence before the broker calls this device lost; seconds"
    )
    username: Text = Field(default="", description=f'User name at the broker, "" for none; {TEXT}')
    username_file: Text = Field(
        default="", description=f'File whose first line is the user name, instead of username, "" for none; {TEXT}'
    )
    password_file: Text = Field(default="", description=f'File whose first line is the password, "" for none; {TEXT}')
    tls: bool = Field(default=False, description="Whether the connection is encrypted and the broker's name checked")
    tls_ca_file: Text = Field(
        default="",
        description=f'PEM file of the authorities that may vouch for the broker, "" for the system\'s; {TEXT}',
    )
    tls_cert_file: Text = Field(
        default="", description=f'PEM file of our own certificate, where the broker wants one, "" for none; {TEXT}'
    )
    tls_key_file: Text = Field(
        default="", description=f'PEM file of its key, "" where tls_cert_file holds it too; {TEXT}'
    )
    session_expiry_s: int = Field(
        default=60,
        ge=0,
        le=86400,
        description="How long the broker keeps commands while this device is away (MQTT 5), 0 for not at all; seconds",
    )
    max_payload_bytes: int = Field(
        default=65536, ge=256, le=1048576, description="Largest message that is looked at; bytes"
    )
    reconnect_min_s: int = Field(
        default=1, ge=1, le=3600, description="Wait before the first attempt to connect again; seconds"
    )
    reconnect_max_s: int = Field(
        default=60, ge=1, le=3600, description="Longest wait between attempts, which doubles after each; seconds"
    )

    @field_validator("reconnect_max_s")
    @classmethod
    def _not_below_minimum(cls, value: int, info: ValidationInfo) -> int:
        minimum = info.data.get("reconnect_min_s", value)
        if value < minimum:
            raise ValueError(f"at least reconnect_min_s, which is {minimum}")
        return value


class VoiceConfig(Section):
    """Who speaks, and how."""

    packs: Text = Field(
        default="", description=f'Folder of imported voices, "" for packs/ in the service\'s state folder; {TEXT}'
    )
    default: Text = Field(default="", description=f'Pack that speaks, "" for the only or the first one by name; {TEXT}')
    for_languages: tuple[Text, ...] = Field(
        default=(),
        strict=False,  # TOML has arrays only
        max_length=100,
        description="Packs that come before others of the same language where a text's language decides who speaks, "
        "the default one always being first; list of up to 100 names",
    )
    speaker: int | None = Field(
        default=None,
        ge=0,
        le=10000,
        description="Speaker of the default voice where that has several, its own choice if left out; number",
        examples=[0],
    )
    length_scale: float | None = Field(
        default=None,
        ge=0.25,
        le=4.0,
        description="How long sounds are, the voice's own value if left out; factor, 2 being half as fast",
        examples=[1.0],
    )
    noise_scale: float | None = Field(
        default=None,
        ge=0.0,
        le=2.0,
        description="Variation of the sound, the voice's own value if left out; standard deviations",
        examples=[0.667],
    )
    noise_w: float | None = Field(
        default=None,
        ge=0.0,
        le=2.0,
        description="Variation of the rhythm, the voice's own value if left out; standard deviations",
        examples=[0.8],
    )
    sentence_gap_ms: int = Field(
        default=0, ge=0, le=10000, description="Silence added between two sentences; milliseconds"
    )
    paragraph_gap_ms: int = Field(
        default=0,
        ge=0,
        le=10000,
        description="Silence added between two paragraphs, which a blank line divides, in place of that between "
        "sentences; milliseconds",
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        le=2**32 - 1,
        description="Seed of both variations, a new one for each utterance if left out: with it a text is the same to "
        "the sample each time, in pieces whose size follows from the measured speed alone; number",
        examples=[0],
    )
    preload: tuple[Text, ...] = Field(
        default=(),
        strict=False,  # TOML has arrays only
        max_length=100,
        description="Packs that are loaded once nobody speaks, before they are asked for; list of up to 100 names",
    )


class EngineConfig(Section):
    """What computes the voice."""

    backend: Literal["auto", "ort", "trt"] = Field(
        default="auto",
        description='What runs the graphs, "auto" for the quickest that this machine has, measured at start; "trt" '
        "(TensorRT on an NVIDIA GPU) fails where it cannot be",
    )
    precision: Literal["auto", "int8", "fp16", "fp32"] = Field(
        default="auto", description='Arithmetic of the graphs, "auto" for the quickest that the voice passes in'
    )
    threads: int = Field(default=0, ge=0, le=64, description="CPU threads, 0 for one per core; threads")
    plans: Text = Field(
        default="", description=f"Folder of TensorRT's plans, \"\" for plans/ in the service's cache folder; {TEXT}"
    )


class MemoryConfig(Section):
    """Sample memory, allocated once at start, and the memory of voices."""

    pinned_limit_mb: int = Field(
        default=1024, ge=16, le=65536, description="Most memory that the buffers may take; MiB"
    )
    pool_buffers: int = Field(
        default=100, ge=4, le=4096, description="How many windows of speech may wait to be played; buffers"
    )
    voices_limit_mb: int = Field(
        default=1024,
        ge=1,
        le=1048576,
        description="Memory for loaded voices, those of renders too: beyond it those that nobody renders with and the "
        "one unused for the longest are released, but never the one that speaks; MiB",
    )


class EncoderConfig(Section):
    """Compressed speech: in files, in streams and over RTP."""

    codec: Literal["opus"] = Field(default="opus", description="How it is compressed")
    bitrate: int = Field(
        default=24000, ge=6000, le=510000, description="Size of the compressed speech; bits per second"
    )
    frame_ms: Literal[10, 20, 40, 60] = Field(
        default=20, description="Speech per packet, which is also a delay; milliseconds"
    )
    complexity: int = Field(
        default=5, ge=0, le=10, description="Effort of the encoder, more sounding better; level, 10 being the most"
    )
    rate: Literal[24000, 48000] = Field(
        default=48000, description="What listeners play it at, what they cannot hear being left out; hertz"
    )
    dtx: bool = Field(default=False, description="Whether silence is hardly encoded at all")
    drop_warn: float = Field(
        default=0.01,
        ge=0.0,
        le=1.0,
        description="Share of a command's packets that may be lost here before the log tells; share, 0.01 being 1 %",
    )

    @property
    def settings(self) -> OpusSettings:
        """Say it to an encoder."""
        return OpusSettings(
            bitrate=self.bitrate,
            complexity=self.complexity,
            frame_ms=self.frame_ms,
            rate=self.rate,
            dtx=self.dtx,
        )


class RenderConfig(Section):
    """Speech that is computed for a file or a stream instead of the loudspeaker."""

    shared: bool = Field(
        default=False, description="Whether this device takes its share of the commands that are sent to render"
    )
    folder: Text = Field(
        default="", description=f'Where files are put, "" for renders/ in the service\'s state folder; {TEXT}'
    )
    file_format: Literal["wav", "opus"] = Field(default="wav", description="What files are; streams are Ogg Opus")
    max_renders: int = Field(default=32, ge=1, le=1000, description="How many may be computed or wait; commands")


class JournalConfig(Section):
    """What was accepted and how it ended, so that nothing is lost and nothing spoken twice."""

    file: Text = Field(
        default="", description=f'Where it is kept, "" for journal.db in the service\'s state folder; {TEXT}'
    )
    keep: int = Field(
        default=10000, ge=100, le=1000000, description="How many ended commands are known again by their id; commands"
    )
    speak_after_restart_s: int = Field(
        default=60,
        ge=0,
        le=86400,
        description="How old a command may be that a crash kept from being spoken, to be spoken after it, "
        "0 for never; seconds",
    )


class CacheConfig(Section):
    """Phrases that are said again and again, kept as they sounded."""

    enabled: bool = Field(default=True, description="Whether phrases that were said twice are kept")
    folder: Text = Field(
        default="", description=f'Where they are kept, "" for phrases/ in the service\'s cache folder; {TEXT}'
    )
    max_mb: int = Field(default=64, ge=1, le=65536, description="Most disk that they may take; MiB")
    min_free_mb: int = Field(
        default=500, ge=0, le=1048576, description="Disk that must stay free, else no more is kept; MiB"
    )
    phrases: tuple[Text, ...] = Field(
        default=(),
        strict=False,  # TOML has arrays only
        max_length=1000,
        description="Phrases that are spoken into the cache at start and stay there; list of up to 1000 texts",
    )


class LimitsConfig(Section):
    """How much is accepted before it is refused."""

    max_text_chars: int = Field(default=4000, ge=1, le=100000, description="Longest text of one command; characters")
    max_queue: int = Field(default=100, ge=1, le=10000, description="How many may wait their turn; utterances")
    max_queue_bytes: int = Field(
        default=1048576, ge=1024, le=1073741824, description="How much text may wait its turn; bytes"
    )
    max_commands_per_s: float = Field(
        default=50.0,
        ge=0.1,
        le=10000.0,
        description="How many commands one sender may give in the long run, four seconds' worth at once; per second",
    )
    phonemes_timeout_s: float = Field(
        default=30.0,
        ge=1.0,
        le=600.0,
        description="Longest wait for the phonemes of a piece of text before the utterance fails; seconds",
    )

"""The configuration: one TOML file, read once at start into types that cannot change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from daemon.config_audio import AudioConfig
from daemon.config_bridges import HermesConfig, HomeAssistantConfig, WyomingConfig
from daemon.config_chimes import ChimesConfig
from daemon.config_lexicon import LexiconConfig
from daemon.config_power import PowerConfig
from daemon.config_problems import KeySchema, problems
from daemon.config_recorder import RecorderConfig
from daemon.config_rtp import RtpConfig
from daemon.config_section import Section
from daemon.config_sections import (
    CacheConfig,
    DeviceConfig,
    EncoderConfig,
    EngineConfig,
    JournalConfig,
    LimitsConfig,
    MemoryConfig,
    MqttConfig,
    RenderConfig,
    VoiceConfig,
)
from daemon.config_styles import StylesConfig
from daemon.config_telemetry import AlertsConfig, PrometheusConfig, TelemetryConfig
from daemon.config_text_section import TextConfig
from daemon.config_toml import read_toml
from daemon.errors import ConfigError, StartError

__all__ = [
    "DEFAULT_PATH",
    "AlertsConfig",
    "AudioConfig",
    "CacheConfig",
    "ChimesConfig",
    "Config",
    "DeviceConfig",
    "EncoderConfig",
    "EngineConfig",
    "HermesConfig",
    "HomeAssistantConfig",
    "JournalConfig",
    "LexiconConfig",
    "LimitsConfig",
    "MemoryConfig",
    "MqttConfig",
    "PowerConfig",
    "PrometheusConfig",
    "RecorderConfig",
    "RenderConfig",
    "RtpConfig",
    "StylesConfig",
    "TelemetryConfig",
    "TextConfig",
    "VoiceConfig",
    "WyomingConfig",
    "journal_file",
    "load",
    "packs_folder",
    "phrases_folder",
    "plans_folder",
    "recordings_folder",
    "renders_folder",
    "section_keys",
    "state_folder",
    "watermark_folder",
]

DEFAULT_PATH: Final = Path("/etc/speakd/speakd.toml")
"""Read where no other file is named. It need not exist: speakd then runs on its defaults."""


class Config(Section):
    """Everything that can be set about speakd."""

    device: DeviceConfig = Field(default_factory=DeviceConfig)
    mqtt: MqttConfig = Field(default_factory=MqttConfig)
    audio: AudioConfig = Field(default_factory=AudioConfig)
    voice: VoiceConfig = Field(default_factory=VoiceConfig)
    styles: StylesConfig = Field(default_factory=StylesConfig)
    text: TextConfig = Field(default_factory=TextConfig)
    engine: EngineConfig = Field(default_factory=EngineConfig)
    memory: MemoryConfig = Field(default_factory=MemoryConfig)
    encoder: EncoderConfig = Field(default_factory=EncoderConfig)
    render: RenderConfig = Field(default_factory=RenderConfig)
    journal: JournalConfig = Field(default_factory=JournalConfig)
    cache: CacheConfig = Field(default_factory=CacheConfig)
    lexicon: LexiconConfig = Field(default_factory=LexiconConfig)
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    power: PowerConfig = Field(default_factory=PowerConfig)
    telemetry: TelemetryConfig = Field(default_factory=TelemetryConfig)
    alerts: AlertsConfig = Field(default_factory=AlertsConfig)
    prometheus: PrometheusConfig = Field(default_factory=PrometheusConfig)
    chimes: ChimesConfig = Field(default_factory=ChimesConfig)
    rtp: RtpConfig = Field(default_factory=RtpConfig)
    recorder: RecorderConfig = Field(default_factory=RecorderConfig)
    homeassistant: HomeAssistantConfig = Field(default_factory=HomeAssistantConfig)
    hermes: HermesConfig = Field(default_factory=HermesConfig)
    wyoming: WyomingConfig = Field(default_factory=WyomingConfig)


def section_keys(section: type[Section]) -> dict[str, KeySchema]:
    """Describe each key of a section by its JSON Schema."""
    keys: dict[str, KeySchema] = section.model_json_schema()["properties"]
    return keys


def load(path: Path | None) -> Config:
    """Read the configuration from `path`, or from `DEFAULT_PATH` where None.

    ConfigError with every mistake in it, or where a file that was named does not exist.
    """
    file = DEFAULT_PATH if path is None else path
    try:
        table = read_toml(file)
    except FileNotFoundError as error:
        if path is None:
            return Config()
        raise ConfigError(file, ["there is no such file"]) from error
    try:
        return Config.model_validate(table)
    except ValidationError as error:
        keys = {name: section_keys(type(section)) for name, section in Config()}
        raise ConfigError(file, problems(error, keys)) from error


def packs_folder(config: Config) -> Path:
    """Tell where the imported voices lie: as configured, else in the state folder of the service, machine or user.

    StartError where all of them are unknown, because the user has no home folder.
    """
    if config.voice.packs:
        return Path(config.voice.packs)
    return state_folder() / "packs"


def journal_file(config: Config) -> Path:
    """Tell where the journal lies: as configured, else in the state folder."""
    return Path(config.journal.file) if config.journal.file else state_folder() / "journal.db"


def renders_folder(config: Config) -> Path:
    """Tell where files of speech are put: as configured, else in the state folder."""
    return Path(config.render.folder) if config.render.folder else state_folder() / "renders"


def recordings_folder(config: Config) -> Path:
    """Tell where recordings of what was said are put: as configured, else in the state folder."""
    return Path(config.recorder.folder) if config.recorder.folder else state_folder() / "recordings"


def watermark_folder() -> Path:
    """Tell where the graphs of the watermark lie: in the state folder."""
    return state_folder() / "watermark"


def phrases_folder(config: Config) -> Path:
    """Tell where kept phrases lie: as configured, else in the cache folder of the service, machine or user."""
    if config.cache.folder:
        return Path(config.cache.folder)
    return _own_folder("CACHE_DIRECTORY", "/var/cache/speakd", "XDG_CACHE_HOME", ".cache") / "phrases"


def plans_folder(config: Config) -> Path:
    """Tell where TensorRT's plans lie: as configured, else in the cache folder of the service, machine or user."""
    if config.engine.plans:
        return Path(config.engine.plans)
    return _own_folder("CACHE_DIRECTORY", "/var/cache/speakd", "XDG_CACHE_HOME", ".cache") / "plans"


def state_folder() -> Path:
    """Give the folder of what must outlive a restart: of the service, the machine or the user."""
    return _own_folder("STATE_DIRECTORY", "/var/lib/speakd", "XDG_DATA_HOME", ".local/share")


def _own_folder(service_variable: str, of_root: str, user_variable: str, in_home: str) -> Path:
    if service := os.environ.get(service_variable, "").split(":")[0]:
        return Path(service)
    if os.geteuid() == 0:
        return Path(of_root)
    # The XDG specification has relative paths ignored.
    folder = Path(os.environ.get(user_variable, ""))
    if folder.is_absolute():
        return folder / "speakd"
    try:
        return Path.home() / in_home / "speakd"
    except RuntimeError as error:
        raise StartError(
            f"who asks has no home folder: set {user_variable} to a folder that they may write to"
        ) from error

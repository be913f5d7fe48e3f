"""The sections of the configuration file that are about other protocols: see `config_sections`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from daemon.config_section import TOPIC, TOPIC_CHARACTER, Section, listening_address


class HomeAssistantConfig(Section):
    """This device in Home Assistant, by MQTT discovery."""

    enabled: bool = Field(
        default=False, description="Whether Home Assistant finds this device; once it was, turning it off removes it"
    )
    discovery_prefix: str = Field(
        default="homeassistant",
        description="Discovery prefix, as Home Assistant's MQTT integration has it; text of 1 to 128 characters "
        "without + # or white space, no $ at its start, and a / only between other characters",
        pattern=TOPIC,
        max_length=128,
    )


class HermesConfig(Section):
    """A voice and a loudspeaker for Rhasspy, by the Hermes protocol."""

    enabled: bool = Field(default=False, description="Whether Hermes messages are answered")
    site_ids: tuple[Annotated[str, Field(pattern=rf"^{TOPIC_CHARACTER}+$", max_length=64)], ...] = Field(
        default=("default",),
        strict=False,  # TOML has arrays only
        min_length=1,
        max_length=32,
        description="Sites whose messages concern this device; list of 1 to 32 texts without / + # or white space",
    )
    max_wav_mb: int = Field(default=16, ge=1, le=64, description="Largest sound that is played; MiB")


class WyomingConfig(Section):
    """A text-to-speech server for Home Assistant's voice pipeline, by the Wyoming protocol."""

    enabled: bool = Field(default=False, description="Whether there is a server")
    host: str = listening_address()
    port: int = Field(default=10200, ge=1, le=65535, description="Its TCP port; port number")

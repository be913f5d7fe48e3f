"""The sections of the configuration file that are about other protocols: see `config_sections`."""

from __future__ import annotations

from pydantic import Field

from daemon.config_sections import TOPIC, Section


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

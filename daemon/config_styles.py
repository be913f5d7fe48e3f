"""The section of the configuration file that is about manners of speaking: see `config_sections`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from daemon.config_section import Section
from engines.styles import Style, read_definitions

_Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$", max_length=300)]


class StylesConfig(Section):
    """Manners of speaking that commands may name."""

    named: tuple[_Line, ...] = Field(
        default=(),
        strict=False,  # TOML has arrays only
        max_length=200,
        description="Each with its name and, as far as it differs from the usual, a style or blend of the voice, the "
        "voice, factors on rate and gain, and the silence after sentences and paragraphs in milliseconds; "
        'a list of lines such as "urgent = am_michael:0.6+af_bella:0.4 rate=1.2 gain=1.3 voice=kokoro-en-us" or '
        '"calm = rate=0.9 sentence_gap_ms=400 paragraph_gap_ms=900"',
    )

    @field_validator("named")
    @classmethod
    def _are_styles(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        read_definitions(value)
        return value

    @property
    def styles(self) -> dict[str, Style]:
        """Give them by name."""
        return read_definitions(self.named)

"""The section of the configuration file that is about how texts are read: see `config_sections`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from pydantic import Field

from daemon.config_section import Section
from engines.text.normalize.pipeline import Normalizer


class TextConfig(Section):
    """How written texts are read."""

    normalize: bool = Field(
        default=True,
        description="Whether numbers, dates, money, units, addresses and abbreviations are put into words before "
        "they are spoken; if not, espeak-ng reads them as it can",
    )
    emoji: Literal["drop", "name", "keep"] = Field(
        default="drop", description="Emoji are left out, called by their names, or left to espeak-ng"
    )
    date_order: Literal["auto", "day-month", "month-day"] = Field(
        default="auto", description="How 03/04/2026 is read; auto is month-day for en-us, else day-month"
    )


def normalizer_of(text: TextConfig) -> Callable[[str], Normalizer]:
    """Return what makes the normaliser of a language, as configured."""
    return partial(Normalizer, emoji=text.emoji, date_order=text.date_order, written_forms=text.normalize)

"""How a text is to be read: what a rule may know besides the text itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """The circumstances of one text, the same for all of its written forms."""

    british: bool = False
    """Numbers with "and" ("two hundred and five"), the day before the month."""
    day_first: bool = False
    """03/04/2026 is the third of April."""
    alone: bool = False
    """The text is one written form and nothing else. It is then shown rather than used, and is read as it stands:
    an address in full, "2-5" without "to"."""

"""What the doctor finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "fault"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    """In a word or two, such as "broker"."""
    state: State
    """`note` is neither good nor bad, or cannot be known here; a `fault` keeps speakd from speaking as it should."""
    text: str
    mend: str = ""
    """The command that mends a fault, or what else to do."""

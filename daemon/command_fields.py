"""What the models of commands are made of: their base, and the fields that several have."""

from __future__ import annotations

import uuid
from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

LARGEST_VOLUME: Final = 2.0
"""Twice the voice's own level. Peaks that would be beyond full scale are made lower."""

SMALLEST_RATE: Final = 0.5
LARGEST_RATE: Final = 2.0
"""Beyond these no voice was trained to be understood."""

Printable = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""Text that comes back in events and the log. The pattern keeps lone surrogates out too: no event could carry them."""

Name = Annotated[Printable, Field(min_length=1, max_length=128)]
VoiceName = Annotated[Printable, Field(max_length=100)]
Volume = Annotated[float, Field(ge=0, le=LARGEST_VOLUME)]
Rate = Annotated[float, Field(ge=SMALLEST_RATE, le=LARGEST_RATE)]


def new_id() -> str:
    """Make a name for a command that its sender gave none."""
    return uuid.uuid4().hex


class Command(BaseModel):
    """What every command may carry."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    shorthand: ClassVar[str] = ""
    """The field that a payload which is no JSON object stands for; empty where there is none."""

    reply_to: Annotated[Printable, Field(max_length=512)] = ""
    """A topic on which its events come too: for MQTT 3.1.1, which has no response topic."""

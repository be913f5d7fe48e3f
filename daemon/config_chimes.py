"""The keys of chimes."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from daemon.commands import ChimeName
from daemon.config_section import TEXT, Section, Text

_DEFAULT: Final = (
    'Chime before commands of this priority that say nothing of one, "" for none; '
    "text of up to 64 letters, digits and _ . -"
)


class ChimesConfig(Section):
    """Sounds before and after speech."""

    folder: Text = Field(
        default="",
        description="Folder of own chimes, .wav, .flac, .ogg or .opus files of up to 10 s that are named as they are "
        f'called, "" for none; {TEXT}',
    )
    overlap_ms: int = Field(
        default=60, ge=0, le=200, description="How far speech reaches into a chime before or after it; milliseconds"
    )
    critical: ChimeName = Field(default="", description=_DEFAULT)
    important: ChimeName = Field(default="", description=_DEFAULT)
    message: ChimeName = Field(default="", description=_DEFAULT)
    notification: ChimeName = Field(default="", description=_DEFAULT)
    progress: ChimeName = Field(default="", description=_DEFAULT)

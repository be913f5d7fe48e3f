"""The keys of the recorder."""

from __future__ import annotations

from pydantic import Field

from daemon.config_section import TEXT, Section, Text


class RecorderConfig(Section):
    """What was said, kept for support cases: whoever can read the folder can hear it."""

    enabled: bool = Field(default=False, description="Whether what the loudspeaker says is recorded")
    folder: Text = Field(
        default="", description=f'Where recordings are put, "" for recordings/ in the service\'s state folder; {TEXT}'
    )
    keep: int = Field(default=20, ge=1, le=1000, description="How many are kept, the oldest going first; utterances")

"""The section of the configuration about how words are read."""

from __future__ import annotations

from pydantic import Field

from daemon.config_section import Section


class LexiconConfig(Section):
    """Readings of words that no rule gets right."""

    folder: str = Field(
        default="/etc/speakd/lexicon.d",
        pattern=r"^[^\x00-\x1f\x7f-\x9f]+$",
        max_length=4096,
        description="Folder of lexica, files *.toml, read again when changed; printable text of 1 to 4096 characters",
    )

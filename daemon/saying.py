"""What is to be said, and how: what is heard at the loudspeaker and what is rendered have this in common."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from daemon.commands import Speak
from daemon.framing import Framing
from daemon.job import Job
from daemon.level import gain_of
from engines.casting import Wish


@dataclass(frozen=True, slots=True)
class Saying:
    """A text, and all that its command asks of the sound."""

    job: Job
    text: str
    _: KW_ONLY
    ssml: bool = False
    """Whether the text is SSML."""
    wish: Wish = field(default_factory=Wish)
    """What is asked of who speaks."""
    seed: int | None = None
    """Where the owner prefers none."""
    framing: Framing | None = None
    """Chimes around it."""


def wish_of(command: Speak) -> Wish:
    """Give what a command asks of who speaks."""
    return Wish(
        command.voice,
        command.language,
        command.speaker,
        command.style or "",
        command.style_vector or "",
        gain=gain_of(command.volume),
        rate=command.rate,
    )

"""What is to be said, and how: what is heard at the loudspeaker and what is rendered have this in common."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from daemon.framing import Framing
from daemon.job import Job
from engines.casting import Wish


@dataclass(frozen=True, slots=True)
class Saying:
    """A text, and all that its command asks of the sound."""

    job: Job
    text: str
    _: KW_ONLY
    ssml: bool = False
    """Whether the text is SSML."""
    voice: str = ""
    language: str | None = None
    speaker: int | str | None = None
    style: str = ""
    """A name or a blend."""
    style_vector: str = ""
    """In base64, in place of it."""
    rate: float = 1.0
    """2 is twice as fast as usual."""
    gain: float = 1.0
    seed: int | None = None
    """Where the owner prefers none."""
    framing: Framing | None = None
    """Chimes around it."""

    @property
    def wish(self) -> Wish:
        """What it asks of who speaks."""
        return Wish(
            self.voice, self.language, self.speaker, self.style, self.style_vector, gain=self.gain, rate=self.rate
        )

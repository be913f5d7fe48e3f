"""What becomes of an utterance while it is computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_MOST_WARNINGS: Final = 10
"""Of one utterance that are told."""


@dataclass(slots=True)
class Tally:
    """What an utterance has taken so far. Written by the synthesizing thread."""

    frames: int = 0
    compute_s: float = 0.0
    """Time in phonemizer and engines; waiting for a buffer is not counted."""
    first_s: float | None = None
    """The part of it until the first chunk."""
    first_at: float | None = None
    """When that was there, in seconds of `time.monotonic`."""
    text_s: float = 0.0
    """Of `first_s`, the time in the phonemizer; of the rest no such account is kept."""
    acoustic_s: float = 0.0
    """Of `first_s`, the time in the acoustic part."""
    words: list[int] = field(default_factory=list)
    """The first frame of each word, known before its samples are."""
    sentences: list[int] = field(default_factory=list)
    """The first frame of each sentence, likewise; a pause between two and a sound that is played are one each."""
    marks: list[tuple[int, str]] = field(default_factory=list)
    """The frame and name of each mark, likewise."""
    mark_s: float | None = None
    """Of `compute_s`, the time that the watermark took; None where there is none."""
    warnings: list[str] = field(default_factory=list)
    """What could not be said as it was meant, each once."""

    def warn(self, text: str) -> None:
        """Take note of something that its author should know."""
        if text not in self.warnings and len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append(text)

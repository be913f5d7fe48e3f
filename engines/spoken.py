"""A sentence that a voice is ready to render, piece by piece into buffers; and what a family of voices can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from device.format import Samples


@dataclass(frozen=True, slots=True)
class Piece:
    """What goes into one buffer."""

    frames: int
    """That count."""
    needed: int
    """That `render` writes; what is beyond `frames` is nobody's."""
    render: Callable[[Samples], None]
    """Write just `needed` frames. EngineError or SynthesisError where that fails."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One sentence, in the pieces that it comes in."""

    words: Sequence[int]
    """The first frame of each word."""
    pieces: Sequence[Piece]
    """In order; the rendering of each may be left out."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """How much of a text a voice takes at once, in phonemes."""

    clause: int
    """A sentence that is longer is cut after a clause."""
    most: int
    """One without such a place is cut after a word."""


WHOLE: Final = Lengths(600, 600)
"""Of one pass of VITS's acoustic part, some 35 s of speech: its attention takes memory by the square of this.

Whatever is one piece of text stays together, even a sentence of a hundred words.
"""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a family can do."""

    streaming: bool
    """Whether a sentence is heard before all of it is computed."""
    styles: bool
    """Whether its speakers are styles, which can be blended."""
    lengths: Lengths
    trial_ids: int
    """Phoneme ids of a sentence of the longest usual length."""

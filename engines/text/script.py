"""What is to be said, as a list of passages: what SSML, a plain text and whoever else has something to say come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Reading:
    """A stretch of a sentence whose reading is told. It does not divide the sentence.

    Just one of `ipa`, `words` and `say_as` is given.
    """

    written: str
    ipa: str = ""
    """In the symbols of espeak-ng's IPA, as voices were trained on; words are parted by spaces."""
    words: str = ""
    """Other words in its place."""
    say_as: str = ""
    """SSML's `interpret-as`: the kind of thing that is written."""
    form: str | None = None
    """SSML's `format` of it."""
    source: Literal["ssml", "lexicon", "heteronym"] = "ssml"
    """Who told it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place whose being reached is told."""

    name: str


Span: TypeAlias = str | Reading | Mark
"""A `str` is written text: whatever it holds is spoken, nothing in it is a command."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What one voice says in one manner, and the silence after it."""

    spans: tuple[Span, ...] = ()
    pause_s: float = 0.0
    rate: float = 1.0
    """Factor on the speed of the utterance."""
    gain: float = 1.0
    """Factor on the samples, beside the utterance's own."""
    voice: str = ""
    """A pack's name; empty: of `language`, or whoever speaks the utterance."""
    language: str | None = None
    style: str = ""
    """A name or a blend; empty: as the utterance."""
    opens: bool = False
    """Whether it begins a paragraph after another one: the owner may want silence before it, where it has any sound."""
    clip: str = ""
    """The name of a sound to play; the spans are said where there is none of this name."""

    @property
    def text(self) -> str:
        """What is written."""
        return "".join(_written(span) for span in self.spans)


@dataclass(frozen=True, slots=True)
class Script:
    """Passages in their order."""

    passages: tuple[Passage, ...]
    warnings: tuple[str, ...] = ()
    """What could not be understood and was left out of account, in words for its author."""

    @property
    def chars(self) -> int:
        """How much text there is."""
        return sum(len(_written(span)) for passage in self.passages for span in passage.spans)

    @property
    def text(self) -> str:
        """All that is written."""
        return " ".join(passage.text for passage in self.passages).strip()

    def is_repeatable_by(self, language: str) -> bool:
        """Tell whether a recording by one voice of this language is as good as doing it anew.

        Not where it has marks or warnings, plays other sounds, or has other voices or styles, any of which may change.
        """
        return not self.warnings and not any(
            passage.clip
            or passage.voice
            or passage.style
            or passage.language not in {None, language}
            or any(isinstance(span, Mark) for span in passage.spans)
            for passage in self.passages
        )


def plain(text: str) -> Script:
    """Give a plain text as a script of one passage."""
    return Script((Passage((text,)),))


def _written(span: Span) -> str:
    match span:
        case Reading():
            return span.words or span.written
        case Mark():
            return ""
    return span

"""Written text to the phonemes of sentences: the one way that all text takes, each step in a module of its own.

spans -> lexicon -> normaliser -> lexicon, heteronyms -> scripts of the language -> espeak-ng and IPA -> sentences
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from device.format import Samples
from engines.errors import excerpt
from engines.spoken import WHOLE, Lengths
from engines.text.alphabets import without_foreign, without_long_words
from engines.text.heteronyms import Sense, heteronyms
from engines.text.inline import TOKEN, Inlays
from engines.text.ipa import for_language, is_sound
from engines.text.lexicon import Lexicon
from engines.text.normalize.pipeline import Normalizer
from engines.text.normalize.say_as import say_as
from engines.text.phonemes import Clause, sentences_of
from engines.text.script import Mark, Passage, Reading
from engines.text.sentences import blocks
from engines.text.splice import Phonemizes, Splicer

BLOCK_CHARS: Final = 600
"""Text that espeak-ng gets at once: some 2 ms of its time, so that a long text delays its first sentence by no more."""

VERSION: Final = 1
"""Rises whenever other sounds come out for a text, but for what the normaliser does: it has a number of its own."""

_LANGUAGES: Final = 4
"""Whose normalisers are kept: as many as voices, and one that a text mentions."""

Warn = Callable[[str], None]
"""Takes what could not be said, in words for the text's author."""


def _no_clip(_name: str) -> Samples | None:
    return None


def _no_lexicon() -> Lexicon:
    return Lexicon()


@dataclass(frozen=True, slots=True)
class Front:
    """What the owner wants of every text."""

    normalizer: Callable[[str], Normalizer] = Normalizer
    """Makes the normaliser of a language."""
    lexicon: Callable[[], Lexicon] = _no_lexicon
    """Gives the lexicon as it is now; called for each piece of text, from any thread."""
    clip: Callable[[str], Samples | None] = _no_clip
    """Gives the samples of a sound that a script names; None where there is none. From any thread."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """What the acoustic part takes at once."""

    phonemes: list[str]
    """Each a code point of NFD, marks included. Empty where marks stand alone."""
    marks: tuple[tuple[int, str], ...] = ()
    """Before which of its words each mark lies, in order; the number of its words: at its end."""


@dataclass(frozen=True, slots=True)
class Words:
    """A piece of text as it is handed to espeak-ng."""

    text: str
    """What is not text is a character of `inlays`: a mark, or a reading in IPA."""
    inlays: Inlays = field(repr=False)


LAST_STEP: Final = "scripts"

Trace = Callable[[str, str], None]
"""Takes the name of a step and what it made of the text."""


class Reader:
    """Reads passages. As thread-safe as its phonemizer: calls wait for one another there."""

    def __init__(self, phonemizer: Phonemizes, front: Front | None = None) -> None:
        self._front = front or Front()
        self._splicer: Final = Splicer(phonemizer)
        self._normalizer = functools.lru_cache(maxsize=_LANGUAGES)(self._front.normalizer)
        self._sound = functools.lru_cache(maxsize=1024)(self._sound_in)

    def fingerprint(self, language: str) -> str:
        """Tell apart what makes other words or sounds of the same text: the rules, and the lexicon as it is now."""
        return f"{VERSION} {self._normalizer(language).fingerprint} {self._front.lexicon().digest}"

    def read(
        self,
        passage: Passage,
        language: str,
        kind: Literal["espeak", "text"],
        warn: Warn,
        lengths: Lengths = WHOLE,
    ) -> Iterator[tuple[list[Sentence], bool]]:
        """Yield the sentences of one piece of a passage after another, and whether another piece follows.

        `language` is espeak-ng's name of a voice, `lengths` what the voice takes at once. Raises what the phonemizer
        does.
        """
        inlays = Inlays()
        pieces = blocks(inlays.text(passage.spans), max_chars=BLOCK_CHARS)
        piece = next(pieces, None)
        while piece is not None:
            following = next(pieces, None)
            words = self.words(piece, inlays, language, warn, by_sound=kind == "espeak")
            # Words are longer than numbers: what was a piece may be several now.
            parts = [Words(part, inlays) for part in blocks(words.text, max_chars=BLOCK_CHARS)]
            spoken = [
                self._sentences(part, language, lengths) if kind == "espeak" else self._spelt(part, lengths)
                for part in parts
            ]
            yield [sentence for sentences in spoken for sentence in sentences], following is not None
            piece = following

    def words(
        self,
        text: str,
        inlays: Inlays,
        language: str,
        warn: Warn,
        trace: Trace | None = None,
        *,
        by_sound: bool = True,
    ) -> Words:
        """Put one piece of text into words. `by_sound`: whether what is written alike is told apart."""
        tell = trace or _to_nobody
        lexicon = self._front.lexicon()
        text = lexicon.replaced(text, language, inlays.put)
        tell("lexicon", text)
        normalizer = self._normalizer(language)
        if trace is not None:
            for step in normalizer.steps(text):
                tell(step.name, step.text)
        text = normalizer.normalize(text)
        text = lexicon.replaced(text, language, inlays.put)
        tell("lexicon again", text)
        if by_sound:
            text = heteronyms(text, language, lambda written, sense: inlays.put(self._sense(written, sense, language)))
            tell("heteronyms", text)
        text = _known(text, language, warn)
        tell(LAST_STEP, text)
        return self.finished(text, inlays, language, warn)

    def finished(self, text: str, inlays: Inlays, language: str, warn: Warn) -> Words:
        """Put the words of readings into a text that all steps have been through."""

        def expand(item: Reading | Mark) -> str | None:
            if isinstance(item, Mark) or item.ipa:
                return None
            return _known(self._told(item, language, warn), language, warn)

        return Words(without_long_words(inlays.expanded(text, expand)), inlays)

    def clauses(self, words: Words, language: str, end: int | None = None) -> list[Clause]:
        """Phonemize words, up to a place in their text."""
        parts, ipa = [""], []
        done = 0
        text = words.text[:end]
        for token in TOKEN.finditer(text):
            parts[-1] += text[done : token.start()]
            done = token.end()
            item = words.inlays.item(token[0])
            if isinstance(item, Reading):
                ipa.append(for_language(item.ipa, language))
                parts.append("")
        parts[-1] += text[done:]
        return self._splicer.phonemize(parts, ipa, language)

    def _told(self, reading: Reading, language: str, warn: Warn) -> str:
        """Give the words of a reading that is not in IPA."""
        written = reading.words or reading.written
        if reading.say_as:
            said = say_as(written, reading.say_as, reading.form, language)
            if said is not None:
                return said
            warn(f"{excerpt(written)!r} cannot be read as {excerpt(reading.say_as)!r}")
        words = self._normalizer(language).normalize(written)
        # A full stop ends no sentence before a small letter.
        return words[:1].upper() + words[1:] if reading.written[:1].isupper() else words

    def _sense(self, written: str, sense: Sense, language: str) -> Reading:
        sound = sense.ipa or (self._sound(sense.phrase.format(written.lower()), language) if sense.phrase else "")
        return Reading(written, ipa=sound, words="" if sound else sense.words or written, source="heteronym")

    def _sound_in(self, phrase: str, language: str) -> str:
        """Give what the last word of a phrase sounds like."""
        clauses = self._splicer.phonemize([phrase], [], language)
        return clauses[-1].phonemes.split(" ")[-1] if clauses else ""

    def _spelt(self, words: Words, lengths: Lengths) -> list[Sentence]:
        """Give the characters of words, for a voice that takes these."""

        def expand(item: Reading | Mark) -> str | None:
            return item.written if isinstance(item, Reading) else None

        text = words.inlays.expanded(words.text, expand)
        places = [(match.start(), words.inlays.item(match[0])) for match in TOKEN.finditer(text)]
        marks = [(_sounds(text[:place]), item.name) for place, item in places if isinstance(item, Mark)]
        characters = TOKEN.sub("", text)
        return _marked([list(part) for part in blocks(characters, max_chars=lengths.most)], marks)

    def _sentences(self, words: Words, language: str, lengths: Lengths) -> list[Sentence]:
        clauses = self.clauses(words, language)
        sentences = sentences_of(clauses, max_phonemes=lengths.most, long_phonemes=lengths.clause)
        marks: list[tuple[int, str]] = []
        for token in TOKEN.finditer(words.text):
            item = words.inlays.item(token[0])
            if isinstance(item, Mark):
                marks.append((self._sounds_before(words, token.start(), language), item.name))
        return _marked(sentences, marks)

    def _sounds_before(self, words: Words, end: int, language: str) -> int:
        """Count the sounds up to a place: what is before it is phonemized alone, which changes their number hardly."""
        if not any(map(str.isalnum, words.text[end:])) and not TOKEN.search(words.text[end + 1 :]):
            return _AT_THE_END
        if not words.text[:end].strip():
            return 0
        return _sounds("".join(clause.phonemes for clause in self.clauses(words, language, end)))


_AT_THE_END: Final = 1 << 40


def _to_nobody(_name: str, _text: str) -> None:
    pass


def _known(text: str, language: str, warn: Warn) -> str:
    """Leave out what the language has no letters for."""
    text, left_out = without_foreign(text, language)
    for script, word in left_out:
        warn(f"left out {excerpt(word)!r}: the voice knows no {script} script")
    return text


def _sounds(text: str) -> int:
    return sum(map(is_sound, unicodedata.normalize("NFD", text)))


def _marked(sentences: list[list[str]], marks: Sequence[tuple[int, str]]) -> list[Sentence]:
    """Give each mark to the word whose beginning is nearest to as many sounds as come before the mark."""
    if not marks:
        return [Sentence(phonemes) for phonemes in sentences]
    starts: list[tuple[int, int, int]] = []  # sounds before it, sentence, word
    sounds = 0
    ends: list[int] = []
    for number, phonemes in enumerate(sentences):
        inside = False
        word = 0
        for phoneme in phonemes:
            if phoneme == " ":
                inside = False
            elif is_sound(phoneme):
                if not inside:
                    starts.append((sounds, number, word))
                    word += 1
                inside = True
                sounds += 1
        ends.append(word)
    if not starts:
        return [Sentence([], tuple((0, name) for _, name in marks))]
    starts.append((sounds, len(sentences) - 1, ends[-1]))
    found: list[list[tuple[int, str]]] = [[] for _ in sentences]
    for before, name in marks:
        _, sentence, word = min(reversed(starts), key=lambda start: abs(start[0] - before))
        found[sentence].append((word, name))
    return [Sentence(phonemes, tuple(found[number])) for number, phonemes in enumerate(sentences)]

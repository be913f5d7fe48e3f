"""How a text is read, told step by step: for whoever wonders why a word sounds as it does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from engines.spoken import WHOLE
from engines.text.inline import TOKEN, Inlays
from engines.text.ipa import sounds
from engines.text.phonemes import sentences_of
from engines.text.reading import BLOCK_CHARS, LAST_STEP, Reader, Words
from engines.text.script import Mark, Reading, Script
from engines.text.sentences import blocks

_WORD: Final = re.compile(r"\S+")

Source = Literal["espeak", "lexicon", "heteronym", "ssml"]


@dataclass(frozen=True, slots=True)
class Explained:
    """What one step made of a text, what is no text there shown as [written = how it is read]."""

    step: str
    text: str


@dataclass(frozen=True, slots=True)
class Sounding:
    """A word, how it sounds, and who says so."""

    word: str
    phonemes: str
    """Empty where espeak-ng says it in one with the word beside it."""
    source: Source


@dataclass(frozen=True, slots=True)
class Explanation:
    """All of one script."""

    language: str
    steps: tuple[Explained, ...]
    """Those that changed something, the text itself first."""
    words: tuple[Sounding, ...]
    sentences: tuple[str, ...]
    """The phonemes of each, as a voice gets them."""
    warnings: tuple[str, ...]


def explain(reader: Reader, script: Script, language: str) -> Explanation:
    """Read a script in one language, and tell how. Raises what the phonemizer does."""
    steps: list[Explained] = []
    words: list[Sounding] = []
    sentences: list[str] = []
    warnings = dict.fromkeys(script.warnings)

    def warn(text: str) -> None:
        warnings[text] = None

    for passage in script.passages:
        inlays = Inlays()
        for piece in blocks(inlays.text(passage.spans), max_chars=BLOCK_CHARS):
            traced: list[Explained] = [Explained("text", _shown(piece, inlays))]
            last = [piece]

            def trace(
                step: str,
                text: str,
                traced: list[Explained] = traced,
                last: list[str] = last,
                inlays: Inlays = inlays,
            ) -> None:
                if (shown := _shown(text, inlays)) != traced[-1].text:
                    traced.append(Explained(step, shown))
                if step == LAST_STEP:
                    last[0] = text

            whole = reader.words(piece, inlays, language, warn, trace)
            steps += traced
            words += _words(reader, last[0], whole, language)
            clauses = reader.clauses(whole, language)
            sentences += ["".join(sentence) for sentence in sentences_of(clauses, max_phonemes=WHOLE.most)]
    return Explanation(language, tuple(steps), tuple(words), tuple(sentences), tuple(warnings))


def _shown(text: str, inlays: Inlays) -> str:
    def show(match: re.Match[str]) -> str:
        item = inlays.item(match[0])
        if isinstance(item, Mark):
            return f"[mark {item.name}]"
        told = f"/{item.ipa}/" if item.ipa else item.words or item.say_as
        return f"[{item.written} = {told}]"

    return TOKEN.sub(show, text)


def _words(reader: Reader, text: str, whole: Words, language: str) -> list[Sounding]:
    """Give each word of a text its share of the sounds: what comes after as many as the words before it have alone."""
    spoken = _spoken(reader, whole, language)
    middles: list[float] = []
    before = 0
    for word in spoken:
        middles.append(before + sounds(word) / 2)
        before += sounds(word)
    found: list[Sounding] = []
    start = 0
    for match in _WORD.finditer(text):
        part = reader.finished(text[: match.end()], whole.inlays, language, _to_nobody)
        end = sum(map(sounds, _spoken(reader, part, language)))
        phonemes = [word for word, middle in zip(spoken, middles, strict=True) if start <= middle < end]
        start = max(start, end)
        readings = list(whole.inlays.readings(match[0]))
        if readings or any(map(str.isalnum, match[0])):
            found.append(Sounding(_plain(match[0], whole.inlays), " ".join(phonemes), _source(readings)))
    return found


def _spoken(reader: Reader, words: Words, language: str) -> list[str]:
    clauses = reader.clauses(words, language)
    return [word for clause in clauses for word in clause.phonemes.split(" ") if sounds(word)]


def _plain(word: str, inlays: Inlays) -> str:
    def written(match: re.Match[str]) -> str:
        item = inlays.item(match[0])
        return item.written if isinstance(item, Reading) else ""

    return TOKEN.sub(written, word).strip(".,;:!?\"'()")


def _source(readings: Sequence[Reading]) -> Source:
    return readings[0].source if readings else "espeak"


def _to_nobody(_text: str) -> None:
    pass

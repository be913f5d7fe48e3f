"""Written forms on their way through the synthesizer: what is heard."""

from __future__ import annotations

import pytest

from device.memory import HostBufferPool
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.normalize.pipeline import Normalizer
from engines.text.phonemes import Phonemizer, sentences_of
from engines.vits import VitsVoice


@pytest.fixture
def spoken(phonemizer: Phonemizer, tiny: VitsVoice, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whatever espeak-ng is asked for."""
    asked: list[str] = []
    phonemize = phonemizer.phonemize

    def recording(text: str, voice: str) -> object:
        asked.append(text)
        return phonemize(text, voice)

    monkeypatch.setattr(phonemizer, "phonemize", recording)
    return asked


def say(synthesizer: Synthesizer, voice: VitsVoice, text: str) -> Tally:
    tally = Tally()
    for chunk in synthesizer.chunks(Utterance(text, seed=1), voice, tally):
        chunk.release()
    return tally


@pytest.fixture
def pool() -> HostBufferPool:
    return HostBufferPool(buffers=4, capacity=48_000, limit_bytes=2**24)


def test_written_forms_are_spoken_in_words(
    phonemizer: Phonemizer, pool: HostBufferPool, tiny: VitsVoice, spoken: list[str]
) -> None:
    say(Synthesizer(phonemizer, pool), tiny, "<b>It</b> costs $5 😂.")
    assert spoken == ["It costs five dollars."]


def test_each_word_that_is_heard_has_its_mark(phonemizer: Phonemizer, pool: HostBufferPool, tiny: VitsVoice) -> None:
    synthesizer = Synthesizer(phonemizer, pool)
    written, in_words = say(synthesizer, tiny, "room 300 now"), say(synthesizer, tiny, "room three hundred now")
    assert written.words == in_words.words
    assert len(written.words) == 4


def test_the_first_sentence_of_a_long_text_waits_for_its_own_block_only(
    phonemizer: Phonemizer, pool: HostBufferPool, tiny: VitsVoice, spoken: list[str]
) -> None:
    text = "It costs $5 today, on July 4, 2026, at 17:45. " * 200
    chunks = Synthesizer(phonemizer, pool).chunks(Utterance(text, seed=1), tiny, Tally())
    next(chunks).release()
    assert sum(map(len, spoken)) < 2000
    chunks.close()


def test_a_text_without_anything_to_say_makes_no_sound(
    phonemizer: Phonemizer, pool: HostBufferPool, tiny: VitsVoice
) -> None:
    for text in ("", "   ", "...", "🙂", "\u200b", "<br>", "---"):
        assert say(Synthesizer(phonemizer, pool), tiny, text).frames == 0


def test_abbreviations_make_one_sentence(phonemizer: Phonemizer) -> None:
    words = Normalizer("en-us").normalize("Dr. Ode and J. R. Kim left St. Ann at 9:30 a.m. sharp.")
    clauses = phonemizer.phonemize(words, "en-us")
    assert len(sentences_of(clauses, max_phonemes=600)) == 1
    assert [clause.ends_sentence for clause in clauses] == [True]

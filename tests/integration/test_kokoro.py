"""The real Kokoro: understood, as loud as the default voice, heard after its first sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from simulators.kiosk import word_errors, words

from device.format import RATE, Samples
from device.memory import HostBufferPool
from engines.backends import Wanted
from engines.families import load
from engines.kokoro import KokoroVoice
from engines.kokoro_phonemes import KokoroPhonemes
from engines.loudness import measure_loudness
from engines.pack_store import PackStore
from engines.runtime.engine import Feeds
from engines.shelf import Preferences
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.voice import Voice

SENTENCES = (
    "The train to Berlin will leave from platform seven.",
    "Please wait here until the doors are open.",
    "Thank you for your patience.",
)

LANGUAGES = {
    "en-us": "The judge's little chair: how could I know about the boy's measure of oil, water and thyme?",
    "en-gb-x-rp": "The judge's little chair: how could I know about the boy's measure of oil, water and thyme?",
    "es": "El niño llamó a la cigüeña; hoy hay huevos y jamón.",
    "fr": "Un bon vin blanc, oui; la fille de la montagne a peur du feu.",
    "it": "Gli gnocchi, la pizza, lo zero e la scena: ciao, a giovedì.",
    "pt-br": "Não, a mãe da filha comprou muito pão; bom dia, tia.",
    "hi": "नमस्ते, मेरा नाम राम है। छोटा बच्चा ठीक है।",
}

pytestmark = pytest.mark.timeout(600)
"""The first run downloads 90 MB and measures each style."""


@pytest.fixture(scope="module")
def kokoro(kokoro_packs: Path) -> Iterator[KokoroVoice]:
    # In float: which of the two is the quicker depends on the machine.
    with closing(load(PackStore(kokoro_packs).open("kokoro-en-us"), Wanted(precision="fp32"))) as voice:
        assert isinstance(voice, KokoroVoice)
        yield voice


@pytest.fixture(scope="module")
def phonemizer() -> Iterator[Phonemizer]:
    with closing(Phonemizer(timeout_s=60)) as phonemizer:
        yield phonemizer


@pytest.fixture
def synthesizer(phonemizer: Phonemizer) -> Synthesizer:
    return Synthesizer(phonemizer, HostBufferPool(buffers=2, capacity=RATE, limit_bytes=2**22))


def say(synthesizer: Synthesizer, voice: Voice, text: str) -> Samples:
    parts = []
    delivery = Preferences().delivery(voice.info)
    for chunk in synthesizer.chunks(Utterance(text, delivery, seed=1), voice, Tally()):
        parts.append(chunk.samples.copy())
        chunk.release()
    return np.concatenate(parts)


def test_it_is_understood_and_as_loud_as_the_default_voice(
    kokoro: KokoroVoice, synthesizer: Synthesizer, voice_packs: Path
) -> None:
    with closing(load(PackStore(voice_packs).open("en_US-joe-medium"), Wanted())) as default:
        theirs = [say(synthesizer, default, sentence) for sentence in SENTENCES]
    ours = [say(synthesizer, kokoro, sentence) for sentence in SENTENCES]
    loudness, expected = (measure_loudness(np.concatenate(sounds)) for sounds in (ours, theirs))
    assert loudness == pytest.approx(expected, abs=1.5), "each is within 1 LU over twenty sentences"
    said = [sentence.lower().rstrip(".") for sentence in SENTENCES]
    errors = [sum(map(word_errors, said, words(sounds))) for sounds in (ours, theirs)]
    assert errors[0] <= errors[1] + 2


def test_the_first_sound_waits_for_the_first_sentence_only(
    kokoro: KokoroVoice, synthesizer: Synthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[Feeds] = []
    run = kokoro._engine.run

    def counted(feeds: Feeds) -> dict[str, np.ndarray]:
        runs.append(feeds)
        return run(feeds)

    monkeypatch.setattr(kokoro._engine, "run", counted)
    chunks = synthesizer.chunks(Utterance(" ".join(SENTENCES), seed=1), kokoro, Tally())
    next(chunks).release()
    assert len(runs) == 1
    for chunk in chunks:
        chunk.release()
    assert len(runs) == len(SENTENCES)


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_the_model_has_a_sign_for_all_that_is_said(language: str, kokoro: KokoroVoice, phonemizer: Phonemizer) -> None:
    phonemes = KokoroPhonemes(language, kokoro.info.phoneme_ids)
    for clause in phonemizer.phonemize(LANGUAGES[language], language):
        ids, unknown = phonemes.ids(list(clause.phonemes))
        assert ids
        assert set(unknown) <= {"\N{COMBINING VERTICAL LINE BELOW}", "-"}, "syllabic marks, hyphens: no sounds"

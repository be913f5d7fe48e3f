"""A tiny voice, imported, loaded and ready to speak."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from simulators import tiny_voice
from simulators.tensorrt import World

from engines import importer, piper
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.text.phonemes import Phonemizer
from engines.vits import VitsVoice


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The .onnx of a voice with one speaker, its .json beside it."""
    return tiny_voice.write(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny_pack(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return importer.import_voice(piper.find(str(tiny_model)), PackStore(tmp_path_factory.mktemp("packs")))


@pytest.fixture(scope="session")
def tiny(tiny_pack: Pack) -> Iterator[VitsVoice]:
    with closing(VitsVoice.load(tiny_pack, threads=1)) as voice:
        yield voice


@pytest.fixture(scope="session")
def phonemizer() -> Iterator[Phonemizer]:
    with closing(Phonemizer(timeout_s=60)) as phonemizer:
        yield phonemizer


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A machine with a GPU and TensorRT 10.3, as JetPack 6 has it."""
    world = World()
    monkeypatch.setitem(sys.modules, "tensorrt", world.module())
    return world

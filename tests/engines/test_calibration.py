from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engines import calibration
from engines.backends import Wanted, load_voice
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.shelf import Preferences, VoiceShelf
from engines.vits import Delivery, VitsVoice
from engines.windows import Margins, Speed


@pytest.fixture
def pack(tiny_pack: Pack, tmp_path: Path) -> Pack:
    """A copy whose files a test may change."""
    shutil.copytree(tiny_pack.folder.parent, tmp_path / "packs", symlinks=True)
    return PackStore(tmp_path / "packs").get("tiny")


def test_margins_are_what_the_graph_reaches(tiny: VitsVoice) -> None:
    ids = calibration.probe_ids(tiny)
    latents = tiny.latents(ids, Delivery(), tiny.noise(len(ids), np.random.default_rng(0)))
    margins = calibration.measure_margins(tiny, latents)
    assert 1 <= margins.flow_left <= 2, "the tiny voice's flow is one convolution of 5"
    assert 1 <= margins.flow_right <= 2
    assert 3 <= margins.gan_left <= 8
    assert 3 <= margins.gan_right <= 8


def test_more_frames_take_longer(tiny: VitsVoice) -> None:
    speed = calibration.measure_speed(tiny.vocoder, tiny.info)
    assert speed.frame_s > 0
    assert speed.overhead_s >= 0


def test_a_speed_is_kept_for_this_device_only(pack: Pack) -> None:
    calibration.keep_speed(pack, "this", Speed(0.1, 0.2))
    assert calibration.known_speed(pack, "this") == Speed(0.1, 0.2)
    assert calibration.known_speed(pack, "another") is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        '{"device": "this"}',
        '{"device": "this", "overhead_s": 0, "frame_s": 0}',
        '{"device": "this", "overhead_s": 1e308, "frame_s": 0.001}',
        '{"device": "this", "overhead_s": 0, "frame_s": Infinity}',
        '{"device": "this", "overhead_s": NaN, "frame_s": 0.001}',
    ],
)
def test_a_spoilt_speed_is_unknown(pack: Pack, content: str) -> None:
    (pack.folder / calibration.SPEED_FILE).write_text(content)
    assert calibration.known_speed(pack, "this") is None


def test_loading_measures_what_is_not_known_and_keeps_it(pack: Pack) -> None:
    path = pack.folder / calibration.SPEED_FILE
    path.unlink()
    with closing(load_voice(pack, Wanted(threads=1))) as voice:
        stored = json.loads(path.read_text())
        assert voice.speed == Speed(stored["overhead_s"], stored["frame_s"])
        assert "1 threads" in stored["device"]


def test_loading_trusts_what_is_known(pack: Pack) -> None:
    shelf = VoiceShelf(PackStore(pack.folder.parent), Preferences(engine=Wanted(threads=1)))
    device = calibration.device_name(shelf.get().vocoder, 1)
    calibration.keep_speed(pack, device, Speed(0.5, 0.25))
    with closing(load_voice(pack, Wanted(threads=1))) as voice:
        assert voice.speed == Speed(0.5, 0.25)


def test_calibrating_measures_both_anew(pack: Pack) -> None:
    store = PackStore(pack.folder.parent)
    measured = pack.info.margins
    store.amend(pack, pack.info.model_copy(update={"margins": Margins(1, 1, 1, 1)}))
    (pack.folder / calibration.SPEED_FILE).write_text("{}")
    margins, speed = calibration.calibrate(store, "tiny", threads=1)
    assert margins == measured
    assert store.get("tiny").info.margins == measured
    with closing(load_voice(store.get("tiny"), Wanted(threads=1))) as voice:
        assert voice.speed == speed
    assert not [path for path in pack.folder.iterdir() if path.suffix not in {".json", ".onnx"}]


def test_the_import_has_measured(tiny_pack: Pack) -> None:
    assert tiny_pack.info.margins != Margins(40, 40, 24, 24)
    assert (tiny_pack.folder / calibration.SPEED_FILE).is_file()

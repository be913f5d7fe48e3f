"""Styles, blends and speakers asked of a daemon, whose voices have next to no weights."""

from __future__ import annotations

import base64
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from simulators import tiny_kokoro, tiny_voice
from simulators.broker import Mosquitto
from simulators.controller import Controller, Payload
from simulators.daemon_process import DaemonProcess

from engines import importer, piper
from engines.kokoro_import import KokoroSource, import_kokoro
from engines.pack import PackStore

NUMBERS = count()
STYLES = ["loud = af_one gain=2", "quick = am_two rate=2", "mood = speaker_1 voice=tiny"]


@dataclass(frozen=True)
class Stage:
    controller: Controller
    folder: Path


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("styles")
    store = PackStore(folder / "packs")
    styles = {"af_one": tiny_kokoro.style(1), "am_two": tiny_kokoro.style(2)}
    import_kokoro(KokoroSource(tiny_kokoro.model(), tiny_kokoro.VOCABULARY, styles, {}), store, list(styles))
    importer.import_voice(piper.find(str(tiny_voice.write(folder, speakers=2))), store)
    settings = {
        "voice": {"default": "kokoro-en-us", "seed": 1, "preload": ["nobody", "tiny"]},
        "styles": {"named": STYLES},
    }
    with (
        Mosquitto() as broker,
        Controller(broker.port) as controller,
        DaemonProcess(folder, broker.port, packs=store.folder, settings=settings) as daemon,
    ):
        controller.wait_for_status("online")
        yield Stage(controller, folder)
        assert daemon.running


def speak(stage: Stage, **fields: object) -> list[Payload]:
    return stage.controller.speak({"id": f"command-{next(NUMBERS)}", "text": "Hello, all of you.", **fields})


def sound(stage: Stage, **fields: object) -> np.ndarray:
    finished = speak(stage, output="file", **fields)[-1]
    assert finished["event"] == "finished", finished
    with wave.open(str(stage.folder / "renders" / finished["location"]), "rb") as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float64)


def vector(number: float) -> str:
    return base64.b64encode(np.full(256, number, "<f2").tobytes()).decode()


def test_a_blend_of_all_and_nothing_is_the_pure_style(stage: Stage) -> None:
    pure = sound(stage, style="am_two")
    np.testing.assert_array_equal(sound(stage, style="am_two:1+af_one:0"), pure)
    np.testing.assert_array_equal(sound(stage, speaker="am_two"), pure)
    half = sound(stage, style="am_two+af_one")
    assert half.size != pure.size or np.abs(half - pure).max() > 100


def test_named_styles_have_their_rate_and_voice(stage: Stage) -> None:
    assert sound(stage, style="quick").size < 0.8 * sound(stage, style="am_two").size
    events = speak(stage, style="mood")
    assert [event["voice"] for event in events if event["event"] == "synthesized"] == ["tiny"]
    np.testing.assert_array_equal(sound(stage, style="mood"), sound(stage, voice="tiny", speaker=1))


def test_a_vector_is_spoken(stage: Stage) -> None:
    assert sound(stage, style_vector=vector(0.1)).size > 10_000


@pytest.mark.parametrize(
    ("fields", "event", "code"),
    [
        ({"style": "nobody"}, "failed", "style"),
        ({"style": "af_one+nobody"}, "failed", "style"),
        ({"style": "speaker_0+speaker_1", "voice": "tiny"}, "failed", "style"),
        ({"style_vector": vector(0.1), "voice": "tiny"}, "failed", "style"),
        ({"speaker": "nobody"}, "failed", "speaker"),
        ({"speaker": 7, "voice": "tiny"}, "failed", "speaker"),
        ({"style": "a:b:c"}, "rejected", "style"),
        ({"style_vector": vector(float("nan"))}, "rejected", "style"),
        ({"style_vector": vector(9999)}, "rejected", "style"),
        ({"style_vector": vector(0.1)[:-8]}, "rejected", "style"),
        ({"style_vector": vector(0.1), "style": "loud"}, "rejected", "style"),
    ],
)
def test_what_is_no_style_is_refused_with_a_code(
    fields: dict[str, object], event: str, code: str, stage: Stage
) -> None:
    last = speak(stage, **fields)[-1]
    assert (last["event"], last["code"]) == (event, code)
    assert last["reason"]


def test_a_session_keeps_its_style_until_told_otherwise(stage: Stage) -> None:
    usual, other = sound(stage), sound(stage, style="am_two")
    assert usual.size != other.size or np.abs(usual - other).max() > 100
    np.testing.assert_array_equal(sound(stage, session="s", style="am_two"), other)
    np.testing.assert_array_equal(sound(stage, session="s"), other)
    np.testing.assert_array_equal(sound(stage, session="another"), usual)
    np.testing.assert_array_equal(sound(stage, session="s", style=""), usual)
    np.testing.assert_array_equal(sound(stage, session="s"), usual)


def test_a_voice_that_fails_is_told_and_the_usual_one_speaks(stage: Stage) -> None:
    packs = PackStore(stage.folder / "packs")
    importer.import_voice(piper.find(str(tiny_voice.write(stage.folder, "broken"))), packs)
    (packs.folder / "broken" / "vocoder.onnx").write_bytes(b"x")
    events = {event["event"]: event for event in speak(stage, voice="broken")}
    assert events["finished"]
    assert events["synthesized"]["voice"] == "kokoro-en-us"
    assert "has changed since its import" in events["synthesized"]["warnings"][0]


def test_loading_a_voice_is_told_once(stage: Stage) -> None:
    importer.import_voice(piper.find(str(tiny_voice.write(stage.folder, "late"))), PackStore(stage.folder / "packs"))
    first, second = (
        next(event for event in speak(stage, voice="late") if event["event"] == "synthesized") for _ in range(2)
    )
    assert first["load_ms"] > 0
    assert second.get("load_ms") is None

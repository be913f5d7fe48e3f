"""Styles, blends and speakers asked of a daemon, whose voices have next to no weights."""

from __future__ import annotations

import base64
import json
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import paho.mqtt.subscribe
import pytest
from simulators import tiny_kokoro, tiny_voice
from simulators.broker import Mosquitto
from simulators.controller import Controller, Payload
from simulators.daemon_process import DaemonProcess

from device.format import RATE
from engines import importer, piper
from engines.kokoro_import import KokoroSource, import_kokoro
from engines.pack_store import PackStore

NUMBERS = count()
STYLES = [
    "loud = af_one gain=2",
    "quick = am_two rate=2",
    "mood = speaker_1 voice=tiny",
    "slow = sentence_gap_ms=400 paragraph_gap_ms=1000",
]
VOICES = ("kokoro-en-us", "tiny")
TURNS = 50
TEXT = "Hello, all of you."
TWO = "Hello, all of you. Good evening."


@dataclass(frozen=True)
class Stage:
    controller: Controller
    folder: Path
    daemon: DaemonProcess
    port: int


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
        "memory": {"voices_limit_mb": 1},  # less than the styles of the one take: never both
        "telemetry": {"interval_s": 1},
    }
    with (
        Mosquitto() as broker,
        Controller(broker.port) as controller,
        DaemonProcess(folder, broker.port, packs=store.folder, settings=settings) as daemon,
    ):
        controller.wait_for_status("online")
        yield Stage(controller, folder, daemon, broker.port)
        assert daemon.running


def speak(stage: Stage, **fields: object) -> list[Payload]:
    given = {"text": TEXT} if "ssml" not in fields else {}
    return stage.controller.speak({"id": f"command-{next(NUMBERS)}", **given, **fields})


def sound(stage: Stage, **fields: object) -> np.ndarray:
    finished = speak(stage, output="file", **fields)[-1]
    assert finished["event"] == "finished", finished
    with wave.open(str(stage.folder / "renders" / finished["location"]), "rb") as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float64)


def inside(element: str, text: str) -> str:
    return f"<speak>{element}{text}</{element[1:].split(maxsplit=1)[0]}></speak>"


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


def test_named_styles_have_their_pauses(stage: Stage) -> None:
    usual = sound(stage, text=TWO).size
    assert sound(stage, text=TWO, style="slow").size == usual + round(0.4 * RATE)
    assert sound(stage, text=TWO.replace(". ", ".\n\n"), style="slow").size == usual + RATE


def test_a_voice_element_has_its_style(stage: Stage) -> None:
    for style in ("am_two", "am_two:0.4+af_one:0.6", "mood", "quick"):
        whole = sound(stage, style=style)
        np.testing.assert_array_equal(sound(stage, ssml=inside(f'<voice style="{style}">', TEXT)), whole)
    named = inside('<voice name="tiny" style="speaker_1">', TEXT)
    np.testing.assert_array_equal(sound(stage, ssml=named), sound(stage, style="mood"))
    # The session speaks on as it did.
    ssml = inside('<voice style="quick">', TEXT)
    sound(stage, ssml=ssml, session="inner", style="af_one")
    np.testing.assert_array_equal(sound(stage, session="inner"), sound(stage, style="af_one"))


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
        ({"ssml": inside('<voice style="nobody">', TEXT)}, "failed", "style"),
        ({"ssml": inside('<voice name="tiny" style="speaker_0+speaker_1">', TEXT)}, "failed", "style"),
        ({"ssml": inside('<voice style="a:b:c">', TEXT)}, "rejected", "style"),
        ({"language": "ja", "text": "こんにちは"}, "failed", "voice"),
        ({"language": "zh"}, "failed", "voice"),
    ],
)
def test_what_is_no_style_is_refused_with_a_code(
    fields: dict[str, object], event: str, code: str, stage: Stage
) -> None:
    events = speak(stage, **fields)
    assert (events[-1]["event"], events[-1]["code"]) == (event, code)
    assert events[-1]["reason"]
    assert "started" not in {event["event"] for event in events}


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
    finished = speak(stage, voice="broken", output="file")[-1]
    assert finished["event"] == "finished"
    assert "has changed since its import" in finished["warnings"][0]


def test_what_a_voice_can_do_is_told(stage: Stage) -> None:
    stage.controller.publish({"request": "which"}, command="voices/get")
    stage.controller.wait_until(lambda: any(event.get("request") == "which" for event in stage.controller.events), "")
    (answer,) = (event for event in stage.controller.events if event.get("request") == "which")
    told = {voice["name"]: voice for voice in answer["voices"]}
    assert told["kokoro-en-us"] == {
        "name": "kokoro-en-us",
        "language": "en-us",
        "speakers": ["af_one", "am_two"],
        "family": "kokoro",
        "streaming": False,
        "styles": True,
    }
    assert (told["tiny"]["family"], told["tiny"]["streaming"], told["tiny"]["styles"]) == ("vits", True, False)


def test_loading_a_voice_is_told_once(stage: Stage) -> None:
    importer.import_voice(piper.find(str(tiny_voice.write(stage.folder, "late"))), PackStore(stage.folder / "packs"))
    first, second = (
        next(event for event in speak(stage, voice="late") if event["event"] == "synthesized") for _ in range(2)
    )
    assert first["load_ms"] > 0
    assert second.get("load_ms") is None


def test_two_voices_in_the_memory_of_one_take_turns_without_a_failure(stage: Stage) -> None:
    commands = [
        {"id": f"turn-{number}", "text": "Ha.", "voice": VOICES[number % 2], "cache": False, "rate": 2.0}
        for number in range(TURNS)
    ]
    before = loads(stage)
    early = stage.daemon.resident_mb
    stage.controller.publish_all([json.dumps(command) for command in commands])
    stories = [
        {event["event"]: event for event in stage.controller.wait_for_final(command["id"], 60)} for command in commands
    ]
    assert [story["synthesized"]["voice"] for story in stories] == [command["voice"] for command in commands]
    # Who speaks is never cut off by the loading of the next.
    for number in (0, 1):
        lengths = {story["finished"]["audio_s"] for story in stories[number::2]}
        assert len(lengths) == 1
        assert lengths.pop() > 0
    gaps = [story["synthesized"].get("load_ms") for story in stories]
    assert all(gap is not None and gap > 0 for gap in gaps[1:]), "each is told how long its voice took to load"
    assert stage.daemon.resident_mb - early < 50, "of 25 of each, none stays"
    after = loads(stage)
    for name in VOICES:
        assert after[name]["loads"] - before.get(name, {"loads": 0})["loads"] >= TURNS // 2 - 1
        assert after[name]["releases"] >= TURNS // 2 - 1
        assert after[name]["load_s"] > 0
    assert [after[name]["loaded"] for name in VOICES] == [False, True]


def loads(stage: Stage) -> dict[str, dict[str, object]]:
    """Give what telemetry says of the voices from now on: the first message may be an older one, kept."""
    _, message = paho.mqtt.subscribe.simple(
        "speakd/bench/telemetry", hostname="127.0.0.1", port=stage.port, msg_count=2
    )
    return json.loads(message.payload)["voices"]

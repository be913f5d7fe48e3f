"""A Rhasspy satellite: it asks in Hermes only, and knows nothing of our topics."""

from __future__ import annotations

import io
import itertools
import json
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from simulators.broker import Broker, Mosquitto
from simulators.controller import Payload
from simulators.daemon_process import DaemonProcess
from simulators.ear import Ear, Heard

SITE = "kitchen"
LONG = "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve."
NUMBERS = itertools.count()
PLAYED = f"hermes/audioServer/{SITE}/playFinished"


def wav(seconds: float, *, rate: int = 16_000) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        tone = 8_000 * np.sin(2 * np.pi * 440 * np.arange(int(seconds * rate)) / rate)
        writer.writeframes(tone.astype("<i2").tobytes())
    return file.getvalue()


class Rhasspy:
    """What a dialogue manager does, and what it hears."""

    def __init__(self, ear: Ear) -> None:
        self.ear = ear

    def say(self, **fields: object) -> str:
        request = f"say-{next(NUMBERS)}"
        self.ear.publish("hermes/tts/say", json.dumps({"siteId": SITE, "id": request, **fields}))
        return request

    def play(self, sound: bytes, request: str | None = None) -> str:
        request = request or f"play-{next(NUMBERS)}"
        self.ear.publish(f"hermes/audioServer/{SITE}/playBytes/{request}", sound)
        return request

    def answers(self, topic: str, request: str) -> list[Payload]:
        key = "context" if "error" in topic else "id"
        return [p for p in (json.loads(one.payload) for one in self.ear.on(topic)) if p.get(key) == request]

    def wait(self, topic: str, request: str) -> Payload:
        self.ear.wait_for(topic, lambda _: self.answers(topic, request))
        return self.answers(topic, request)[0]


def event_since(ear: Ear, before: int, kind: str) -> Heard:
    """Give the first event of a kind after so many messages. It comes by another connection than Hermes does."""

    def found() -> list[Heard]:
        return [
            one for one in ear.heard[before:] if one.topic.endswith("/event") and f'"{kind}"'.encode() in one.payload
        ]

    ear.wait_for("speakd/bench/event", lambda _: found())
    return found()[0]


SETTINGS = {"hermes": {"enabled": True, "site_ids": [SITE, "garden"], "max_wav_mb": 1}}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Mosquitto() as broker:
        yield broker


@pytest.fixture(scope="module")
def ear(broker: Broker) -> Iterator[Ear]:
    with Ear(broker.port, "hermes/#", "rhasspy/#", "speakd/bench/#") as ear:
        yield ear


@pytest.fixture(scope="module")
def running(
    broker: Broker, ear: Ear, tmp_path_factory: pytest.TempPathFactory, voice_packs: Path
) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("hermes")
    with DaemonProcess(folder, broker.port, packs=voice_packs, settings=SETTINGS) as daemon:
        ear.wait_for("speakd/bench/status", lambda payload: b'"online"' in payload)
        # The line of the bridge is another one: it answers once it is there.
        while not ear.on("rhasspy/tts/voices"):
            ear.publish("rhasspy/tts/getVoices", json.dumps({"siteId": SITE}))
            try:
                ear.wait_for("rhasspy/tts/voices", timeout_s=0.5)
            except AssertionError:
                continue
        yield daemon
        assert daemon.running


@pytest.fixture
def rhasspy(running: DaemonProcess, ear: Ear) -> Rhasspy:
    return Rhasspy(ear)


def test_what_was_said_is_finished_once_and_after_its_end(rhasspy: Rhasspy, ear: Ear) -> None:
    before = len(ear.heard)
    request = rhasspy.say(text="One, two, three, four.", sessionId="dialogue-1")
    answer = rhasspy.wait("hermes/tts/sayFinished", request)
    assert answer == {"siteId": SITE, "id": request, "sessionId": "dialogue-1"}
    finished = event_since(ear, before, "finished")
    audio_s = json.loads(finished.payload)["audio_s"]
    assert audio_s > 0.8
    told = next(one for one in ear.on("hermes/tts/sayFinished") if request.encode() in one.payload)
    assert told.at - event_since(ear, before, "started").at >= audio_s * 0.9
    rhasspy.wait("hermes/tts/sayFinished", rhasspy.say(text="Yes."))
    assert len(rhasspy.answers("hermes/tts/sayFinished", request)) == 1
    assert not rhasspy.answers("hermes/error/tts", request)


def test_without_an_id_the_answer_has_none(rhasspy: Rhasspy, ear: Ear) -> None:
    before = len(ear.on("hermes/tts/sayFinished"))
    ear.publish("hermes/tts/say", json.dumps({"text": "Yes.", "siteId": "garden", "lang": "en_US", "volume": 0.5}))
    ear.wait_for("hermes/tts/sayFinished", lambda _: len(ear.on("hermes/tts/sayFinished")) > before)
    answer = json.loads(ear.on("hermes/tts/sayFinished")[-1].payload)
    assert answer == {"siteId": "garden", "id": None, "sessionId": None}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"text": "Ciao!", "lang": "it_IT"}, "it-it"),
        ({"text": 42}, "text"),
        ({}, "text"),
        ({"text": "Yes.", "volume": -1}, "volume"),
        ({"text": "x" * 5000}, "5000 characters"),
    ],
)
def test_what_cannot_be_said_is_one_error_and_nothing_else(
    rhasspy: Rhasspy, fields: dict[str, object], complaint: str
) -> None:
    request = f"say-{next(NUMBERS)}"
    before = len(rhasspy.ear.on("hermes/error/tts"))
    rhasspy.ear.publish("hermes/tts/say", json.dumps({"siteId": SITE, "id": request, "sessionId": "s", **fields}))
    rhasspy.ear.wait_for("hermes/error/tts", lambda _: len(rhasspy.ear.on("hermes/error/tts")) > before)
    error = json.loads(rhasspy.ear.on("hermes/error/tts")[-1].payload)
    assert error.keys() == {"error", "siteId", "context", "sessionId"}
    assert complaint in error["error"]
    assert error["siteId"] == SITE
    rhasspy.wait("hermes/tts/sayFinished", rhasspy.say(text="Yes."))
    assert not rhasspy.answers("hermes/tts/sayFinished", request)


def test_other_sites_and_what_is_no_json_concern_others(rhasspy: Rhasspy, ear: Ear) -> None:
    before = len(ear.heard)
    ear.publish("hermes/tts/say", json.dumps({"text": "Nobody hears this.", "siteId": "cellar", "id": "cellar-1"}))
    ear.publish("hermes/tts/say", json.dumps({"text": "Nor this.", "id": "default-1"}))
    ear.publish("hermes/tts/say", b"\xff\xfe no JSON")
    ear.publish("hermes/audioServer/cellar/playBytes/x", wav(0.1))
    request = rhasspy.say(text="Yes.")
    rhasspy.wait("hermes/tts/sayFinished", request)
    event_since(ear, before, "finished")
    accepted = [one for one in ear.heard[before:] if b'"accepted"' in one.payload]
    assert len(accepted) == 1
    assert not [one for one in ear.heard[before:] if "error" in one.topic]


def test_a_retained_message_is_refused(rhasspy: Rhasspy, ear: Ear) -> None:
    ear.publish("hermes/tts/say", json.dumps({"siteId": SITE, "text": "Again.", "id": "kept"}), retain=True)
    ear.wait_for("hermes/error/tts", lambda payload: b"retained" in payload)
    ear.publish("hermes/tts/say", b"", retain=True)


@pytest.mark.parametrize("rate", [16_000, 48_000])
def test_a_sound_is_played_to_its_end(rhasspy: Rhasspy, ear: Ear, rate: int) -> None:
    before = len(ear.heard)
    request = rhasspy.play(wav(0.6, rate=rate))
    answer = rhasspy.wait(PLAYED, request)
    assert answer == {"id": request, "sessionId": None}
    finished = json.loads(event_since(ear, before, "finished").payload)
    assert finished["audio_s"] == pytest.approx(0.6, abs=0.01)
    assert finished["total_ms"] >= 500
    assert len(rhasspy.answers(PLAYED, request)) == 1


def test_the_same_request_again_is_played_again(rhasspy: Rhasspy) -> None:
    for times in (1, 2):
        rhasspy.play(wav(0.1), "ding")
        rhasspy.ear.wait_for(PLAYED, lambda _, times=times: len(rhasspy.answers(PLAYED, "ding")) == times)


def test_sounds_and_texts_are_heard_in_the_order_in_which_they_came(rhasspy: Rhasspy, ear: Ear) -> None:
    first = rhasspy.say(text="One, two, three.")
    second = rhasspy.play(wav(0.2))
    third = rhasspy.say(text="Yes.")
    rhasspy.wait("hermes/tts/sayFinished", third)
    order = [json.loads(one.payload).get("id") for one in ear.heard if one.topic.endswith("Finished")]
    assert order[-3:] == [first, second, third]


@pytest.mark.parametrize(
    ("sound", "complaint"),
    [
        (b"<!DOCTYPE html><html>404</html>", "no WAV file"),
        (b"", "no WAV file"),
        (wav(40), "bytes"),
    ],
)
def test_what_is_no_sound_is_one_error_and_nothing_else(rhasspy: Rhasspy, sound: bytes, complaint: str) -> None:
    request = rhasspy.play(sound)
    error = rhasspy.wait("hermes/error/audioServer/play", request)
    assert complaint in error["error"]
    rhasspy.wait(PLAYED, rhasspy.play(wav(0.1)))
    assert not rhasspy.answers(PLAYED, request)


def test_volume_and_silence(rhasspy: Rhasspy, ear: Ear) -> None:
    settings = "speakd/bench/settings"
    ear.publish("rhasspy/audioServer/setVolume", json.dumps({"volume": 0.25, "siteId": SITE}))
    ear.wait_for(settings, lambda payload: json.loads(payload)["volume"] == 0.25)
    ear.publish("hermes/audioServer/toggleOff", json.dumps({"siteId": SITE}))
    ear.wait_for(settings, lambda payload: json.loads(payload)["muted"])
    request = rhasspy.say(text="Yes.")
    rhasspy.wait("hermes/tts/sayFinished", request)
    ear.publish("hermes/audioServer/toggleOn", json.dumps({"siteId": SITE}))
    ear.wait_for(settings, lambda _: not json.loads(ear.on(settings)[-1].payload)["muted"])
    ear.publish("rhasspy/audioServer/setVolume", json.dumps({"volume": 7, "siteId": SITE}))
    ear.wait_for("hermes/error/audioServer/play", lambda payload: b"volume" in payload)


@pytest.mark.parametrize("prefix", ["rhasspy", "hermes"])
def test_voices(rhasspy: Rhasspy, ear: Ear, prefix: str) -> None:
    request = f"voices-{next(NUMBERS)}"
    ear.publish(f"{prefix}/tts/getVoices", json.dumps({"id": request, "siteId": SITE}))
    topic = f"{prefix}/tts/voices"
    ear.wait_for(topic, lambda payload: request.encode() in payload)
    answer = rhasspy.answers(topic, request)[0]
    assert answer["siteId"] == SITE
    assert {"voiceId": "en_US-joe-medium", "description": "en-us"} in answer["voices"]


def test_somebody_who_cancels_ends_the_dialogues_wait(rhasspy: Rhasspy, ear: Ear) -> None:
    before = len(ear.heard)
    request = rhasspy.say(text=LONG, sessionId="long")
    event_since(ear, before, "started")
    ear.publish("speakd/bench/cancel", json.dumps({"session": "long"}))
    rhasspy.wait("hermes/tts/sayFinished", request)
    assert not rhasspy.answers("hermes/error/tts", request)


def test_what_is_said_when_the_daemon_stops_ends_with_an_error(
    tmp_path: Path, voice_packs: Path, broker: Broker, ear: Ear
) -> None:
    settings = {**SETTINGS, "device": {"name": "third"}, "hermes": {**SETTINGS["hermes"], "site_ids": ["loft"]}}
    with Ear(broker.port, "speakd/third/#") as other:
        with DaemonProcess(tmp_path, broker.port, packs=voice_packs, settings=settings) as daemon:
            other.wait_for("speakd/third/status", lambda payload: b'"online"' in payload)
            say_until_heard(ear, other, "speakd/third/event", "loft", "interrupted")
            daemon.terminate()
            assert daemon.wait() == 0
        error = ear.wait_for("hermes/error/tts", lambda payload: b'"interrupted"' in payload)
        assert "stopped" in json.loads(error.payload)["error"]


def say_until_heard(ear: Ear, other: Ear, events: str, site: str, request: str) -> None:
    """Say something long; again where the bridge's line was not there yet."""
    while not other.on(events):
        ear.publish("hermes/tts/say", json.dumps({"text": LONG, "siteId": site, "id": request}))
        try:
            other.wait_for(events, lambda payload: b'"started"' in payload, timeout_s=1)
        except AssertionError:
            continue


def test_a_crash_ends_what_was_said_with_an_error(tmp_path: Path, voice_packs: Path, broker: Broker, ear: Ear) -> None:
    settings = {**SETTINGS, "device": {"name": "other"}, "hermes": {**SETTINGS["hermes"], "site_ids": ["attic"]}}
    with Ear(broker.port, "speakd/other/#") as other:
        with DaemonProcess(tmp_path, broker.port, packs=voice_packs, settings=settings) as daemon:
            other.wait_for("speakd/other/status", lambda payload: b'"online"' in payload)
            say_until_heard(ear, other, "speakd/other/event", "attic", "lost")
            ear.publish("hermes/audioServer/attic/playBytes/ding", wav(0.5))
            # What was said above may have been said twice, while the daemon was getting ready.
            other.wait_for(
                "speakd/other/event", lambda payload: b'"accepted"' in payload and b'"ahead":0' not in payload
            )
            daemon.kill()
            daemon.wait()
        with DaemonProcess(tmp_path, broker.port, packs=voice_packs, settings=settings):
            lost = ear.wait_for("hermes/error/tts", lambda payload: b'"lost"' in payload)
            assert "went down" in json.loads(lost.payload)["error"]
            ear.wait_for("hermes/error/audioServer/play", lambda payload: b'"ding"' in payload)

"""The Hermes bridge without a broker: what it makes of messages, and whom it answers."""

from __future__ import annotations

import io
import json
import wave
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.bridges import hermes_messages as messages
from daemon.bridges.hermes import Hermes
from daemon.commands import MuteSet, VoicesGet, VolumeSet
from daemon.config import Config
from daemon.errors import PayloadError
from daemon.events import (
    Accepted,
    Cancelled,
    Event,
    Expired,
    Failed,
    Finished,
    Rejected,
    Started,
    Superseded,
    Voices,
    Word,
)
from daemon.inbox import ControlReceived, Inbox, Origin, PayloadRefused, SpeakReceived
from daemon.mqtt_types import Received

CONFIG = Config.model_validate({"hermes": {"enabled": True, "site_ids": ["default", "kitchen"]}})


class Bench:
    def __init__(self) -> None:
        self.posted: list[Inbox] = []
        self.acknowledged = 0
        self.published: list[tuple[str, dict[str, Any]]] = []
        self.hermes = Hermes(CONFIG, self.posted.append)
        self.hermes._line.publish = self.publish  # type: ignore[method-assign]

    def publish(self, topic: str, payload: str, *, retain: bool = False) -> int:
        assert not retain
        self.published.append((topic, json.loads(payload)))
        return 1

    def acknowledge(self) -> None:
        self.acknowledged += 1

    def receive(self, topic: str, payload: object, *, retained: bool = False) -> Inbox | None:
        """Have a message come; gives what was posted for it, whose acknowledgement it carries."""
        before = len(self.posted), self.acknowledged
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.hermes.received(Received(topic, data, retained, self.acknowledge))
        posted = self.posted[before[0] :]
        for message in posted:
            assert isinstance(message, SpeakReceived | ControlReceived | PayloadRefused)
            message.acknowledge()
        assert self.acknowledged == before[1] + 1
        assert len(posted) <= 1
        return posted[0] if posted else None


@pytest.fixture
def bench() -> Bench:
    return Bench()


def wav(seconds: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(1)
        writer.setframerate(8_000)
        writer.writeframes(bytes(seconds * 8_000))
    return file.getvalue()


def spoken(message: Inbox | None) -> SpeakReceived:
    assert isinstance(message, SpeakReceived)
    return message


PLAY = "hermes/audioServer/kitchen/playBytes/r1"
SAY = {"text": "Hello.", "siteId": "kitchen", "id": "s1", "sessionId": "d1", "lang": "de_DE", "volume": 0.5}


def test_a_text_becomes_a_command(bench: Bench) -> None:
    command = spoken(bench.receive(messages.SAY, {**SAY, "customData": "unknown fields are passed over"})).command
    assert (command.text, command.language, command.session, command.volume) == ("Hello.", "de-de", "d1", 0.5)
    again = spoken(bench.receive(messages.SAY, SAY)).command
    assert command.id != again.id  # the same request again is another one
    bare = spoken(bench.receive(messages.SAY, {"text": "Hello.", "sessionId": "", "lang": None})).command
    assert (bare.language, bare.session, bare.volume) == (None, None, 1.0)


FINISHED_SAY = (messages.SAY_FINISHED, {"siteId": "kitchen", "id": "s1", "sessionId": "d1"})


def error_of(reason: str) -> tuple[str, dict[str, Any]]:
    return messages.TTS_ERROR, {"error": reason, "siteId": "kitchen", "context": "s1", "sessionId": "d1"}


@pytest.mark.parametrize(
    ("event", "answer"),
    [
        (Accepted(id="a", ahead=0), None),
        (Started(id="a", ttfa_ms=1, output="null"), None),
        (Word(id="a", index=0, at_s=0), None),
        (Finished(id="a", audio_s=1, total_ms=1), FINISHED_SAY),
        (Cancelled(id="a", by="x"), FINISHED_SAY),
        (Superseded(id="a", by="x"), FINISHED_SAY),
        (Failed(id="a", code="audio", reason="no card"), error_of("no card")),
        (Rejected(id="a", code="rate", reason="too many"), error_of("too many")),
        (Expired(id="a", waited_s=1), error_of("it was not begun in time")),
    ],
    ids=lambda value: getattr(value, "event", ""),
)
def test_each_end_has_one_answer(bench: Bench, event: Event, answer: tuple[str, dict[str, Any]] | None) -> None:
    message = spoken(bench.receive(messages.SAY, SAY))
    bench.hermes.told(event, message.origin)
    bench.hermes.told(event, Origin())  # somebody else's
    assert bench.published == ([] if answer is None else [answer])


def test_a_sound_is_answered_at_its_site(bench: Bench) -> None:
    message = spoken(bench.receive(PLAY, wav(1)))
    assert message.clip is not None
    assert message.clip.size == 48_000
    bench.hermes.told(Finished(id=message.command.id, audio_s=1, total_ms=1), message.origin)
    bench.hermes.told(Failed(id=message.command.id, code="audio", reason="no card"), message.origin)
    assert bench.published == [
        ("hermes/audioServer/kitchen/playFinished", {"id": "r1", "sessionId": None}),
        (messages.PLAY_ERROR, {"error": "no card", "siteId": "kitchen", "context": "r1", "sessionId": None}),
    ]


def test_sounds_that_wait_are_bounded_until_one_has_ended(bench: Bench) -> None:
    first = spoken(bench.receive(PLAY, wav(120)))
    spoken(bench.receive(PLAY, wav(120)))
    refused = bench.receive(PLAY, wav(1))
    assert isinstance(refused, PayloadRefused)
    assert refused.error.code == "queue_full"
    bench.hermes.told(Cancelled(id=first.command.id, by="x"), first.origin)
    spoken(bench.receive(PLAY, wav(1)))


def test_controls(bench: Bench) -> None:
    found = [
        bench.receive(messages.TOGGLE_OFF, {"siteId": "kitchen"}),
        bench.receive(messages.TOGGLE_ON, b""),
        bench.receive(messages.SET_VOLUME[0], {"volume": 1, "siteId": "default"}),
        bench.receive(messages.GET_VOICES[0], {"id": "v1"}),
    ]
    commands = [message.command for message in found if isinstance(message, ControlReceived)]
    off, on, volume, voices = commands
    assert isinstance(off, MuteSet)
    assert isinstance(on, MuteSet)
    assert (off.muted, on.muted) == (True, False)
    assert isinstance(volume, VolumeSet)
    assert volume.volume == 1.0
    assert isinstance(voices, VoicesGet)
    assert isinstance(found[3], ControlReceived)
    bench.hermes.told(Voices(request="r", voices=()), found[3].origin)
    assert bench.published == [("rhasspy/tts/voices", {"voices": [], "id": "v1", "siteId": "default"})]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("text", "siteId", "id", "sessionId", "lang", "volume", "voices"), JSON)
)
TOPICS = st.sampled_from(
    [
        messages.SAY,
        PLAY,
        messages.TOGGLE_OFF,
        *messages.SET_VOLUME,
        *messages.GET_VOICES,
        "hermes/audioServer//playBytes/",
        "hermes/audioServer/a/b/playBytes/c",
        "hermes/x",
        "",
    ]
)


@given(topic=TOPICS, payload=st.binary(max_size=60) | FIELDS.map(lambda value: json.dumps(value).encode()))
# The first text takes a second: hypothesis then makes its tables of Unicode.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_comes_is_a_command_or_a_refusal_or_nothing(topic: str, payload: bytes) -> None:
    bench = Bench()
    message = bench.receive(topic, payload)
    if isinstance(message, PayloadRefused):
        bench.hermes.told(Rejected(id=None, code="field", reason=str(message.error)), message.origin)
        assert len(bench.published) == 1
        assert "error" in bench.published[0][0]


@pytest.mark.parametrize("topic", [messages.SAY, PLAY, messages.TOGGLE_OFF])
def test_what_the_broker_has_kept_is_refused(bench: Bench, topic: str) -> None:
    payload = wav(1) if topic == PLAY else json.dumps(SAY).encode()
    refused = bench.receive(topic, payload, retained=True)
    assert isinstance(refused, PayloadRefused)
    assert isinstance(refused.error, PayloadError)
    assert refused.error.code == "retained"

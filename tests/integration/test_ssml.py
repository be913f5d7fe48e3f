"""SSML, lexica and odd texts, through the broker to a daemon with a real voice."""

from __future__ import annotations

import itertools
import wave
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from integration.conftest import MakeDaemon
from simulators.broker import Mosquitto
from simulators.controller import Controller, Payload
from simulators.daemon_process import DaemonProcess

from device.format import RATE

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ssml")


@pytest.fixture(scope="module")
def shared(home: Path, voice_packs: Path) -> Iterator[Controller]:
    settings = {"lexicon": {"folder": str(home / "lexicon.d")}, "limits": {"max_text_chars": 100_000}}
    with (
        Mosquitto() as broker,
        Controller(broker.port) as controller,
        DaemonProcess(home, broker.port, packs=voice_packs, settings=settings) as daemon,
    ):
        controller.wait_for_status("online")
        yield controller
        assert daemon.running


def speak(controller: Controller, **fields: object) -> list[Payload]:
    return controller.speak({"id": f"ssml-{next(NUMBERS)}", **fields})


def rendered(controller: Controller, home: Path, **fields: object) -> tuple[np.ndarray, Payload]:
    """Render to a file; gives its samples, from -1 to 1, and the final event."""
    final = speak(controller, output="file", **fields)[-1]
    assert final["event"] == "finished", final
    with wave.open(str(home / "renders" / final["location"])) as file:
        data = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    return data / 32768, final


def ask(controller: Controller, command: str, **fields: object) -> Payload:
    request = f"request-{next(NUMBERS)}"
    controller.publish({"request": request, **fields}, command=command)

    def answers() -> list[Payload]:
        return [event for event in controller.events if event.get("request") == request]

    controller.wait_until(lambda: bool(answers()), f"no answer to {command}")
    return answers()[0]


def longest_silence_s(samples: np.ndarray) -> float:
    changes = np.flatnonzero(np.diff(np.concatenate(([0], samples == 0, [0])).astype(np.int8)))
    return float((changes[1::2] - changes[::2]).max(initial=0)) / RATE


def loudness(samples: np.ndarray) -> float:
    return float(np.sqrt((samples**2).mean()))


def test_a_break_is_silence_in_the_samples(shared: Controller, home: Path) -> None:
    samples, _ = rendered(shared, home, ssml='<speak>Ready. <break time="500ms"/> Go.</speak>')
    without, _ = rendered(shared, home, ssml="<speak>Ready. Go.</speak>")
    assert 0.5 <= longest_silence_s(samples) < 0.7
    assert longest_silence_s(without) < 0.4


def test_volume_and_rate_are_in_the_samples(shared: Controller, home: Path) -> None:
    text = "The museum closes in ten minutes."
    usual, _ = rendered(shared, home, text=text)
    soft, _ = rendered(shared, home, ssml=f'<speak><prosody volume="-12dB">{text}</prosody></speak>')
    slow, _ = rendered(shared, home, ssml=f'<speak><prosody rate="50%">{text}</prosody></speak>')
    assert loudness(soft) == pytest.approx(loudness(usual) / 4, rel=0.1)
    assert slow.size == pytest.approx(2 * usual.size, rel=0.15)


def test_a_mark_comes_when_it_is_heard(shared: Controller) -> None:
    first = 'Turn <mark name="left"/>left now.<break time="800ms"/>'
    ssml = f'<speak>{first}<mark name="stop"/>Stop.<mark name="end"/></speak>'
    events = speak(shared, ssml=ssml, marks=True)
    marks = {event["name"]: event for event in events if event["event"] == "mark"}
    words = {event["index"]: event for event in events if event["event"] == "word"}
    (started,) = [event for event in events if event["event"] == "started"]
    assert list(marks) == ["left", "stop", "end"]
    assert marks["left"]["at_s"] == words[1]["at_s"]
    assert marks["stop"]["at_s"] == words[3]["at_s"]
    assert marks["stop"]["at_s"] > words[2]["at_s"] + 0.8
    assert marks["end"]["at_s"] == events[-1]["audio_s"]
    for mark in marks.values():
        heard_s = datetime.fromisoformat(mark["time"].replace("Z", "+00:00")) - datetime.fromisoformat(
            started["time"].replace("Z", "+00:00")
        )
        assert heard_s.total_seconds() == pytest.approx(mark["at_s"], abs=1.0), "not all at once"


def test_what_is_not_known_is_told_and_spoken(shared: Controller) -> None:
    events = speak(shared, ssml='<speak><blink>Hello.</blink> <audio src="gong">Gong.</audio> שלום</speak>')
    (synthesized,) = [event for event in events if event["event"] == "synthesized"]
    told = " ".join(synthesized["warnings"])
    assert all(what in told for what in ("blink", "gong", "Hebrew"))
    assert events[-1]["warnings"] == synthesized["warnings"]
    assert "warnings" not in speak(shared, text="Hello.")[-1]


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"ssml": "<speak>a"}, "ssml", "line 1, column 8"),
        ({"ssml": "hello"}, "ssml", "line 1"),
        ({"ssml": '<!DOCTYPE a [<!ENTITY b "c">]><speak>&b;</speak>'}, "ssml_unsafe", "entities"),
        ({"ssml": '<speak><break time="999s"/></speak>'}, "ssml_limit", "600"),
        ({"ssml": "<speak>a</speak>", "text": "a"}, "field", "exactly one"),
        ({}, "field", "exactly one"),
        ({"ssml": 5}, "field", "ssml"),
    ],
)
def test_what_is_no_ssml_is_refused(shared: Controller, fields: Payload, code: str, reason: str) -> None:
    (rejected,) = speak(shared, **fields)
    assert (rejected["event"], rejected["code"]) == ("rejected", code)
    assert reason in rejected["reason"]


def test_markup_in_plain_text_is_spoken(shared: Controller, home: Path) -> None:
    marked, _ = rendered(shared, home, text="a < b & c [[h@l'oU]] <break time='9s'/>")
    assert longest_silence_s(marked) < 1
    assert marked.size > 2 * RATE


def test_ends_of_sentences_are_whole(shared: Controller, home: Path) -> None:
    tails = [rendered(shared, home, text=text)[0][-RATE // 5 :] for text in ("Hello", "Hello.")]
    assert all(np.abs(tail[-RATE // 100 :]).max() < 0.05 for tail in tails), "it ends in silence, not in noise"
    ready, _ = rendered(shared, home, text="Ready?")
    both, _ = rendered(shared, home, text="Ready? Go now.")
    assert both.size > 1.5 * ready.size


@pytest.mark.parametrize("text", ["", "   ", "...", "🙂", "\u200b", "שלום", "?!"])
def test_nothing_to_say_is_a_result(shared: Controller, text: str) -> None:
    events = speak(shared, text=text)
    assert [event["event"] for event in events] == ["accepted", "finished"]
    assert (events[-1]["audio_s"], events[-1]["reason"]) == (0, "nothing to say")


def test_a_lone_surrogate_and_a_single_letter_are_spoken(shared: Controller) -> None:
    for text in ("a\ud800b", "x", "\u202eright to left\u202c"):
        final = speak(shared, text=text)[-1]
        assert final["event"] == "finished"
        assert final["audio_s"] > 0


@pytest.mark.parametrize("text", ["s'" * 68, "s'" * 5000, "a" * 2000, "robot " * 16_000])
def test_hostile_texts_harm_nobody(shared: Controller, text: str) -> None:
    command_id = f"ssml-{next(NUMBERS)}"
    shared.publish({"id": command_id, "text": text[:60_000]})
    shared.wait_for(command_id, "started")
    shared.publish({"id": command_id}, command="cancel")
    assert shared.wait_for_final(command_id)[-1]["event"] == "cancelled"
    assert speak(shared, text="Yes.")[-1]["event"] == "finished"


def test_a_lexicon_is_set_asked_for_and_heard(shared: Controller, home: Path) -> None:
    before, _ = rendered(shared, home, text="Ask Zyrquo.")
    entry = {"written": "Zyrquo", "spoken": "the very friendly robot"}
    assert ask(shared, "lexicon/set", entries=[entry], version=3)["event"] == "done"
    after, _ = rendered(shared, home, text="Ask Zyrquo.")
    assert after.size > 1.3 * before.size
    state = ask(shared, "lexicon/get")
    assert (state["version"], state["entries"], state["in_files"]) == (3, [entry], 0)
    (home / "lexicon.d").mkdir()
    (home / "lexicon.d/names.toml").write_text('[[entry]]\nwritten = "Ode"\nspoken = "the other friendly robot"\n')
    assert ask(shared, "lexicon/get")["in_files"] == 1
    assert ask(shared, "lexicon/set")["event"] == "done"
    assert ask(shared, "lexicon/get")["entries"] == []
    again, _ = rendered(shared, home, text="Ask Zyrquo.")
    assert again.size < 1.2 * before.size


def test_a_wrong_entry_is_refused(shared: Controller) -> None:
    shared.publish({"request": "wrong", "entries": [{"written": "a", "ipa": "ː"}]}, command="lexicon/set")
    assert shared.wait_for("wrong", "rejected")["code"] == "field"


def test_ssml_that_waited_is_spoken_after_a_crash(make_daemon: MakeDaemon, controller: Controller) -> None:
    with make_daemon() as daemon:
        controller.wait_for_status("online")
        assert [event["event"] for event in speak(controller, text="Yes.")][-1] == "finished"
        controller.publish({}, command="pause")
        controller.publish({"id": "waits", "ssml": '<speak>Hello <mark name="m"/>there.</speak>'})
        controller.wait_for("waits", "accepted")
        daemon.kill()
        daemon.wait()
    with make_daemon():
        controller.wait_for_status("online", after=len(controller.statuses))
        events = controller.wait_for_final("waits")
        assert events[-1]["event"] == "finished"
        assert "mark" in [event["event"] for event in events]

"""Commands of every kind to one daemon that goes on living."""

from __future__ import annotations

import itertools
import os
import signal
import wave
from pathlib import Path

import pytest
from integration.conftest import MakeDaemon
from simulators.controller import Controller, Payload
from simulators.daemon_process import DaemonProcess

ABORTS_ESPEAK = "s'" * 72
"""Given to espeak-ng as it is: we part such words."""
NUMBERS = itertools.count()


def speak(controller: Controller, **fields: object) -> list[Payload]:
    return controller.speak({"id": f"command-{next(NUMBERS)}", **fields})


def kinds(events: list[Payload]) -> list[str]:
    return [event["event"] for event in events]


ALL = ["accepted", "started", "synthesized", "finished"]


def test_a_text_that_would_kill_the_phonemizer_is_spoken(shared: Controller) -> None:
    assert kinds(speak(shared, text=ABORTS_ESPEAK, output="file")) == ["accepted", "started", "finished"]


def test_a_phonemizer_that_dies_while_it_has_nothing_to_do_costs_nothing(
    daemon: DaemonProcess, controller: Controller
) -> None:
    assert kinds(speak(controller, text="Yes.")) == ALL
    for task in Path(f"/proc/{daemon.pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"espeak_worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)
    assert kinds(speak(controller, text="This one is not lost.")) == ALL


def test_a_voice_that_is_not_there_fails_alone(shared: Controller) -> None:
    accepted, failed = speak(shared, text="Yes.", voice="nobody")
    assert (accepted["event"], failed["event"], failed["code"]) == ("accepted", "failed", "voice")
    assert "nobody" in failed["reason"]
    assert kinds(speak(shared, text="Yes.")) == ALL


def test_a_voice_may_be_named(shared: Controller) -> None:
    events = speak(shared, text="Yes.", voice="en_US-joe-medium", speaker=0)
    assert kinds(events) == ALL
    assert events[2]["voice"] == "en_US-joe-medium"


@pytest.mark.parametrize("speaker", [1, "bob"])
def test_a_speaker_that_is_not_there_fails_alone(shared: Controller, speaker: object) -> None:
    accepted, failed = speak(shared, text="Yes.", speaker=speaker)
    assert (accepted["event"], failed["event"], failed["code"]) == ("accepted", "failed", "speaker")


@pytest.mark.parametrize("text", ["", "   ", "...", "\u200b", "\n\n"])
def test_nothing_to_say_is_no_failure(shared: Controller, text: str) -> None:
    accepted, finished = speak(shared, text=text)
    assert (accepted["event"], finished["event"], finished["audio_s"]) == ("accepted", "finished", 0)


def test_plain_text_is_spoken_under_an_id_made_up(shared: Controller) -> None:
    before = len(shared.finals())
    shared.publish("Yes.")
    shared.wait_for_finals(before + 1)
    assert kinds(shared.events_of(shared.finals()[-1]["id"])) == ALL


def test_the_urgent_speaks_before_those_who_wait(shared: Controller) -> None:
    names = [f"{name}-{next(NUMBERS)}" for name in ("first", "progress", "message", "critical")]
    first, progress, message, critical = names
    shared.publish({"id": first, "text": "One, two, three, four, five, six, seven, eight."})
    shared.wait_for(first, "started")
    shared.publish({"id": progress, "text": "Go.", "priority": "progress"})
    shared.publish({"id": message, "text": "Go."})
    shared.publish({"id": critical, "text": "Go.", "priority": "critical"})
    shared.wait_for_final(progress)
    started = [event["id"] for event in shared.events if event["event"] == "started" and event["id"] in names]
    assert started == [first, critical, message, progress]
    ahead = [shared.wait_for(name, "accepted")["ahead"] for name in names]
    assert ahead == [0, 1, 1, 0]
    told = [kind for kind in kinds(shared.events_of(first)) if kind != "synthesized"]  # before or after
    assert told == ["accepted", "started", "interrupted", "resumed", "finished"]


def test_a_command_sent_twice_is_spoken_once(shared: Controller) -> None:
    command_id = f"twice-{next(NUMBERS)}"
    shared.publish({"id": command_id, "text": "One, two, three."})
    shared.publish({"id": command_id, "text": "One, two, three."})
    shared.wait_for_final(command_id)
    assert kinds(speak(shared, text="Yes.")) == ALL
    assert sorted(kinds(shared.events_of(command_id))) == sorted(["accepted", *ALL])


def test_a_long_text_is_refused_and_a_large_payload_too(shared: Controller) -> None:
    (rejected,) = speak(shared, text="x" * 4001)
    assert (rejected["event"], rejected["code"]) == ("rejected", "too_long")
    before = len(shared.finals())
    shared.publish(b"x" * 70_000)
    shared.wait_for_finals(before + 1)
    assert shared.finals()[-1]["code"] == "too_large"


class TestWav:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "speech.wav"

    @staticmethod
    def frames(path: Path) -> list[bytes]:
        with wave.open(str(path), "rb") as reader:
            assert (reader.getframerate(), reader.getnchannels(), reader.getsampwidth()) == (48_000, 1, 2)
            data = reader.readframes(reader.getnframes())
            assert len(data) == 2 * reader.getnframes()
            assert path.stat().st_size == 44 + len(data)
        return [data[i : i + 2] for i in range(0, len(data), 2)]

    def test_it_grows_by_each_utterance_and_is_valid_after_each(
        self, make_daemon: MakeDaemon, controller: Controller, path: Path
    ) -> None:
        with make_daemon(audio={"output": "wav", "path": str(path)}):
            controller.wait_for_status("online")
            length = 0.0
            for text in ("Yes.", "One, two, three.", "No."):
                finished = speak(controller, text=text)[-1]
                length += finished["audio_s"]
                assert len(self.frames(path)) == pytest.approx(length * 48_000, abs=100)

    def test_the_volume_is_that_of_the_samples(
        self, make_daemon: MakeDaemon, controller: Controller, path: Path
    ) -> None:
        with make_daemon(audio={"output": "wav", "path": str(path)}):
            controller.wait_for_status("online")
            ends = [0]
            for volume in (1, 0, 2, 0.5):
                assert kinds(speak(controller, text="Yes.", volume=volume)) == ALL
                ends.append(len(self.frames(path)))
            values = [int.from_bytes(frame, "little", signed=True) for frame in self.frames(path)]
            normal, silent, loud, soft = (values[ends[i] : ends[i + 1]] for i in range(4))
            # The seed is the same, so the sound is.
            assert len(normal) == len(silent) == len(loud) == len(soft)
            assert not any(silent)
            assert max(map(abs, loud)) < 10 ** (-1 / 20) * 32768, "peaks are held below -1 dB"
            twice = [abs(2 * one - other) <= 2 for one, other in zip(normal, loud, strict=True)]
            assert sum(twice) > 0.5 * len(twice), "and all else is as loud as was asked for"
            softer = [abs(one - 2 ** (5 / 3) * other) <= 4 for one, other in zip(normal, soft, strict=True)]
            assert sum(softer) > 0.5 * len(softer), "10 dB, but where a peak was limited"

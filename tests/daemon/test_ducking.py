"""Other programs' sound beside ours, in a real sound server."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pulsectl
import pytest
from simulators.pulse import PulseServer
from simulators.waiting import wait_until

import daemon.ducking
from daemon.ducking import Ducking

TIMEOUT_S = 30.0
FULL = 0.8
DUCKED = FULL * 10 ** (-20 / 60)


class Radio:
    """A program that plays without end."""

    def __init__(self, server: PulseServer, name: str = "Radio") -> None:
        arguments = ["--raw", "--rate=48000", "--channels=2", f"--volume={round(FULL * 65536)}"]
        command = [server.find("paplay"), *arguments, f"--property=application.name={name}", "/dev/zero"]
        self.process = subprocess.Popen(command, env={**os.environ, **server.environment}, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def volumes() -> list[float]:
    with pulsectl.Pulse("test") as server:
        return sorted(round(stream.volume.values[0], 3) for stream in server.sink_input_list())


def wait_for(wanted: list[float]) -> None:
    wait_until(lambda: volumes() == pytest.approx(wanted, abs=0.002), lambda: f"{volumes()}")


def end(ducking: Ducking) -> None:
    ducking.stop()
    ducking.join(TIMEOUT_S)
    assert not ducking.is_alive()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PulseServer]:
    with PulseServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def radio(server: PulseServer) -> Iterator[Radio]:
    radio = Radio(server)
    wait_for([FULL])
    yield radio
    radio.stop()


@pytest.fixture
def ducking(tmp_path: Path) -> Iterator[Ducking]:
    ducking = Ducking(20, tmp_path / "ducked.json", lambda _: None)
    yield ducking
    if ducking.is_alive():
        end(ducking)


def test_others_are_turned_down_for_speech_and_up_after_it(radio: Radio, ducking: Ducking) -> None:
    ducking.start()
    for _ in range(2):
        asked = time.monotonic()
        ducking.begin()
        wait_for([DUCKED])
        assert time.monotonic() - asked < 5, "before a sentence is over"
        ducking.begin()
        ducking.end()
        ducking.end()
        wait_for([FULL])


def test_speech_that_follows_soon_finds_them_still_down(
    radio: Radio, ducking: Ducking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon.ducking, "_LINGER_S", 30.0)
    ducking.start()
    ducking.begin()
    wait_for([DUCKED])
    ducking.end()
    threading.Event().wait(0.3)
    assert volumes() == pytest.approx([DUCKED], abs=0.002)
    end(ducking)
    wait_for([FULL])


def test_whoever_begins_later_is_turned_down_with_the_next_words(
    server: PulseServer, radio: Radio, ducking: Ducking
) -> None:
    ducking.start()
    ducking.begin()
    wait_for([DUCKED])
    other = Radio(server, "Other")
    wait_for([DUCKED, FULL])
    ducking.begin()
    wait_for([DUCKED, DUCKED])
    ducking.end()
    ducking.end()
    wait_for([FULL, FULL])
    other.stop()


def test_who_changes_the_volume_meanwhile_keeps_it(radio: Radio, ducking: Ducking) -> None:
    ducking.start()
    ducking.begin()
    wait_for([DUCKED])
    with pulsectl.Pulse("test") as server:
        server.volume_set_all_chans(server.sink_input_list()[0], 0.5)
    ducking.end()
    end(ducking)
    assert volumes() == [0.5]


def test_a_crash_is_made_good_by_the_next_start(radio: Radio, ducking: Ducking, tmp_path: Path) -> None:
    ducking.start()
    ducking.begin()
    wait_for([DUCKED])
    # As the next life finds it, while the first one can do nothing more.
    record = tmp_path / "found.json"
    record.write_bytes((tmp_path / "ducked.json").read_bytes())
    assert [stream["who"] for stream in json.loads(record.read_bytes())] == ["Radio"]
    again = Ducking(20, record, lambda _: None)
    again.start()
    wait_for([FULL])
    end(again)
    assert json.loads(record.read_bytes()) == []


def test_without_a_sound_server_the_log_says_so_once(
    server: PulseServer, ducking: Ducking, caplog: pytest.LogCaptureFixture
) -> None:
    server.stop()
    ducking.start()
    deadline = time.monotonic() + TIMEOUT_S
    while not caplog.messages:
        ducking.begin()
        ducking.end()
        assert time.monotonic() < deadline
    for _ in range(3):
        ducking.begin()
        ducking.end()
    end(ducking)
    assert len(caplog.messages) == 1
    assert "cannot be turned down" in caplog.messages[0]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'[{"who": "x"}]', b"null"])
def test_a_damaged_record_is_told_and_passed_over(
    tmp_path: Path, ducking: Ducking, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "ducked.json").write_bytes(content)
    ducking.start()
    end(ducking)
    assert "is unknown" in caplog.messages[0]

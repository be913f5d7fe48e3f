"""The service with the default voice: what is rendered beside what is spoken."""

from __future__ import annotations

import shutil
import subprocess
import time
import wave
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daemon.clock import Clock
from daemon.commands import Speak
from daemon.config import AudioConfig, CacheConfig, Config, RenderConfig, VoiceConfig
from daemon.errors import StreamLostError
from daemon.events import Event, Failed, Finished
from daemon.inbox import AudioPage, RenderEnded, SpeakReceived, ThreadDied
from daemon.job import Job
from daemon.journal import Journal
from daemon.render_orders import RenderOrder
from daemon.service import Service
from device.format import Samples
from device.null import NullSink
from engines.shared_voices import ConcurrentVoice

TIMEOUT_S = 60
TEXT = "The train to Berlin will depart from platform seven."


class Running:
    """A service and what its main thread does."""

    def __init__(self, packs: Path, renders: Path) -> None:
        self.events: list[Event] = []
        self.pages: dict[str, bytes] = {}
        config = Config(
            audio=AudioConfig(output="null"),
            cache=CacheConfig(enabled=False),
            render=RenderConfig(folder=str(renders)),
            voice=VoiceConfig(packs=str(packs), default="en_US-joe-medium"),
        )
        self.service = Service(
            config,
            NullSink(paced=False),
            Journal(None),
            publish=lambda event, _origin: self.events.append(event),
            report=lambda _settings: None,
            topic_of=lambda command_id: f"audio/{command_id}",
        )
        self.service.start()

    def until(self, renders: int, finished: int) -> list[RenderEnded]:
        ended: list[RenderEnded] = []
        while len(ended) < renders or sum(event.event == "finished" for event in self.events) < finished:
            message = self.service.inbox.get(timeout=TIMEOUT_S)
            assert not isinstance(message, ThreadDied), message
            if isinstance(message, AudioPage):
                self.pages[message.topic] = self.pages.get(message.topic, b"") + message.page
            if isinstance(message, RenderEnded):
                completed = self.service.outputs.end(message)
                if completed is None:
                    continue
                ended.append(message := completed)
            self.service.speaker.handle(message, Clock.now())
        return ended

    def speak(self, **fields: Any) -> None:  # noqa: ANN401
        self.service.speaker.handle(SpeakReceived(Speak(**fields), time.monotonic()), Clock.now())

    def kinds(self, command_id: str) -> list[str]:
        return [event.event for event in self.events if getattr(event, "id", None) == command_id]

    def close(self) -> None:
        self.service.stop()


@pytest.fixture
def running(voice_packs: Path, tmp_path: Path) -> Iterator[Running]:
    with closing(Running(voice_packs, tmp_path / "renders")) as running:
        yield running


def test_four_renders_and_a_spoken_sentence_at_once(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    init = ConcurrentVoice.__init__

    def counting(voice: ConcurrentVoice, *arguments: object) -> None:
        loaded.append("")
        init(voice, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ConcurrentVoice, "__init__", counting)
    rendered: dict[str, list[Samples]] = {str(number): [] for number in range(4)}
    for name, parts in rendered.items():
        order = RenderOrder(Job(name), TEXT, lambda samples, parts=parts: parts.append(samples.copy()), seed=5)
        running.service.renderers.submit(order)
    running.speak(text=TEXT)
    ended = running.until(renders=4, finished=1)
    assert [message.error for message in ended] == [None] * 4
    assert [event.event for event in running.events] == ["accepted", "started", "synthesized", "finished"]
    assert len(loaded) == 1, "all threads share what the first one loaded"
    first, *others = (np.concatenate(parts) for parts in rendered.values())
    assert first.size > 48_000
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_a_file_appears_under_the_name_of_its_command_once_it_is_whole(running: Running, tmp_path: Path) -> None:
    running.speak(id="doors", text=TEXT, output="file")
    running.speak(id="../../etc/passwd", text="Yes.", output="file")
    running.speak(id="nothing", text="", output="file")
    running.until(renders=3, finished=3)
    assert running.kinds("doors") == ["accepted", "started", "finished"]
    found = sorted(path.name for path in (tmp_path / "renders").iterdir())
    locations = {event.id: event.location for event in running.events if isinstance(event, Finished)}
    assert sorted(filter(None, locations.values())) == found
    assert locations["doors"] == "doors.wav"
    assert locations["../../etc/passwd"] is not None
    assert locations["../../etc/passwd"].startswith("_.._etc_passwd-")
    with wave.open(str(tmp_path / "renders/doors.wav"), "rb") as reader:
        (audio_s,) = [event.audio_s for event in running.events if isinstance(event, Finished) and event.id == "doors"]
        assert reader.getnframes() == pytest.approx(audio_s * 48_000, abs=24)  # it is told in milliseconds


def test_a_stream_is_a_whole_opus_file_in_pieces(running: Running, tmp_path: Path) -> None:
    running.speak(id="gate", text=TEXT, output="stream")
    running.until(renders=1, finished=1)
    while not running.service.inbox.empty():  # the last page is made when the stream is completed
        message = running.service.inbox.get()
        if isinstance(message, AudioPage):
            running.pages[message.topic] += message.page
    (finished,) = [event for event in running.events if isinstance(event, Finished)]
    assert finished.location == "audio/gate"
    path = tmp_path / "heard.opus"
    path.write_bytes(running.pages["audio/gate"])
    opusdec = shutil.which("opusdec")
    assert opusdec is not None, "opusdec is not installed: apt-get install opus-tools"
    command = [opusdec, "--quiet", "--float", "--rate", "48000", str(path), str(tmp_path / "raw")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert "WARN" not in done.stderr
    assert np.fromfile(tmp_path / "raw", np.float32).size == pytest.approx(finished.audio_s * 48_000, abs=24)


def test_what_cannot_be_written_fails_alone(running: Running, tmp_path: Path) -> None:
    (tmp_path / "renders").touch()
    running.speak(id="a", text=TEXT, output="file")
    running.speak(id="b", text=TEXT, output="stream", language="tlh")
    running.speak(id="c", text=TEXT, output="stream")
    running.until(renders=3, finished=1)
    codes = {event.id: event.code for event in running.events if isinstance(event, Failed)}
    assert codes == {"a": "audio", "b": "voice"}
    assert running.kinds("c")[-1] == "finished"


def test_a_lost_piece_of_a_stream_is_a_failure(running: Running) -> None:
    running.speak(id="a", text=TEXT, output="stream")
    running.service.outputs.lose(AudioPage("a", "audio/a", b"OggS"))
    (ended,) = running.until(renders=1, finished=0)
    assert isinstance(ended.error, StreamLostError)


def test_a_stop_ends_renders_too(running: Running) -> None:
    for number in range(20):
        running.service.renderers.submit(RenderOrder(Job(str(number)), TEXT * 5, lambda _: None))
    running.service.stop()
    assert not any(thread.is_alive() for thread in running.service.renderers.threads)
    ended = []
    while not running.service.inbox.empty():
        message = running.service.inbox.get()
        assert not isinstance(message, ThreadDied), message
        ended += [message.id] if isinstance(message, RenderEnded) else []
    assert sorted(ended, key=int) == [str(number) for number in range(20)]

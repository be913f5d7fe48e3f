"""The service with the default voice: what is rendered beside what is spoken."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from daemon.config import AudioConfig, CacheConfig, Config, VoiceConfig
from daemon.messages import Event, RenderEnded, Speak, SpeakReceived, ThreadDied
from daemon.player import Job
from daemon.rendering import RenderOrder
from daemon.service import Service
from device.format import Samples
from device.null import NullSink
from engines.shared_voices import ConcurrentVoice

TIMEOUT_S = 60
TEXT = "The train to Berlin will depart from platform seven."


class Running:
    """A service and what its main thread does."""

    def __init__(self, packs: Path) -> None:
        self.events: list[Event] = []
        config = Config(
            audio=AudioConfig(output="null"),
            cache=CacheConfig(enabled=False),
            voice=VoiceConfig(packs=str(packs), default="en_US-joe-medium"),
        )
        self.service = Service(config, NullSink(paced=False), self.events.append)
        self.service.start()

    def until(self, renders: int, finished: int) -> list[RenderEnded]:
        ended: list[RenderEnded] = []
        while len(ended) < renders or sum(event.event == "finished" for event in self.events) < finished:
            message = self.service.inbox.get(timeout=TIMEOUT_S)
            assert not isinstance(message, ThreadDied), message
            if isinstance(message, RenderEnded):
                ended.append(message)
            self.service.speaker.handle(message)
        return ended

    def close(self) -> None:
        self.service.stop()


@pytest.fixture
def running(voice_packs: Path) -> Iterator[Running]:
    with closing(Running(voice_packs)) as running:
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
    running.service.speaker.handle(SpeakReceived(Speak(text=TEXT), time.monotonic()))
    ended = running.until(renders=4, finished=1)
    assert [message.error for message in ended] == [None] * 4
    assert [event.event for event in running.events] == ["accepted", "started", "synthesized", "finished"]
    assert len(loaded) == 1, "all threads share what the first one loaded"
    first, *others = (np.concatenate(parts) for parts in rendered.values())
    assert first.size > 48_000
    for other in others:
        np.testing.assert_array_equal(first, other)


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

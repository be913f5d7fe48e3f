from __future__ import annotations

import gc
import importlib.metadata
import threading
from pathlib import Path

import pytest
from simulators.faulty_sink import FaultySink
from simulators.waiting import wait_until

from daemon import app
from daemon.commands import Speak
from daemon.config import AudioConfig, Config, MemoryConfig, VoiceConfig
from daemon.errors import ConfigError, DaemonError
from daemon.events import Failed
from device.errors import PoolTooLargeError
from device.format import Samples
from engines.errors import VoiceError

LONG = "This is a long text that takes a while. " * 10


def test_the_version_is_that_which_runs_whatever_is_installed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is its file parsed for each status: it takes longer than all the rest of one."""
    runs = app.version()
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: "99")
    assert app.version() == runs


def test_what_was_mended_during_the_pause_after_bad_ends_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class Waiting:
        def __init__(self, *_: object) -> None: ...

        def wait(self) -> None:
            order.append("waited")

    def read() -> Config:
        order.append("read")
        raise ConfigError(Path("speakd.toml"), ())

    monkeypatch.setattr(app, "Supervision", Waiting)
    with pytest.raises(ConfigError):
        app.run(read)
    assert order == ["waited", "read"]


@pytest.fixture
def config(voice_packs: Path) -> Config:
    """Give few buffers, so that the engine is never far ahead of the player."""
    return Config(
        audio=AudioConfig(output="null"),
        voice=VoiceConfig(packs=str(voice_packs), default="en_US-joe-medium"),
        memory=MemoryConfig(pool_buffers=4),
    )


class TestSay:
    def test_what_the_player_gave_up_was_not_synthesized(self, config: Config) -> None:
        sink = FaultySink()
        sink.fail.add("write")
        events = app.say(config, sink, Speak(text=LONG))
        assert [event.event for event in events] == ["accepted", "started", "failed"]
        failed = events[-1]
        assert isinstance(failed, Failed)
        assert failed.code == "audio"
        assert sink.calls[-1] == "close"

    def test_the_sink_is_closed_and_no_thread_is_left(self, config: Config) -> None:
        before = set(threading.enumerate())
        sink = FaultySink()
        events = app.say(config, sink, Speak(text="Yes."))
        assert [event.event for event in events] == ["accepted", "started", "synthesized", "finished"]
        assert sink.calls[-1] == "close"
        assert "drop" not in sink.calls
        gc.collect()  # what watches disks ends with its owner
        wait_until(lambda: set(threading.enumerate()) <= before, "a thread is left")

    def test_a_thread_that_dies_is_an_error(self, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
        sink = FaultySink()

        def crash(_samples: Samples) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(sink, "write", crash)
        with pytest.raises(DaemonError, match="the player thread died"):
            app.say(config, sink, Speak(text="Yes."))

    def test_without_the_voice_nothing_is_started(self, config: Config, tmp_path: Path) -> None:
        before = set(threading.enumerate())
        with pytest.raises(VoiceError, match="speakd voice add"):
            app.say(
                config.model_copy(update={"voice": VoiceConfig(packs=str(tmp_path))}), FaultySink(), Speak(text="a")
            )
        gc.collect()
        wait_until(lambda: set(threading.enumerate()) <= before, "a thread is left")

    def test_more_buffers_than_the_memory_allows_are_refused(self, config: Config) -> None:
        memory = MemoryConfig(pool_buffers=4096, pinned_limit_mb=16)
        with pytest.raises(PoolTooLargeError, match=r"memory\.pool_buffers"):
            app.say(config.model_copy(update={"memory": memory}), FaultySink(), Speak(text="a"))

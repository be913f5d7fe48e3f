"""Signs of life: a thread that hangs must cost the watchdog its food, one that rests must not."""

from __future__ import annotations

import contextlib
import math
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.health import Health, Pulse
from daemon.notify import Notifier


class Systemd:
    """What systemd hears."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(path)
        self._socket.settimeout(0)

    def heard(self) -> list[str]:
        """Give what came since the last time."""
        told = []
        with contextlib.suppress(BlockingIOError):
            while True:
                told.append(self._socket.recv(4096).decode())
        return told

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["a file", "an abstract name"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Systemd]:
    abstract = request.param == "an abstract name"
    name = f"speakd-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    listening = Systemd(f"\0{name}" if abstract else name)
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if abstract else name)
    monkeypatch.setenv("WATCHDOG_USEC", "20000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    yield listening
    listening.close()


def test_the_watchdog_is_fed_in_time_and_not_more_often(systemd: Systemd) -> None:
    health = Health(Notifier(), {"the engine": lambda _: 0.0}, limit_s=10)
    for now in range(100, 121):
        health.check(float(now))
    assert systemd.heard() == ["WATCHDOG=1"] * 5, "every 5 s of 20"


def test_what_hangs_starves_it_until_it_moves_again(systemd: Systemd, caplog: pytest.LogCaptureFixture) -> None:
    still = {"the engine": 0.0, "the player": 0.0}
    health = Health(Notifier(), {name: lambda _, name=name: still[name] for name in still}, limit_s=10)  # type: ignore[misc]
    still["the engine"] = 11.0
    assert health.check(100.0) == ("the engine",)
    assert health.check(105.0) == ("the engine",)
    assert systemd.heard() == ["STATUS=hung: the engine"]
    assert caplog.text.count("the engine has not moved for more than 10 s") == 1
    still["the engine"] = 0.0
    assert health.check(110.0) == ()
    assert systemd.heard() == ["WATCHDOG=1"]


def test_a_thread_that_rests_may_rest_for_ever() -> None:
    pulse = Pulse()
    pulse.rest()
    assert pulse.still_s(math.inf) == 0
    pulse.wake()
    assert pulse.still_s(math.inf) == math.inf


def test_nobody_is_told_where_nobody_listens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    notifier = Notifier()
    notifier.ready()
    assert Health(notifier, {}, limit_s=1).due == math.inf
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    Notifier().ready()


@pytest.mark.parametrize(("usec", "pid"), [("0", ""), ("no number", ""), ("20000000", "1")])
def test_a_watchdog_that_is_not_ours_is_not_fed(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch, usec: str, pid: str
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    monkeypatch.setenv("WATCHDOG_PID", pid or str(os.getpid()))
    assert Notifier().watchdog_s is None
    assert systemd.heard() == []


def test_a_status_is_one_line(systemd: Systemd) -> None:
    Notifier().status("a command\nREADY=1\x00 " + "x" * 1000)
    (told,) = systemd.heard()
    assert told.startswith("STATUS=a command READY=1  xxx")
    assert len(told) < 250

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from simulators.broker import Broker, Mosquitto
from simulators.controller import Controller
from simulators.daemon_process import DaemonProcess

MakeDaemon = Callable[..., DaemonProcess]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Mosquitto() as broker:
        yield broker


@pytest.fixture
def controller(broker: Broker) -> Iterator[Controller]:
    with Controller(broker.port) as controller:
        yield controller


@pytest.fixture
def make_daemon(tmp_path: Path, voice_packs: Path, broker: Broker) -> MakeDaemon:
    """Give a function that prepares a daemon for the test's own broker."""

    def make(**settings: Any) -> DaemonProcess:  # noqa: ANN401
        environment = settings.pop("environment", None)
        return DaemonProcess(tmp_path, broker.port, packs=voice_packs, settings=settings, environment=environment)

    return make


@pytest.fixture
def daemon(make_daemon: MakeDaemon, controller: Controller) -> Iterator[DaemonProcess]:
    """Give a daemon that is online and plays to nobody, at a loudspeaker's pace."""
    with make_daemon() as daemon:
        controller.wait_for_status("online")
        yield daemon


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, voice_packs: Path) -> Iterator[Controller]:
    """Give somebody who commands a daemon that many tests share; it must be as it was after each of them."""
    with (
        Mosquitto() as broker,
        Controller(broker.port) as controller,
        DaemonProcess(tmp_path_factory.mktemp("shared"), broker.port, packs=voice_packs) as daemon,
    ):
        controller.wait_for_status("online")
        yield controller
        assert daemon.running

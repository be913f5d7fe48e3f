"""A disk that hangs under all that the daemon keeps: it speaks on, and forgets nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from simulators.broker import Broker
from simulators.controller import Controller
from simulators.daemon_process import DaemonProcess
from simulators.frozen_disk import FrozenDisk, frozen_disk, obstacle


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FrozenDisk]:
    (tmp_path / "trial").mkdir()
    if reason := obstacle(tmp_path / "trial"):
        pytest.skip(reason)
    with frozen_disk(tmp_path) as disk:
        yield disk


Starting = Callable[..., DaemonProcess]


@pytest.fixture
def starting(tmp_path: Path, disk: FrozenDisk, voice_packs: Path, broker: Broker) -> Starting:
    """Give a function that prepares a daemon whose journal, and what it is told beside, lies on the disk."""

    def start(**settings: dict[str, Any]) -> DaemonProcess:
        settings["journal"] = {"file": str(disk.folder / "journal.db")}
        return DaemonProcess(tmp_path, broker.port, packs=voice_packs, settings=settings)

    return start


def test_speech_goes_on_and_nothing_is_forgotten(disk: FrozenDisk, starting: Starting, controller: Controller) -> None:
    daemon = starting(
        cache={"folder": str(disk.folder / "phrases")},
        render={"folder": str(disk.folder / "renders")},
        recorder={"enabled": True, "folder": str(disk.folder / "recordings")},
        lexicon={"folder": str(disk.folder / "lexicon.d")},
    )
    with daemon, disk:
        controller.wait_for_status("online")
        assert controller.speak({"id": "before", "text": "Mind the doors."})[-1]["event"] == "finished"
        disk.freeze()
        for number in range(6):
            text = "Mind the doors." if number % 2 else f"Gate {number} is open."
            events = controller.speak({"id": f"while{number}", "text": text})
            assert [event["event"] for event in events] == ["accepted", "started", "synthesized", "finished"]
        for command_id in ("before", "while0"):
            controller.publish({"id": command_id, "text": "Once more."})
            controller.wait_for(command_id, "known")
        controller.publish("0.5", command="volume/set")
        controller.wait_until(lambda: controller.settings[-1]["volume"] == 0.5, "the volume is not set")
        controller.wait_until(
            lambda: "does not answer" in controller.statuses[-1]["journal"], "the journal does not say"
        )
        controller.wait_until(
            lambda: ("disk_refuses", "raised") in {(a["alert"], a["state"]) for a in controller.alerts}, "no alert"
        )
        disk.thaw()
        controller.wait_until(lambda: controller.statuses[-1]["journal"] == "ok", "it does not go back to the disk")
        assert controller.speak({"id": "after", "text": "Mind the doors."})[-1]["event"] == "finished"
        daemon.kill()
        daemon.wait()
    begun, statuses = len(controller.events), len(controller.statuses)
    with daemon:
        controller.wait_for_status("online", after=statuses)
        ids = ["before", *(f"while{number}" for number in range(6)), "after"]
        for command_id in ids:
            controller.publish({"id": command_id, "text": "Once more."})
        for command_id in ids:
            controller.wait_until(
                lambda command_id=command_id: "known" in kinds(controller, command_id, begun),  # type: ignore[misc]
                f"{command_id} is not known",
            )
            assert "started" not in kinds(controller, command_id, begun)
        assert controller.settings[-1]["volume"] == 0.5


def kinds(controller: Controller, command_id: str, begun: int) -> set[str]:
    return {event["event"] for event in controller.events[begun:] if event.get("id") == command_id}


def test_it_ends_when_told_to_though_the_disk_hangs(
    disk: FrozenDisk, starting: Starting, controller: Controller
) -> None:
    with starting() as daemon, disk:
        controller.wait_for_status("online")
        disk.freeze()
        controller.speak({"id": "a", "text": "Mind the doors."})
        daemon.terminate()
        controller.wait_for_status("stopped")
        disk.thaw()

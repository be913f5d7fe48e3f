"""What Home Assistant sees at the broker, from discovery to removal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from simulators.broker import Broker
from simulators.daemon_process import DaemonProcess
from simulators.ear import Ear

CONFIG = "homeassistant/device/speakd_bench/config"
STATE = "speakd/bench/homeassistant"

Make = Callable[..., DaemonProcess]


@pytest.fixture
def ear(broker: Broker) -> Iterator[Ear]:
    with Ear(broker.port, "homeassistant/#", "speakd/#") as ear:
        yield ear


@pytest.fixture
def make(tmp_path: Path, voice_packs: Path, broker: Broker) -> Make:
    def one(*, enabled: bool) -> DaemonProcess:
        settings = {"homeassistant": {"enabled": enabled}}
        return DaemonProcess(tmp_path, broker.port, packs=voice_packs, settings=settings)

    return one


def test_it_is_found_used_found_again_and_removed(make: Make, broker: Broker, ear: Ear) -> None:
    with make(enabled=True) as daemon:
        payload = json.loads(ear.wait_for(CONFIG).payload)
        entities = payload["components"]
        assert "en_US-joe-medium" in entities["voice"]["options"]
        assert payload["availability_topic"] == "speakd/bench/status"
        ear.wait_for("speakd/bench/status", lambda status: b'"online"' in status)

        # Notify, as its template makes it.
        ear.publish(entities["say"]["command_topic"], '{"text": "One, two.", "priority": "message"}', qos=1)
        ear.wait_for(STATE, lambda state: json.loads(state)["speaking"])
        ear.wait_for("speakd/bench/event", lambda event: b'"finished"' in event)
        ear.wait_for(STATE, lambda _: not json.loads(ear.on(STATE)[-1].payload)["speaking"])
        state = json.loads(ear.on(STATE)[-1].payload)
        assert state["ttfa_ms"] > 0
        assert state["voice"] == "en_US-joe-medium"

        ear.publish(entities["volume"]["command_topic"], "0.5", qos=1)
        ear.wait_for("speakd/bench/settings", lambda settings: json.loads(settings)["volume"] == 0.5)

        # Home Assistant restarts, then the broker.
        ear.publish("homeassistant/status", "offline")
        ear.publish("homeassistant/status", "online")
        ear.wait_for(CONFIG, lambda _: len(ear.on(CONFIG)) == 2)
        broker.kill()
        broker.start()
        ear.wait_for(CONFIG, lambda _: len(ear.on(CONFIG)) == 3)
        daemon.terminate()
        assert daemon.wait() == 0

    with Ear(broker.port, CONFIG, STATE) as late:  # both are kept for whoever comes later
        assert late.wait_for(CONFIG).retained
        assert late.wait_for(STATE).retained

    with make(enabled=False):
        ear.wait_for(CONFIG, lambda payload: payload == b"")
        ear.wait_for(STATE, lambda payload: payload == b"")
        ear.wait_for("speakd/bench/status", lambda _: b'"online"' in ear.on("speakd/bench/status")[-1].payload)
    with Ear(broker.port, "homeassistant/#", STATE, "speakd/bench/status") as late:
        late.wait_for("speakd/bench/status")
        assert not late.on(CONFIG)
        assert not late.on(STATE)


def test_turned_off_nothing_is_published(make: Make, ear: Ear) -> None:
    with make(enabled=False):
        ear.wait_for("speakd/bench/status", lambda status: b'"online"' in status)
        ear.publish("homeassistant/status", "online", qos=1)
        ear.publish("speakd/bench/speak", "Yes.", qos=1)
        ear.wait_for("speakd/bench/event", lambda event: b'"finished"' in event)
        assert {one.topic for one in ear.heard} == {
            "homeassistant/status",
            "speakd/bench/status",
            "speakd/bench/settings",
            "speakd/bench/telemetry",
            "speakd/bench/speak",
            "speakd/bench/event",
        }

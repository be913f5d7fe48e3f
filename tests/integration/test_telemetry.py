"""What a real daemon says of itself through a real broker."""

from __future__ import annotations

import json
import os
import queue
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from integration.conftest import MakeDaemon
from jsonschema import Draft202012Validator
from paho.mqtt.enums import CallbackAPIVersion
from simulators import boards
from simulators.broker import Broker, free_port
from simulators.controller import Controller
from simulators.figures import scraped
from simulators.waiting import wait_until

from daemon.api import json_schema

TIMEOUT_S = 60.0
SCHEMAS = json_schema()["$defs"]
QUICK = {"interval_s": 1, "self_check": False}


class Listener:
    """Hears telemetry and alerts, each checked against the published contract."""

    def __init__(self, port: int) -> None:
        self._heard: queue.SimpleQueue[tuple[str, bool, int, dict[str, Any]]] = queue.SimpleQueue()
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = lambda client, *_: client.subscribe(
            [("speakd/+/telemetry", 1), ("speakd/+/alert", 1)]
        )
        self._client.on_message = self._take
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def wait_for(self, kind: str, wanted: Callable[[dict[str, Any]], bool]) -> tuple[bool, int, dict[str, Any]]:
        """Wait for a message; gives whether it was retained, its QoS and itself."""
        deadline = time.monotonic() + TIMEOUT_S
        last: object = None
        while (left := deadline - time.monotonic()) > 0:
            try:
                heard, retained, qos, payload = self._heard.get(timeout=left)
            except queue.Empty:
                break
            name = {"telemetry": "Telemetry", "alert": "Alert"}[heard]
            Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMAS}).validate(payload)
            if heard == kind and wanted(payload):
                return retained, qos, payload
            last = payload
        raise AssertionError(f"no such {kind}; the last one was {last}")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _take(self, _client: paho.Client, _userdata: object, message: paho.MQTTMessage) -> None:
        kind = message.topic.rpartition("/")[2]
        self._heard.put((kind, message.retain, message.qos, json.loads(message.payload)))


@pytest.fixture
def listener(broker: Broker) -> Iterator[Listener]:
    listener = Listener(broker.port)
    yield listener
    listener.close()


def test_where_the_time_of_what_was_said_went(
    make_daemon: MakeDaemon, controller: Controller, listener: Listener, broker: Broker
) -> None:
    port = free_port()
    with make_daemon(telemetry=QUICK, prometheus={"enabled": True, "port": port}):
        controller.wait_for_status("online")
        started = [controller.speak({"id": f"u{i}", "text": f"Number {i}."})[1]["ttfa_ms"] for i in range(5)]
        controller.publish({"text": 42})
        _, qos, told = listener.wait_for("telemetry", lambda said: said["utterances"] == 5 and said["rejected"] == 1)
        assert qos == 0
        whole, response = told["ttfa_ms"]["whole"], told["ttfa_ms"]["response"]
        assert whole["p99"] == pytest.approx(max(started), rel=0.16)
        parts = [told["ttfa_ms"][stage]["p50"] for stage in ("text", "acoustic", "window", "sink")]
        assert all(part >= 0 for part in parts)
        assert sum(parts) == pytest.approx(response["p50"], rel=0.8), "medians: of a busy machine they may differ much"
        assert told["rtf"] > 0
        assert told["memory_mb"]["process"] > 50
        assert told["memory_mb"]["pool"] > 10
        assert (told["restarts"], told["queue"], told["lost"]) == (0, 0, 0)
        late = Listener(broker.port)
        assert late.wait_for("telemetry", lambda said: said["utterances"] == 5)[0]  # retained
        late.close()
        wait_until(lambda: scraped(port, "speakd_utterances_total") == 5, "speakd_utterances_total stays behind")
        assert told["missing_phonemes"] == {}
        unknown = "<speak>A <phoneme alphabet='ipa' ph='bʬd'>bird</phoneme>.</speak>"
        for output in ("speaker", "file"):
            controller.speak({"id": output, "ssml": unknown, "output": output})
        listener.wait_for("telemetry", lambda said: said["missing_phonemes"] == {"en_US-joe-medium": 2})


def test_a_lost_card_is_an_alert(make_daemon: MakeDaemon, controller: Controller, listener: Listener) -> None:
    with make_daemon(telemetry=QUICK, audio={"output": "alsa", "device": "nosuchcard"}):
        controller.wait_for_status("online")
        _, qos, alert = listener.wait_for("alert", lambda said: said["alert"] == "card_lost")
        assert (qos, alert["state"], alert["severity"]) == (1, "raised", "critical")
        assert "nosuchcard" in alert["reason"]
        assert listener.wait_for("telemetry", lambda said: said["alerts"] == ["card_lost"])


def test_a_disk_that_takes_nothing_is_an_alert_and_silences_nobody(
    make_daemon: MakeDaemon, controller: Controller, listener: Listener
) -> None:
    """No file of the daemon may grow for a while, which SQLite takes for a disk that fails."""
    with make_daemon(telemetry=QUICK) as daemon:
        controller.wait_for_status("online")
        _, _, told = listener.wait_for("telemetry", lambda said: said["disk"]["free_mb"] is not None)
        assert told["disk"]["refusal"] == ""
        unlimited = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        assert controller.speak({"id": "a", "text": "Nothing can be written."})[-1]["event"] == "finished"
        _, _, alert = listener.wait_for("alert", lambda said: said["alert"] == "disk_refuses")
        assert (alert["state"], alert["severity"]) == ("raised", "critical")
        assert "journal.db" in alert["reason"]
        assert listener.wait_for("telemetry", lambda said: "disk_refuses" in said["alerts"])
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, unlimited)
        listener.wait_for("alert", lambda said: (said["alert"], said["state"]) == ("disk_refuses", "cleared"))
        assert controller.statuses[-1]["journal"] == "ok", "nobody had to command anything"
        daemon.kill()
        daemon.wait()
    controller.forget(())
    known = len(controller.statuses)
    with make_daemon(telemetry=QUICK):
        controller.wait_for_status("online", after=known)
        controller.publish({"id": "a", "text": "Nothing can be written."})
        assert controller.wait_for("a", "known")["final"]["event"] == "finished"
        assert not [event for event in controller.events_of("a") if event["event"] == "started"]


def test_what_was_not_heard_while_the_broker_was_away_comes_later(
    make_daemon: MakeDaemon, controller: Controller, listener: Listener, broker: Broker
) -> None:
    port = free_port()
    with make_daemon(telemetry=QUICK, prometheus={"enabled": True, "port": port}) as daemon:
        controller.wait_for_status("online")
        uptime = listener.wait_for("telemetry", lambda said: said["uptime_s"] >= 1)[2]["uptime_s"]
        broker.kill()
        wait_until(lambda: scraped(port, "speakd_uptime_seconds") >= uptime + 4, "speakd_uptime_seconds stays behind")
        os.kill(daemon.pid, signal.SIGSTOP)  # until somebody listens
        broker.start()
        late = Listener(broker.port)
        os.kill(daemon.pid, signal.SIGCONT)
        seen: list[int] = []

        def caught_up(said: dict[str, Any]) -> bool:
            seen.append(said["uptime_s"])
            return bool(seen[-1] > uptime + 4)

        late.wait_for("telemetry", caught_up)
        late.close()
        assert seen == sorted(seen)
        assert len(seen) >= 3
        assert seen[0] <= uptime + 3


def test_restarts_are_counted(make_daemon: MakeDaemon, controller: Controller, listener: Listener) -> None:
    with make_daemon(telemetry=QUICK) as daemon:
        listener.wait_for("telemetry", lambda said: said["restarts"] == 0)
        daemon.kill()
        daemon.wait()
    with make_daemon(telemetry=QUICK):
        listener.wait_for("telemetry", lambda said: said["restarts"] == 1)
    with make_daemon(telemetry=QUICK):
        listener.wait_for("telemetry", lambda said: said["restarts"] == 1 and said["uptime_s"] <= 2)


@pytest.mark.parametrize(
    ("stub", "reason"),
    [("import time\ntime.sleep(3600)", "jtop"), ("raise ImportError('built for another board')", "another board")],
    ids=["it never answers", "it is another version"],
)
def test_where_jtop_says_nothing_telemetry_says_why(
    make_daemon: MakeDaemon, controller: Controller, listener: Listener, tmp_path: Path, stub: str, reason: str
) -> None:
    tree = boards.make("orin-nano-super", tmp_path / "board")
    (tmp_path / "stubs").mkdir()
    (tmp_path / "stubs/jtop.py").write_text(stub)
    path = os.pathsep.join([str(tmp_path / "stubs"), os.environ.get("PYTHONPATH", "")])
    power = {"root": str(tree.root), "jtop": True, "interval_s": 0.5, "helper": str(tmp_path / "none.sock")}
    with make_daemon(telemetry=QUICK, power=power, environment={"PYTHONPATH": path}):
        controller.wait_for_status("online")
        assert controller.speak({"id": "a", "text": "Yes."})[-1]["event"] == "finished"
        _, _, told = listener.wait_for("telemetry", lambda said: reason in said["degraded"].get("jtop", ""))
        assert told["temperatures_c"]
        assert told["rails_mw"]
        assert told["mode"] == "latency"


def test_a_board_that_is_too_hot_tells_its_mode_and_why(
    make_daemon: MakeDaemon, controller: Controller, listener: Listener, tmp_path: Path
) -> None:
    tree = boards.make("orin-nano-super", tmp_path / "board")
    power = {"root": str(tree.root), "jtop": False, "interval_s": 0.5, "helper": str(tmp_path / "none.sock")}
    with make_daemon(telemetry=QUICK, power=power):
        controller.wait_for_status("online")
        tree.set_temperatures(104_000)
        _, _, told = listener.wait_for("telemetry", lambda said: said["mode"] == "protect")
        assert "threshold" in told["reason"]
        assert max(told["temperatures_c"].values()) == 104.0

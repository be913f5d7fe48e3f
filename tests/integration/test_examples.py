"""The examples of the manual, as they stand there, against a daemon: only the broker's port is put in.

ROS 2 is not here: of its node everything but ROS runs, with just enough of rclpy in its place.
"""

from __future__ import annotations

import json
import queue
import re
import runpy
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
import yaml
from jsonschema import Draft202012Validator
from simulators.broker import Broker, Mosquitto
from simulators.daemon_process import DaemonProcess
from simulators.ear import Ear

ROOT = Path(__file__).parents[2]
EVENT = "speakd/kiosk-7/event"


def example(heading: str, language: str) -> str:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition(f"### {heading}\n")[2].partition("\n### ")[0]
    (code,) = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    return str(code)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Mosquitto() as broker:
        yield broker


@pytest.fixture(scope="module")
def ear(broker: Broker, tmp_path_factory: pytest.TempPathFactory, voice_packs: Path) -> Iterator[Ear]:
    """Give somebody who hears the device; what it said all along was as the published schemas have it."""
    schema = json.loads((ROOT / "api/schema.json").read_text(encoding="utf-8"))
    folder = tmp_path_factory.mktemp("examples")
    settings = {"device": {"name": "kiosk-7"}}
    with (
        Ear(broker.port, "speakd/#") as ear,
        DaemonProcess(folder, broker.port, packs=voice_packs, settings=settings),
    ):
        ear.wait_for("speakd/kiosk-7/status", lambda payload: b'"online"' in payload)
        yield ear
        names = {value["properties"]["event"]["const"]: name for name, value in events_of(schema)}
        for heard in ear.on(EVENT):
            event = json.loads(heard.payload)
            Draft202012Validator({"$ref": f"#/$defs/{names[event['event']]}", **schema}).validate(event)
        for topic, name in (("status", "Status"), ("settings", "Settings")):
            for heard in ear.on(f"speakd/kiosk-7/{topic}"):
                Draft202012Validator({"$ref": f"#/$defs/{name}", **schema}).validate(json.loads(heard.payload))


def events_of(schema: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    return [(name, value) for name, value in schema["$defs"].items() if "event" in value.get("properties", {})]


def text_events(ear: Ear, kind: str) -> list[dict[str, Any]]:
    return [e for e in (json.loads(one.payload) for one in ear.on(EVENT)) if e["event"] == kind]


def shell(code: str, port: int) -> str:
    for program in ("mosquitto_pub", "mosquitto_sub", "mosquitto_rr"):
        code = code.replace(f"{program} ", f"{program} -h 127.0.0.1 -p {port} ")
    done = subprocess.run(["/bin/sh", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.replace("Timed out\n", "") == ""
    return done.stdout


def connecting_to(port: int, method: Callable[..., Any]) -> Callable[..., Any]:
    """Have a method of paho's client take another port than the usual one."""
    return lambda self, host, *args, **more: method(self, host, port, *args, **more)


def test_from_a_shell(broker: Broker, ear: Ear) -> None:
    out = shell(example("From a shell", "sh"), broker.port)
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["id"] for event in events if event["event"] == "finished"] == ["fire-1", "gate-42"]


def test_ask_and_be_answered(broker: Broker, ear: Ear) -> None:
    voices, queue = [json.loads(line) for line in shell(example("Ask and be answered", "sh"), broker.port).splitlines()]
    assert "en_US-joe-medium" in {voice["name"] for voice in voices["voices"]}
    assert queue["event"] == "queue"


def test_from_python(broker: Broker, ear: Ear, tmp_path: Path) -> None:
    program = tmp_path / "say.py"
    program.write_text(example("From Python", "python").replace('"localhost")', f'"127.0.0.1", {broker.port})'))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "door accepted"
    assert lines[-1] == "door finished"
    assert lines.count("door word") == 3


class Ros:
    """As much of rclpy and std_msgs as the node needs, with the names and arguments that ROS 2 has."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, Callable[[Any], None]] = {}
        self.published: queue.SimpleQueue[bool] = queue.SimpleQueue()
        ros = self

        class Node:
            def __init__(self, node_name: str) -> None:
                self.node_name = node_name

            def declare_parameter(self, name: str, value: object) -> Any:  # noqa: ANN401
                return types.SimpleNamespace(value="127.0.0.1" if name == "broker" else value)

            def create_publisher(self, msg_type: type, topic: str, qos_profile: int) -> Any:  # noqa: ANN401
                return types.SimpleNamespace(publish=lambda message: ros.published.put(message.data))

            def create_subscription(
                self, msg_type: type, topic: str, callback: Callable[[Any], None], qos_profile: int
            ) -> None:
                ros.subscriptions[topic] = callback

            def destroy_node(self) -> None:
                pass

        class Message:
            def __init__(self, data: object = None) -> None:
                self.data = data

        self.modules = {
            "rclpy": types.ModuleType("rclpy"),
            "rclpy.node": types.ModuleType("rclpy.node"),
            "std_msgs": types.ModuleType("std_msgs"),
            "std_msgs.msg": types.ModuleType("std_msgs.msg"),
        }
        self.modules["rclpy.node"].Node = Node  # type: ignore[attr-defined]
        for name in ("Bool", "Empty", "String"):
            setattr(self.modules["std_msgs.msg"], name, Message)
        self.message = Message


def test_a_ros_node(broker: Broker, ear: Ear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ros = Ros()
    for name, module in ros.modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(paho.Client, "connect_async", connecting_to(broker.port, paho.Client.connect_async))
    program = tmp_path / "voice.py"
    program.write_text(example("A ROS 2 node", "python"))
    node = runpy.run_path(str(program))["Voice"]()
    try:
        ros.subscriptions["say"](ros.message("One, two."))
        assert [ros.published.get(timeout=20) for _ in range(2)] == [True, False]
        ros.subscriptions["say"](ros.message("One, two, three, four, five, six, seven, eight, nine, ten."))
        assert ros.published.get(timeout=20) is True
        ros.subscriptions["hush"](ros.message())
        assert ros.published.get(timeout=20) is False
        ear.wait_for(EVENT, lambda _: text_events(ear, "cancelled"))
    finally:
        node.client.disconnect()
        node.client.loop_stop()


def test_home_assistant(broker: Broker, ear: Ear) -> None:
    automations = yaml.safe_load(example("Home Assistant", "yaml"))["automation"]
    data = automations[0]["actions"][0]["data"]
    assert automations[0]["actions"][0]["action"] == "mqtt.publish"
    before = len(text_events(ear, "finished"))
    ear.publish(data["topic"], data["payload"], qos=data["qos"])
    ear.wait_for(EVENT, lambda _: len(text_events(ear, "finished")) > before)
    assert automations[1]["actions"][0]["action"] == "notify.send_message"
    assert automations[1]["actions"][0]["data"].keys() == {"message"}

"""What a sender may rely on: answers, groups, expiry, restarts, sessions, certificates."""

from __future__ import annotations

import json
import queue
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from integration.conftest import MakeDaemon
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from simulators.broker import Broker, Mosquitto
from simulators.certificates import Authority
from simulators.controller import DEVICE, Controller, Payload
from simulators.daemon_process import DaemonProcess

TIMEOUT_S = 60.0
LONG = "One two three four five six seven eight nine ten. " * 4


class Requester:
    """A sender that speaks MQTT 5."""

    def __init__(self, port: int) -> None:
        self.answers: queue.SimpleQueue[paho.MQTTMessage] = queue.SimpleQueue()
        subscribed = threading.Event()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        self._client.on_message = lambda _c, _u, message: self.answers.put(message)
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._client.subscribe([("answers/#", 1), (f"speakd/{DEVICE}/audio/#", 1)])
        assert subscribed.wait(TIMEOUT_S)

    def publish(
        self,
        payload: Payload,
        command: str = "speak",
        scope: str = f"speakd/{DEVICE}",
        **headers: Any,  # noqa: ANN401
    ) -> None:
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        for name, value in headers.items():
            setattr(properties, name, value)
        topic = f"{scope}/{command}"
        self._client.publish(topic, json.dumps(payload), qos=1, properties=properties).wait_for_publish(TIMEOUT_S)

    def next(self) -> paho.MQTTMessage:
        return self.answers.get(timeout=TIMEOUT_S)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def requester(broker: Broker) -> Iterator[Requester]:
    requester = Requester(broker.port)
    yield requester
    requester.close()


class TestMqtt5:
    def test_answers_come_on_the_response_topic_with_what_was_sent_along(
        self, daemon: DaemonProcess, controller: Controller, requester: Requester
    ) -> None:
        headers = {
            "ResponseTopic": "answers/here",
            "CorrelationData": b"\x007",
            "UserProperty": [("traceparent", "00-ab-cd-01")],
        }
        requester.publish({"id": "a", "text": "Yes."}, **headers)
        kinds = []
        while not kinds or kinds[-1] != "finished":
            message = requester.next()
            assert message.properties is not None
            assert message.properties.CorrelationData == b"\x007"
            assert message.properties.UserProperty == [("traceparent", "00-ab-cd-01")]
            assert message.properties.ContentType == "application/json"
            kinds.append(json.loads(message.payload)["event"])
        assert kinds == ["accepted", "started", "synthesized", "finished"]
        requester.publish({"request": "p"}, command="ping", **headers)
        assert json.loads(requester.next().payload)["event"] == "pong"
        requester.publish({"volume": 7}, command="volume/set", **headers)
        assert json.loads(requester.next().payload)["code"] == "field"
        assert [event["event"] for event in controller.wait_for_final("a")] == kinds

    def test_a_message_that_expires_is_not_spoken_late(
        self, daemon: DaemonProcess, controller: Controller, requester: Requester
    ) -> None:
        controller.publish({"id": "long", "text": LONG})
        controller.wait_for("long", "started")
        requester.publish({"id": "late", "text": "Too late."}, MessageExpiryInterval=1)
        assert [event["event"] for event in controller.wait_for_final("late")] == ["accepted", "expired"]
        assert all(event["event"] != "finished" for event in controller.events_of("long"))

    def test_a_stream_comes_in_pages(self, daemon: DaemonProcess, controller: Controller, requester: Requester) -> None:
        controller.publish({"id": "s", "text": "One, two, three.", "output": "stream"})
        finished = controller.wait_for_final("s")[-1]
        assert finished["location"] == f"speakd/{DEVICE}/audio/s"
        pages = b""
        while not pages or not pages_end(pages):
            message = requester.next()
            assert message.topic == finished["location"]
            assert message.payload.startswith(b"OggS")
            pages += message.payload

    def test_the_share_of_what_is_to_be_rendered(
        self, make_daemon: MakeDaemon, controller: Controller, requester: Requester, tmp_path: Path
    ) -> None:
        with make_daemon(render={"shared": True, "folder": str(tmp_path / "renders")}):
            controller.wait_for_status("online")
            requester.publish({"id": "r", "text": "Yes.", "output": "file"}, command="render", scope="speakd")
            assert controller.wait_for_final("r")[-1]["location"] == "r.wav"
            assert (tmp_path / "renders/r.wav").stat().st_size > 10_000
            requester.publish({"id": "x", "text": "Yes."}, command="render", scope="speakd")
            assert controller.wait_for_final("x")[-1]["code"] == "output"


def pages_end(pages: bytes) -> bool:
    """Tell whether the last page is marked as such."""
    return bool(pages[pages.rindex(b"OggS") + 5] & 4)


class TestCommands:
    def test_pause_resume_and_words(self, daemon: DaemonProcess, controller: Controller) -> None:
        controller.publish({"id": "a", "text": "One two three four five six seven eight nine ten.", "marks": True})
        controller.wait_until(lambda: len(words(controller, "a")) >= 3, "no words")
        controller.publish({"request": "p"}, command="pause")
        at_s = controller.wait_for("a", "interrupted")["at_s"]
        heard = words(controller, "a")
        assert at_s == heard[-1]["at_s"], "it stopped in its last word"
        controller.publish({}, command="queue/get")
        controller.wait_until(lambda: any(event["event"] == "queue" for event in controller.events), "no queue")
        (state,) = [event for event in controller.events if event["event"] == "queue"]
        assert state["paused"]
        assert [(queued["id"], queued["state"]) for queued in state["commands"]] == [("a", "interrupted")]
        controller.publish({}, command="resume")
        events = controller.wait_for_final("a")
        assert events[-1]["event"] == "finished"
        (resumed,) = [event for event in events if event["event"] == "resumed"]
        assert resumed["at_s"] == at_s
        indices = [event["index"] for event in words(controller, "a")]
        assert sorted(set(indices)) == list(range(10))
        assert len(indices) == 11, "the word where it stopped is heard again"
        whole = controller.speak({"id": "b", "text": "One two three four five six seven eight nine ten."})
        assert events[-1]["audio_s"] == whole[-1]["audio_s"]

    def test_of_a_group_and_of_all(self, make_daemon: MakeDaemon, controller: Controller) -> None:
        with make_daemon(device={"groups": ["hall", "east"]}):
            controller.wait_for_status("online")
            for number, scope in enumerate(("all", "group/hall", "group/east")):
                controller.publish({"id": str(number), "text": "Yes."}, scope=scope)
                assert controller.wait_for_final(str(number))[-1]["event"] == "finished"
            controller.publish({"id": "no", "text": "Yes."}, scope="group/west")
            controller.publish({"all": True, "request": "c"}, command="cancel", scope="all")
            controller.wait_until(lambda: any(e["event"] == "done" for e in controller.events), "no answer")
            assert not controller.events_of("no")

    def test_a_retained_one_of_any_kind_is_refused(self, daemon: DaemonProcess, controller: Controller) -> None:
        controller.publish({"muted": True}, command="mute/set", retain=True)
        controller.wait_until(lambda: any(e.get("code") == "retained" for e in controller.events), "no refusal")
        controller.publish(b"", command="mute/set", retain=True)

    def test_reply_to_is_for_those_without_a_response_topic(
        self, daemon: DaemonProcess, controller: Controller, requester: Requester
    ) -> None:
        controller.publish({"id": "a", "text": "Yes.", "reply_to": "answers/old"})
        assert json.loads(requester.next().payload)["event"] == "accepted"

    def test_no_topic_that_a_client_thinks_up_keeps_us_off_the_broker(
        self, daemon: DaemonProcess, controller: Controller
    ) -> None:
        for number, reply_to in enumerate(("a/\ufdd0", "a/\uffff", "/" * 500)):
            controller.publish({"id": str(number), "text": "Yes.", "reply_to": reply_to})
            assert controller.wait_for_final(str(number))[-1]["code"] == "reply_to"
        events = controller.speak({"id": "a\ufdd0/b#", "text": "Yes.", "output": "stream"})
        assert (events[-1]["event"], events[-1]["location"]) == ("finished", "speakd/bench/audio/a__b_")
        assert controller.speak({"id": "after", "text": "Yes."})[-1]["event"] == "finished"
        assert daemon.log.count("connected, MQTT 5") == 1

    def test_what_the_broker_does_not_take_is_left_out_and_not_tried_for_ever(
        self, tmp_path: Path, voice_packs: Path
    ) -> None:
        with (
            Mosquitto("max_packet_size 2500") as broker,
            Controller(broker.port) as controller,
            DaemonProcess(tmp_path, broker.port, packs=voice_packs) as daemon,
        ):
            controller.wait_for_status("online")
            controller.publish({}, command="pause")
            for number in range(24):
                controller.publish({"id": f"waiting {number}", "text": "One two three four five six seven eight. " * 3})
            controller.publish({"request": "large"}, command="queue/get")
            controller.publish({"request": "small"}, command="ping")
            controller.wait_until(lambda: any(e["event"] == "pong" for e in controller.events), "no answer")
            assert "for speakd/bench/event were dropped: the broker takes 2500 at most" in daemon.log
            assert daemon.log.count("connected, MQTT 5") == 1


def words(controller: Controller, command_id: str) -> list[Payload]:
    return [event for event in list(controller.events) if event["event"] == "word" and event["id"] == command_id]


class TestRestart:
    def test_after_a_kill_each_command_is_accounted_for(self, make_daemon: MakeDaemon, controller: Controller) -> None:
        with make_daemon() as daemon:
            controller.wait_for_status("online")
            controller.speak({"id": "done", "text": "Yes."})
            controller.publish({"id": "speaking", "text": LONG})
            controller.wait_for("speaking", "started")
            controller.publish({"id": "waiting", "text": "No."})
            controller.wait_for("waiting", "accepted")
            controller.publish(b"0.5", command="volume/set")
            controller.wait_until(lambda: any(e["event"] == "done" for e in controller.events), "no answer")
            daemon.kill()
            daemon.wait()
        with make_daemon():
            assert controller.wait_for_final("speaking")[-1]["code"] == "interrupted"
            assert controller.wait_for_final("waiting")[-1]["event"] == "finished"
            controller.publish({"id": "done", "text": "Yes."})
            assert controller.wait_for("done", "known")["final"]["event"] == "finished"
            assert [event["event"] for event in controller.events_of("done")].count("started") == 1
            assert controller.settings[-1]["volume"] == 0.5

    def test_what_came_while_it_was_down_is_spoken(self, make_daemon: MakeDaemon, controller: Controller) -> None:
        with make_daemon() as daemon:
            controller.wait_for_status("online")
            daemon.kill()
            daemon.wait()
        controller.publish({"id": "meanwhile", "text": "Yes."})
        with make_daemon():
            assert controller.wait_for_final("meanwhile")[-1]["event"] == "finished"

    def test_only_one_may_have_the_journal(self, daemon: DaemonProcess, make_daemon: MakeDaemon) -> None:
        with make_daemon() as second:
            assert second.wait() == 1
            assert "another speakd" in second.log


class TestConnection:
    def test_a_clone_is_told_of_and_forgotten_once_it_is_gone(
        self, daemon: DaemonProcess, controller: Controller, broker: Broker
    ) -> None:
        clone = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"speakd-{DEVICE}", protocol=paho.MQTTv5)
        clone.reconnect_delay_set(1, 1)
        clone.connect("127.0.0.1", broker.port)
        clone.loop_start()
        controller.wait_until(
            lambda: any("device.name" in str(status.get("connection")) for status in controller.statuses),
            "the clone is not told of",
        )
        clone.disconnect()
        clone.loop_stop()
        controller.wait_until(lambda: controller.statuses[-1].get("connection") == "ok", "it is told of for ever")
        assert controller.speak({"id": "a", "text": "Yes."})[-1]["event"] == "finished"

    def test_certificates_of_both_sides_and_a_clock_that_is_behind(self, tmp_path: Path, voice_packs: Path) -> None:
        authority = Authority(tmp_path / "authority")
        certificate, key = authority.issue("broker", starts_in_s=3600)
        own, own_key = authority.issue("kiosk")
        tls = [f"cafile {authority.ca}", f"certfile {certificate}", f"keyfile {key}", "require_certificate true"]
        with Mosquitto(*tls) as broker:
            settings = {
                "mqtt": {
                    "tls": True,
                    "tls_ca_file": str(authority.ca),
                    "tls_cert_file": str(own),
                    "tls_key_file": str(own_key),
                }
            }
            with DaemonProcess(tmp_path, broker.port, packs=voice_packs, settings=settings) as daemon:
                wait_for(lambda: "not yet valid" in daemon.log and "clock says" in daemon.log)
                broker.stop()
                assert authority.issue("broker") == (certificate, key)  # as if the clock were set
                broker.start()
                wait_for(lambda: "connected, MQTT 5" in daemon.log)

    def test_a_broker_that_nobody_vouches_for_is_not_spoken_to(self, tmp_path: Path, voice_packs: Path) -> None:
        certificate, key = Authority(tmp_path / "stranger").issue("broker")
        ours = Authority(tmp_path / "ours")
        with Mosquitto(f"certfile {certificate}", f"keyfile {key}") as broker:
            settings = {"mqtt": {"tls": True, "tls_ca_file": str(ours.ca)}}
            with DaemonProcess(tmp_path, broker.port, packs=voice_packs, settings=settings) as daemon:
                wait_for(lambda: "certificate verify failed" in daemon.log)
                assert "connected" not in daemon.log
            context = ssl.create_default_context(cafile=str(tmp_path / "stranger/ca.pem"))
            with socket.create_connection(("127.0.0.1", broker.port)) as plain:
                context.wrap_socket(plain, server_hostname="127.0.0.1").close()  # the broker was in order


def wait_for(condition: Any) -> None:  # noqa: ANN401
    pause = threading.Event()
    for _ in range(int(2 * TIMEOUT_S / 0.1)):
        if condition():
            return
        pause.wait(0.1)
    raise AssertionError("it did not come about")

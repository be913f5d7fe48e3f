"""Brokers that are late, die, freeze, or speak an older MQTT; and what is said at the end."""

from __future__ import annotations

from pathlib import Path

from integration.conftest import MakeDaemon
from simulators.broker import Amqtt, Broker
from simulators.controller import Controller
from simulators.daemon_process import DaemonProcess
from simulators.waiting import wait_until

LONG = "This is a long text that takes a while. " * 10


def kinds(events: list[dict[str, object]]) -> list[object]:
    return [event["event"] for event in events]


def test_a_broker_that_comes_later_is_found(make_daemon: MakeDaemon, broker: Broker) -> None:
    broker.stop()
    with make_daemon() as daemon:
        broker.start()
        with Controller(broker.port) as controller:
            controller.wait_for_status("online")
            assert kinds(controller.speak({"id": "a", "text": "Yes."}))[-1] == "finished"
        assert daemon.running


def test_after_the_broker_was_restarted_commands_are_heard_again(
    daemon: DaemonProcess, controller: Controller, broker: Broker
) -> None:
    for command_id in ("a", "b"):
        seen = len(controller.statuses)
        broker.kill()
        broker.start()  # it has forgotten every subscription and the status
        controller.wait_for_status("online", after=seen)
        assert kinds(controller.speak({"id": command_id, "text": "Yes."}))[-1] == "finished"
    assert daemon.log.count("connected, MQTT 5") == 3


def test_what_happened_while_the_broker_was_away_is_told_afterwards(
    daemon: DaemonProcess, controller: Controller, broker: Broker
) -> None:
    controller.publish({"id": "a", "text": "One, two, three."})
    controller.wait_for("a", "started")
    broker.kill()
    broker.start()
    assert kinds(controller.wait_for_final("a"))[-1] == "finished"
    assert daemon.running


def test_a_broker_that_only_seems_to_be_there_is_given_up(
    make_daemon: MakeDaemon, controller: Controller, broker: Broker
) -> None:
    with make_daemon(mqtt={"keepalive_s": 5}) as daemon:
        controller.wait_for_status("online")
        broker.freeze()  # as when a cable is pulled: nobody hangs up
        wait_until(lambda: "connection to the broker was lost" in daemon.log, lambda: daemon.log)
        broker.kill()
        seen = len(controller.statuses)
        broker.start()
        controller.wait_for_status("online", after=seen)
        assert kinds(controller.speak({"id": "a", "text": "Yes."}))[-1] == "finished"


def test_a_broker_that_speaks_only_3_1_1_will_do(tmp_path: Path, voice_packs: Path) -> None:
    with (
        Amqtt() as broker,
        Controller(broker.port) as controller,
        DaemonProcess(tmp_path, broker.port, packs=voice_packs) as daemon,
    ):
        controller.wait_for_status("online")
        assert kinds(controller.speak({"id": "a", "text": "Yes."})) == [
            "accepted",
            "started",
            "synthesized",
            "finished",
        ]
        assert "connected, MQTT 3.1.1" in daemon.log
        daemon.terminate()
        assert daemon.wait() == 0
        controller.wait_for_status("stopped")


class TestEnd:
    def test_a_stop_is_clean(self, daemon: DaemonProcess, controller: Controller) -> None:
        daemon.terminate()
        assert daemon.wait() == 0
        controller.wait_for_status("stopped")
        assert not [status for status in controller.statuses if status["state"] == "offline"]

    def test_a_stop_is_still_known_to_whoever_comes_later(
        self, daemon: DaemonProcess, controller: Controller, broker: Broker
    ) -> None:
        daemon.terminate()
        controller.wait_for_status("stopped")
        daemon.wait()
        with Controller(broker.port) as late:
            late.wait_for_status("stopped")

    def test_a_kill_leaves_the_will(self, daemon: DaemonProcess, controller: Controller) -> None:
        daemon.kill()
        daemon.wait()
        controller.wait_for_status("offline")

    def test_in_mid_speech_every_command_has_its_end(self, daemon: DaemonProcess, controller: Controller) -> None:
        controller.publish({"id": "a", "text": LONG})
        controller.publish({"id": "b", "text": LONG})
        controller.wait_for("a", "started")
        controller.wait_for("b", "accepted")
        daemon.terminate()
        assert daemon.wait() == 0
        for command_id in ("a", "b"):
            events = controller.wait_for_final(command_id)
            assert kinds(events)[-1] == "failed"
            assert events[-1]["code"] == "stopped"
        controller.wait_for_status("stopped")
        assert len(controller.finals()) == 2

    def test_a_stop_without_a_broker_does_not_wait_for_one(self, daemon: DaemonProcess, broker: Broker) -> None:
        broker.kill()
        daemon.terminate()
        assert daemon.wait() == 0

    def test_a_stop_does_not_wait_for_a_broker_that_hangs(self, daemon: DaemonProcess, broker: Broker) -> None:
        broker.freeze()
        daemon.terminate()
        assert daemon.wait() == 0


class TestRetained:
    def test_a_command_kept_from_before_is_rejected(self, make_daemon: MakeDaemon, controller: Controller) -> None:
        controller.publish({"id": "a", "text": LONG}, retain=True)
        with make_daemon():
            controller.wait_for_status("online")
            controller.wait_for_finals(1)
            assert [(event["event"], event["code"]) for event in controller.events] == [("rejected", "retained")]
            # It stands in nobody's way.
            controller.publish("", retain=True)
            assert kinds(controller.speak({"id": "b", "text": "Yes."}))[-1] == "finished"
            assert controller.events_of("a") == []

    def test_one_that_is_kept_from_now_on_is_too(self, daemon: DaemonProcess, controller: Controller) -> None:
        controller.publish({"id": "a", "text": LONG}, retain=True)
        controller.wait_for_finals(1)
        assert [(event["event"], event["code"]) for event in controller.events] == [("rejected", "retained")]
        assert daemon.running

"""What people look at, through a real broker."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from simulators.broker import Broker, free_port
from simulators.controller import Controller
from simulators.daemon_process import DaemonProcess
from simulators.fleet import Devices
from textual.widgets import Static

from daemon import cli
from daemon.config import MqttConfig
from daemon.events import QueuedCommand
from daemon.views.top import Top
from daemon.views.watch import Watch

TIMEOUT_S = 60.0
HOSTILE = "[red]no[/] ]\x1b[2J[b \u202e $x \\"


@pytest.fixture
def devices(broker: Broker) -> Iterator[Devices]:
    with Devices(broker.port) as devices:
        yield devices


def fleet(broker: Broker, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = cli.main(["fleet", "--host", "127.0.0.1", "--port", str(broker.port), *arguments])
    return status, capsys.readouterr().out


class TestFleet:
    def test_the_worst_comes_first_and_says_why(
        self, broker: Broker, devices: Devices, capsys: pytest.CaptureFixture[str]
    ) -> None:
        devices.online("well")
        devices.online("slow", response_ms=300, alerts=("ttfa_p95",))
        devices.online("slower-but-well", response_ms=90)
        devices.online("hot", alerts=("throttling",), throttling=("cpu-throttle-alert",))
        devices.online("deaf", audio="alsa default: cannot be opened")
        devices.online("blind", degraded={"jtop": "does not answer"})
        devices.online("hung", time="2026-01-01T00:00:00Z")
        devices.say("gone", "status", '{"state": "offline", "version": "0.1.0"}')
        devices.say("strange", "telemetry", "no JSON")
        status, out = fleet(broker, capsys)
        lines = out.splitlines()
        names = [line.split()[0] for line in lines]
        assert names[0] == "device"
        assert names[1] == "gone"
        assert set(names[2:4]) == {"hot", "deaf"}
        assert set(names[4:7]) == {"slow", "strange", "hung"}
        assert names[7:] == ["blind", "slower-but-well", "well"]
        assert status == 1
        assert "cannot be opened" in next(line for line in lines if line.startswith("deaf"))
        assert "jtop: does not answer" in out
        assert "another version" in out
        assert max(len(line.rstrip()) for line in lines[7:]) < 120

    def test_for_a_program(self, broker: Broker, devices: Devices, capsys: pytest.CaptureFixture[str]) -> None:
        devices.online("well")
        status, out = fleet(broker, capsys, "--json")
        (described,) = json.loads(out)
        assert (status, described["device"], described["rank"], described["trouble"]) == (0, "well", "well", "")
        assert described["telemetry"]["ttfa_ms"]["response"]["p50"] == 32.0
        assert described["status"]["voice"] == "en_US-joe-medium"

    def test_what_a_device_calls_itself_moves_no_cursor(
        self, broker: Broker, devices: Devices, capsys: pytest.CaptureFixture[str]
    ) -> None:
        devices.online("well", degraded={"jtop": HOSTILE}, mode=HOSTILE)
        _, out = fleet(broker, capsys)
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert len(out.splitlines()) == 2

    def test_nobody_and_no_broker(self, broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
        assert fleet(broker, capsys) == (0, "")
        assert cli.main(["fleet", "--host", "127.0.0.1", "--port", str(free_port()), "--wait", "1"]) == 1
        assert "cannot be reached" in capsys.readouterr().err
        assert cli.main(["fleet", "--port", "70000"]) == 1

    def test_a_fleet_that_never_falls_silent_is_told_of_soon(
        self, broker: Broker, devices: Devices, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for number in range(20):
            devices.online(f"kiosk-{number}")
        ends = threading.Event()

        def chatter() -> None:
            while not ends.wait(0.05):
                devices.online("kiosk-7")

        thread = threading.Thread(target=chatter)
        thread.start()
        began = time.monotonic()
        try:
            _, out = fleet(broker, capsys, "--wait", "300")
        finally:
            ends.set()
            thread.join()
        assert len(out.splitlines()) == 21
        assert time.monotonic() - began < 150, "it waited to the end"

    def test_a_broker_that_lets_us_hear_nothing_is_no_empty_fleet(self, capsys: pytest.CaptureFixture[str]) -> None:
        with deaf_broker() as port:
            assert cli.main(["fleet", "--host", "127.0.0.1", "--port", str(port), "--wait", "3"]) == 1
        assert "lets us hear nothing" in capsys.readouterr().err

    def test_what_one_hears_is_told_though_the_broker_refuses_the_rest(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        topic, payload = b"speakd/well/status", b'{"state": "online", "version": "0.1.0"}'
        body = len(topic).to_bytes(2, "big") + topic + b"\x00" + payload
        with deaf_broker(b"\x01\x87\x87", b"\x31" + bytes([len(body)]) + body) as port:
            assert cli.main(["fleet", "--host", "127.0.0.1", "--port", str(port), "--wait", "30"]) == 0
        assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["well", "online"]

    def test_a_broker_that_hangs_up_before_it_told_all_is_no_empty_fleet(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with deaf_broker(None) as port:
            assert cli.main(["fleet", "--host", "127.0.0.1", "--port", str(port), "--wait", "3"]) == 1
        assert "the connection was lost" in capsys.readouterr().err

    @pytest.mark.parametrize("wait", ["0", "-1", "nan", "inf", "soon"])
    def test_a_wait_that_is_none_is_told(self, wait: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            cli.main(["fleet", f"--wait={wait}"])
        assert f"{wait} is no time from 0" in capsys.readouterr().err

    def test_clocks_that_do_not_follow_are_a_notice(
        self, broker: Broker, devices: Devices, capsys: pytest.CaptureFixture[str]
    ) -> None:
        devices.online("well")
        devices.online("slack", power="the power helper cannot be reached")
        _, out = fleet(broker, capsys)
        first, second = out.splitlines()[1:]
        assert first.startswith("slack")
        assert "clocks do not follow: the power helper cannot be reached" in first
        assert second.endswith(" 251")

    def test_a_real_daemon(
        self,
        broker: Broker,
        daemon: DaemonProcess,
        controller: Controller,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        controller.wait_for_status("online")
        status, out = fleet(broker, capsys)
        assert status == 0
        assert out.splitlines()[1].split()[:2] == ["bench", "online"]


@contextlib.contextmanager
def deaf_broker(answer: bytes | None = b"\x87\x87\x87", more: bytes = b"") -> Iterator[int]:
    """Give the port of a broker that takes everybody and refuses what they subscribe to (not authorized), in MQTT 5.

    `answer`: to each subscription, or None to hang up instead; `more` is sent then.
    """

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(4096)
            client.sendall(b"\x20\x03\x00\x00\x00")
            if answer is None:
                return
            subscription = client.recv(4096)
            client.sendall(b"\x90\x06" + subscription[2:4] + b"\x00" + answer + more)
            while client.recv(4096):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
    thread.join(TIMEOUT_S)


@contextlib.contextmanager
def watching(port: int, device: str) -> Iterator[Top]:
    with contextlib.closing(Watch(MqttConfig(host="127.0.0.1", port=port), device)) as watch:
        yield Top(watch, device, f"127.0.0.1:{port}")


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)  # the app runs in this loop


def shown(app: Top, panel: str) -> str:
    return str(app.query_one(f"#{panel}", Static).render())


class TestTop:
    def test_it_shows_what_a_device_says_and_what_waits(self, broker: Broker, devices: Devices, tmp_path: Path) -> None:
        devices.online("kiosk-7", degraded={"jtop": "does not answer"})

        async def look() -> None:
            with watching(broker.port, "kiosk-7") as app:
                async with app.run_test(size=(130, 42)) as pilot:
                    await until(lambda: "6.1 W" in shown(app, "power"))
                    assert "● online" in shown(app, "head")
                    assert "latency" in shown(app, "mode")
                    assert "4 s ago" in shown(app, "mode")
                    assert "cpu-thermal" in shown(app, "zones")
                    assert "54.4" in shown(app, "stages")  # p95 of the response
                    assert "jtop: does not answer" in shown(app, "trouble")
                    speaking = {"id": "a", "state": "speaking", "priority": "message", "chars": 9, "text": "Mind it."}
                    waiting = {"id": "b", "state": "waiting", "priority": "critical", "chars": 9, "text": HOSTILE}
                    commands = [QueuedCommand.model_validate(one) for one in (speaking, waiting)]
                    await asyncio.to_thread(devices.answer_queue, "kiosk-7", commands)
                    await until(lambda: "Mind it." in shown(app, "now"))
                    assert "[red]no[/] ]" in shown(app, "now")  # as it is: no markup, no cursor moved
                    assert "\x1b" not in shown(app, "now")
                    for number in range(30):
                        devices.utterance("kiosk-7", f"u{number}", 30 + number % 7)
                    await until(lambda: len(app.seen.first_sounds_ms) == 30)
                    devices.raise_alert("kiosk-7", "throttling", "the board slows itself down", critical=True)
                    await until(lambda: "slows itself down" in shown(app, "trouble"))
                    app.save_screenshot("top.svg", path=str(tmp_path))
                    assert "Mind" in (tmp_path / "top.svg").read_text(encoding="utf-8")
                    await pilot.press("p")
                    assert await asyncio.to_thread(devices.wait_for, "kiosk-7", "pause") == {}
                    await pilot.press("s")
                    assert await asyncio.to_thread(devices.wait_for, "kiosk-7", "skip") == {}

        asyncio.run(look())

    def test_its_tables_fit_into_the_smallest_usual_terminal(self, broker: Broker, devices: Devices) -> None:
        devices.online("kiosk-7", response_ms=9_999.9, temperatures_c={"cpu": 51.2, "soc012": 104.5})

        async def look() -> None:
            with watching(broker.port, "kiosk-7") as app:
                async with app.run_test(size=(80, 24)) as pilot:
                    await until(lambda: "6.1 W" in shown(app, "power"))
                    await pilot.pause()
                    for name in ("stages", "zones"):
                        panel = app.query_one(f"#{name}", Static)
                        assert panel.size.height == len(shown(app, name).splitlines()), f"lines of {name} are broken"

        asyncio.run(look())

    def test_a_device_that_is_not_there_and_a_broker_that_goes_away(self, broker: Broker) -> None:
        async def look() -> None:
            with watching(broker.port, "nobody") as app:
                async with app.run_test(size=(80, 24)):
                    await until(lambda: "nothing is known" in shown(app, "head"))
                    broker.kill()
                    await until(lambda: "no connection" in shown(app, "head"))

        asyncio.run(look())

    def test_a_real_daemon_and_what_it_really_says(
        self, broker: Broker, daemon: DaemonProcess, controller: Controller
    ) -> None:
        async def look() -> None:
            with watching(broker.port, "bench") as app:
                async with app.run_test(size=(130, 42)):
                    await until(lambda: "en_US-joe-medium" in shown(app, "head"))
                    controller.send({"id": "a", "text": "The train to Berlin will depart from platform seven. " * 20})
                    await until(lambda: "The train to Berlin" in shown(app, "now"))
                    await until(lambda: bool(app.seen.first_sounds_ms))
                    controller.send({"all": True}, command="cancel")
                    await until(lambda: "nothing" in shown(app, "now"))

        asyncio.run(look())

"""1,000 devices on one broker: what their telemetry and a command to all of them cost, and what 100,000 would.

    python tests/bench/fleet.py [--devices 1000] [--seconds 20] [--json]

Each device is a connection of its own that does on the wire what a daemon does: it subscribes to its own commands,
those to all and those to its group, publishes a retained status, and then its telemetry once per `--period` seconds.
The devices are simulated (one small process speaks MQTT 3.1.1 for all of them); broker, topics and payloads are the
real ones. A `ping` to all and a `volume/set` to one group are answered by each device that they are meant for.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:1] = [str(TESTS.parent), str(TESTS)]  # not this folder, where a file would be taken for our package daemon

from simulators.broker import Mosquitto
from simulators.figures import figures
from simulators.fleet import latency

from daemon.config import TelemetryConfig
from daemon.events import Done, Pong, Settings, Status
from daemon.telemetry_messages import Memory
from daemon.topics import Topics

GROUPS = 20
BROKER_MESSAGES_PER_S = 100_000
"""A cautious figure for one node of a clustered broker (EMQX, VerneMQ and HiveMQ publish several times as much)."""

BROKER_CONNECTIONS = 50_000
"""Likewise."""


def remaining_length(size: int) -> bytes:
    out = bytearray()
    while True:
        size, digit = size >> 7, size & 0x7F
        out.append(digit | (0x80 if size else 0))
        if not size:
            return bytes(out)


def packet(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + remaining_length(len(body)) + body


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">H", len(data)) + data


class Device:
    """One device: what it sends, and what it does with what it gets."""

    def __init__(self, number: int, port: int) -> None:
        self.name = f"kiosk-{number:05}"
        self.group = f"hall-{number % GROUPS}"
        self.topics = Topics("speakd", self.name, [self.group])
        self.sent_bytes = self.received_bytes = self.sent = self.received = 0
        self.answered: dict[str, float] = {}
        self._rest = b""
        self._mid = 0
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        flags = 0x02 | 0x04 | 0x08 | 0x20  # clean session, a will with QoS 1 that is retained
        will = Status(state="offline", version="0.1.0").to_json()
        connect = text("MQTT") + bytes([4, flags]) + struct.pack(">H", 60)
        self.send(packet(0x10, connect + text(f"speakd-{self.name}") + text(self.topics.status) + text(will)))
        filters = b"".join(text(topic) + b"\1" for topic in self.topics.filters)
        self.send(packet(0x82, struct.pack(">H", self.next_mid()) + filters))
        self.publish(self.topics.status, self.status(), retain=True)
        self.socket.setblocking(False)  # noqa: FBT003

    def status(self) -> str:
        return Status(
            state="online",
            version="0.1.0",
            voice="en_US-joe-medium",
            backend="onnxruntime-cpu",
            precision="fp32",
            output="alsa default (48000 Hz, float32, mono, 5760 frames in periods of 480)",
            audio="ok",
            commands="ok",
            connection="ok",
            realtime={"priority": "done", "precedence": "done", "memory": "done", "garbage": "done"},
        ).to_json()

    def telemetry(self) -> str:
        """Give what a board with all its sensors says after a day's work."""
        return figures(
            mode="efficiency",
            reason="nobody has asked for 300 s",
            power_mode="15W",
            ttfa_ms=latency(32.1),
            rtf=0.068,
            utterances=1204,
            cache_hits=377,
            cache_share=0.313,
            underruns=0,
            encoder_packets=0,
            encoder_drops=0,
            memory_mb=Memory(process=251.3, pool_used=0, pool=73.2, gpu_used=2210.4, gpu=7607.1, available=4101.6),
            gpu_load=0.312,
            cpu_load=0.123,
            clocks_mhz={"cpu": 1510, "gpu": 625, "emc": 2133},
            temperatures_c=dict.fromkeys(("cpu-thermal", "gpu-thermal", "soc0-thermal", "tj-thermal"), 51.2),
            rails_mw={"VDD_IN": 6120, "VDD_CPU_GPU_CV": 1820, "VDD_SOC": 1490},
            power_mw=6120,
            energy_mj_per_s=6900.0,
        ).to_json()

    def next_mid(self) -> int:
        self._mid = self._mid % 65535 + 1
        return self._mid

    def send(self, data: bytes) -> None:
        self.sent_bytes += len(data)
        self.socket.sendall(data)

    def publish(self, topic: str, payload: str, *, retain: bool = False, qos: int = 1) -> None:
        self.sent += 1
        head = text(topic) + (struct.pack(">H", self.next_mid()) if qos else b"")
        self.send(packet(0x30 | qos << 1 | retain, head + payload.encode()))

    def receive(self) -> None:
        data = self.socket.recv(65536)
        self.received_bytes += len(data)
        self._rest += data
        while len(self._rest) >= 2:
            size, length = 0, 1
            while self._rest[length] & 0x80:
                size |= (self._rest[length] & 0x7F) << 7 * (length - 1)
                length += 1
                if length >= len(self._rest):
                    return
            size |= self._rest[length] << 7 * (length - 1)
            end = length + 1 + size
            if len(self._rest) < end:
                return
            kind, body = self._rest[0], self._rest[length + 1 : end]
            self._rest = self._rest[end:]
            if kind & 0xF0 == 0x30:
                self.command(kind, body)

    def command(self, kind: int, body: bytes) -> None:
        self.received += 1
        (size,) = struct.unpack_from(">H", body)
        topic, rest = body[2 : 2 + size].decode(), body[2 + size :]
        if kind & 0x06:
            self.send(packet(0x40, rest[:2]))
            rest = rest[2:]
        request = json.loads(rest)["request"]
        self.answered[request] = time.monotonic()
        if topic.endswith("/ping"):
            self.publish(self.topics.event, Pong(request=request).to_json())
        else:
            self.publish(self.topics.settings, Settings(version=1, volume=0.5).to_json(), retain=True)
            self.publish(self.topics.event, Done(request=request, command="volume/set").to_json())


class Fleet:
    """All of them, in one thread."""

    def __init__(self, devices: int, port: int) -> None:
        self._selector = selectors.DefaultSelector()
        self.devices = [Device(number, port) for number in range(devices)]
        for device in self.devices:
            self._selector.register(device.socket, selectors.EVENT_READ, device)

    def serve(self, until: float) -> None:
        while (left := until - time.monotonic()) > 0:
            for key, _ in self._selector.select(min(left, 0.05)):
                key.data.receive()

    def close(self) -> None:
        for device in self.devices:
            device.socket.close()

    def count(self, what: str) -> int:
        return sum(getattr(device, what) for device in self.devices)


def measure(devices: int, seconds: float, period_s: float) -> dict[str, Any]:
    with Mosquitto() as broker:
        began = time.monotonic()
        fleet = Fleet(devices, broker.port)
        fleet.serve(time.monotonic() + 2)
        connect_s = time.monotonic() - began
        watcher = Device(99_999, broker.port)
        watcher.send(packet(0x82, struct.pack(">H", 7) + text("speakd/+/telemetry") + b"\0"))
        watcher.socket.setblocking(False)  # noqa: FBT003
        telemetry = telemetry_phase(fleet, seconds, period_s)
        found = {
            "devices": devices,
            "connect_s": round(connect_s, 1),
            "telemetry": telemetry,
            "ping_all": command_phase(fleet, broker.port, "speakd/all/ping", {}),
            "volume_to_one_group": command_phase(fleet, broker.port, "speakd/group/hall-3/volume/set", {"volume": 0.5}),
        }
        watcher.socket.close()
        fleet.close()
    found["extended"] = [extended(count, found, period_s) for count in (1_000, 10_000, 100_000)]
    return found


def telemetry_phase(fleet: Fleet, seconds: float, period_s: float) -> dict[str, float]:
    """Have each device publish its telemetry once per period, evenly in time."""
    devices = fleet.devices
    sent, size = fleet.count("sent"), fleet.count("sent_bytes")
    began = time.monotonic()
    due = 0
    while (passed := time.monotonic() - began) < seconds:
        while due < passed / period_s * len(devices):
            device = devices[due % len(devices)]
            device.publish(device.topics.telemetry, device.telemetry(), retain=True, qos=0)
            due += 1
        fleet.serve(time.monotonic() + 0.01)
    passed = time.monotonic() - began
    sent, size = fleet.count("sent") - sent, fleet.count("sent_bytes") - size
    return {
        "messages_per_s": round(sent / passed, 1),
        "bytes_per_message": round(size / sent, 1),
        "bytes_per_device_and_s": round(size / len(devices) / passed, 1),
    }


def command_phase(fleet: Fleet, port: int, topic: str, payload: dict[str, Any]) -> dict[str, float]:
    """Publish one command to many; tell how soon all have answered."""
    sender = Device(88_888, port)
    for device in fleet.devices:
        device.answered.clear()
    sent, out, received = fleet.count("sent"), fleet.count("sent_bytes"), fleet.count("received_bytes")
    began = time.monotonic()
    sender.socket.setblocking(True)  # noqa: FBT003
    sender.publish(topic, json.dumps({"request": "r", **payload}))
    expected = [d for d in fleet.devices if "/all/" in topic or f"/{d.group}/" in topic]
    while not all("r" in device.answered for device in expected) and time.monotonic() - began < 60:
        fleet.serve(time.monotonic() + 0.02)
    last = max(device.answered.get("r", float("inf")) for device in expected) - began
    fleet.serve(time.monotonic() + 1)
    sender.socket.close()
    others = [d for d in fleet.devices if d not in expected and "r" in d.answered]
    return {
        "meant_for": len(expected),
        "answered": sum("r" in device.answered for device in expected),
        "others_answered": len(others),
        "last_after_ms": round(last * 1000, 1),
        "answers": fleet.count("sent") - sent,
        "bytes_per_device": round(
            (fleet.count("sent_bytes") - out + fleet.count("received_bytes") - received) / len(expected), 1
        ),
    }


def extended(devices: int, found: dict[str, Any], period_s: float) -> dict[str, float]:
    """Extend the figures, which grow with the number of devices, and say how many broker nodes that takes."""
    per_message = found["telemetry"]["bytes_per_message"]
    messages = devices / period_s
    nodes = max(-(-devices // BROKER_CONNECTIONS), -(-int(2 * messages) // BROKER_MESSAGES_PER_S))
    burst = devices * BROKER_MESSAGES_PER_S**-1 / nodes
    return {
        "devices": devices,
        "telemetry_messages_per_s": round(messages),
        "telemetry_mbit_per_s": round(messages * per_message * 8 / 1e6, 2),
        "ping_all_messages": 2 * devices,
        "ping_all_mb": round(devices * found["ping_all"]["bytes_per_device"] / 1e6, 2),
        "ping_all_at_least_s": round(2 * burst, 2),
        "broker_nodes": nodes,
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--devices", type=int, default=1000)
    arguments.add_argument("--seconds", type=float, default=20)
    arguments.add_argument("--period", type=float, default=TelemetryConfig().interval_s)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    found = measure(options.devices, options.seconds, options.period)
    if options.json:
        print(json.dumps(found))
        return
    for what in ("devices", "connect_s", "telemetry", "ping_all", "volume_to_one_group"):
        print(f"{what}: {found[what]}")
    columns = list(found["extended"][0])
    print("| " + " | ".join(columns) + " |")
    for row in found["extended"]:
        print("| " + " | ".join(str(row[column]) for column in columns) + " |")


if __name__ == "__main__":
    main()

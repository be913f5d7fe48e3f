"""Devices that say on a real broker what devices say, without speaking: what views look at."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from simulators.figures import figures

from daemon.events import Accepted, Finished, QueuedCommand, QueueState, Settings, Started, Status
from daemon.telemetry_messages import Alert, Latency, Memory, Percentiles

TIMEOUT_S = 60.0


def percentiles(middle: float) -> Percentiles:
    return Percentiles(p50=middle, p95=round(middle * 1.7, 1), p99=round(middle * 2.2, 1))


def latency(response_ms: float) -> Latency:
    return Latency(
        whole=percentiles(response_ms * 1.4),
        response=percentiles(response_ms),
        queue=percentiles(response_ms * 0.4),
        text=percentiles(1.2),
        acoustic=percentiles(response_ms * 0.5),
        window=percentiles(response_ms * 0.4),
        sink=percentiles(0.4),
    )


class Devices:
    """Publishes as some devices would, and keeps the commands that they get; from entering the block to leaving it."""

    def __init__(self, port: int) -> None:
        self.commands: list[tuple[str, dict[str, Any]]] = []
        self._changed = threading.Condition()
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.on_message = self._take
        self._client.connect("127.0.0.1", port)

    def __enter__(self) -> Devices:  # noqa: PYI034  typing.Self is of Python 3.11
        ready = threading.Event()
        self._client.on_subscribe = lambda *_: ready.set()
        self._client.loop_start()
        ends = ("speak", "pause", "resume", "skip", "queue/get")
        self._client.subscribe([(f"speakd/+/{end}", 1) for end in ends])
        assert ready.wait(TIMEOUT_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def say(self, device: str, kind: str, message: Any) -> None:  # noqa: ANN401  a model, or what is none
        payload = message if isinstance(message, str | bytes) else message.to_json()
        info = self._client.publish(f"speakd/{device}/{kind}", payload, qos=1, retain=kind not in {"event", "alert"})
        info.wait_for_publish(TIMEOUT_S)

    def online(self, device: str, response_ms: float = 32.0, **wanted: Any) -> None:  # noqa: ANN401  figures
        """Have a device be there, and in order unless `wanted` says otherwise."""
        audio, power = wanted.pop("audio", "ok"), wanted.pop("power", "ok")
        status = Status(
            state="online",
            version="0.1.0",
            voice="en_US-joe-medium",
            backend="tensorrt",
            precision="fp16",
            output="alsa plughw:CARD=Device",
            audio=audio,
            commands="ok",
            connection="ok",
            power=power,
        )
        usual: dict[str, Any] = {
            "uptime_s": 93_784,
            "mode": "latency",
            "reason": "a command came 4 s ago",
            "power_mode": "15W",
            "ttfa_ms": latency(response_ms),
            "rtf": 0.068,
            "utterances": 1204,
            "cache_hits": 377,
            "underruns": 0,
            "encoder_drops": 0,
            "memory_mb": Memory(process=251, pool_used=1.5, pool=73.2, gpu_used=2210, gpu=7607, available=4100),
            "gpu_load": 0.31,
            "cpu_load": 0.12,
            "clocks_mhz": {"gpu": 625, "cpu": 1510, "emc": 2133},
            "temperatures_c": {"cpu-thermal": 51.2, "gpu-thermal": 49.9, "soc0-thermal": 48.4, "tj-thermal": 52.0},
            "rails_mw": {"VDD_IN": 6120, "VDD_CPU_GPU_CV": 1820, "VDD_SOC": 1490},
            "power_mw": 6120,
            "energy_mj_per_s": 6900.0,
        }
        self.say(device, "status", status)
        self.say(device, "settings", Settings(volume=0.8))
        self.say(device, "telemetry", figures(**{**usual, **wanted}))

    def raise_alert(self, device: str, name: str, reason: str, *, critical: bool = False) -> None:
        severity: Any = "critical" if critical else "warning"
        self.say(
            device,
            "alert",
            Alert(alert=name, state="raised", severity=severity, value=1.0, threshold=None, unit="", reason=reason),
        )

    def utterance(self, device: str, name: str, ttfa_ms: float) -> None:
        for event in (
            Accepted(id=name, ahead=0),
            Started(id=name, ttfa_ms=ttfa_ms, output="alsa"),
            Finished(id=name, audio_s=2.0, total_ms=2100),
        ):
            self.say(device, "event", event)

    def answer_queue(self, device: str, commands: Iterable[QueuedCommand]) -> None:
        """Answer the next `queue/get` of a device."""
        request = self.wait_for(device, "queue/get")["request"]
        self.say(device, "event", QueueState(request=request, paused=False, commands=tuple(commands)))

    def wait_for(self, device: str, end: str) -> dict[str, Any]:
        """Wait for a command to a device; gives its payload, and forgets it."""
        wanted = f"{device}/{end}"
        with self._changed:
            assert self._changed.wait_for(lambda: any(topic == wanted for topic, _ in self.commands), TIMEOUT_S), wanted
            found = next(one for one in self.commands if one[0] == wanted)
            self.commands.remove(found)
            return found[1]

    def _take(self, _client: paho.Client, _userdata: object, message: paho.MQTTMessage) -> None:
        with self._changed:
            self.commands.append((message.topic.removeprefix("speakd/"), json.loads(message.payload)))
            self._changed.notify_all()

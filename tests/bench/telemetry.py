"""What telemetry costs: processor time of the daemon and bytes on the wire, at the default settings.

    python tests/bench/telemetry.py [--seconds 120] [--utterances 2000] [--json]

`desk`: the thread's own time for counting, judging and publishing, measured in this process with a board's full
figures, one utterance and one reading a second; and the same with a mode that changes every second. `daemon`: a real
daemon that says nothing for `--seconds`; all that it then does is telemetry and keeping alive. The bytes are those of
the PUBLISH packets, topic and head included.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:1] = [str(TESTS.parent), str(TESTS)]  # not this folder, where a file would be taken for our package daemon

import paho.mqtt.client as paho
from conftest import import_default_voice
from paho.mqtt.enums import CallbackAPIVersion
from simulators.broker import Mosquitto
from simulators.controller import DEVICE, Controller
from simulators.daemon_process import DaemonProcess

from daemon.config import AlertsConfig, TelemetryConfig
from daemon.events import Finished, Started
from daemon.figures import Figures, Vitals
from daemon.inbox import ModeChanged, PlaybackEnded, PlaybackStarted, ReadingTaken, SynthesisEnded
from daemon.stages import Stages
from daemon.telemetry import Desk
from daemon.telemetry_messages import Telemetry
from power.mode import Decision, Mode
from power.reading import Clock, Rail, Reading

ZONES = ("cpu-thermal", "gpu-thermal", "cv0-thermal", "cv1-thermal", "cv2-thermal", "soc0-thermal", "soc1-thermal")
RAILS = ("VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC")
HEAD = len(f"speakd/{DEVICE}/telemetry") + 6


def reading(at_s: float) -> Reading:
    """All that a board of Orin's size says."""
    return Reading(
        at_s,
        temperatures=dict.fromkeys((*ZONES, "soc2-thermal", "tj-thermal"), 51_234),
        rails=tuple(Rail(name, power_mw=5123) for name in RAILS),
        total_power_mw=6120,
        clocks={**{f"cpu{i}": Clock(1_510_400_000) for i in range(12)}, "gpu": Clock(624_750_000), "emc": Clock(2133)},
        loads={"gpu": 0.3123, "cpu": 0.1234},
        memory_available=2**32,
        power_mode="15W",
        degraded={"jtop": "does not answer for 5 s; it is tried again in 60 s"},
    )


def desk(utterances: int, *, changes: bool) -> dict[str, float]:
    """Run a desk by a clock of its own: one second for each utterance."""
    sent: list[int] = []
    now = 1000.0

    def publish(figures: Telemetry) -> int:
        sent.append(len(figures.to_json()) + HEAD)
        return sent[-1]

    vitals = Vitals(process_bytes=2**28, pool_buffers=100, pool_used=1, buffer_bytes=768_000, underruns=0)
    figures = Figures("alsa", started_at=now)
    measured = Desk(
        TelemetryConfig(), AlertsConfig(), figures, probe=lambda: vitals, publish=publish, alert=lambda _: None
    )
    began = time.thread_time()
    for number in range(utterances):
        name = f"u{number}"
        messages = (
            PlaybackStarted(name, now + 0.03),
            SynthesisEnded(
                name,
                audio_s=0.9,
                compute_s=0.06,
                first_s=0.03,
                cached=False,
                voice="v",
                backend="b",
                precision="p",
                stages=Stages(now, now + 0.03, 0.001, 0.015, 0.014),
            ),
            PlaybackEnded(name, now + 0.93, 0.9),
            ReadingTaken(reading(now + 0.95)),
        )
        for message in messages:
            measured.take(message, now)
            measured.tend(now)
        measured.hear(Started(id=name, ttfa_ms=30.0, output="alsa"), now)
        measured.hear(Finished(id=name, audio_s=0.9, total_ms=930), now)
        if changes:
            mode = Mode.LATENCY if number % 2 else Mode.EFFICIENCY
            measured.take(ModeChanged(Decision(mode, "a command waits, 51 °C")), now)
        now += 1
        measured.tend(now)
    seconds = now - 1000
    return {
        "percent_of_a_core": round(100 * (time.thread_time() - began) / seconds, 3),
        "bytes_per_s": round(sum(sent) / seconds, 1),
        "bytes_per_message": round(sum(sent) / len(sent), 1),
    }


def daemon(seconds: float) -> dict[str, float]:
    """Watch a real one that has said ten things and then nothing."""
    heard: list[int] = []
    packs = import_default_voice()
    with tempfile.TemporaryDirectory() as folder, Mosquitto() as broker, Controller(broker.port) as controller:
        watcher = paho.Client(CallbackAPIVersion.VERSION2)
        watcher.on_message = lambda _c, _u, message: heard.append(len(message.payload) + HEAD)
        watcher.connect("127.0.0.1", broker.port)
        watcher.subscribe(f"speakd/{DEVICE}/telemetry")
        watcher.loop_start()
        with DaemonProcess(
            Path(folder), broker.port, packs=packs, settings={"telemetry": {"self_check": False}}
        ) as one:
            controller.wait_for_status("online")
            for number in range(10):
                controller.speak({"id": f"u{number}", "text": "Yes."})
            before, used, began = len(heard), cpu_s(one.pid), time.monotonic()
            threading.Event().wait(seconds)
            passed = time.monotonic() - began
            found = {
                "percent_of_a_core_in_all": round(100 * (cpu_s(one.pid) - used) / passed, 2),
                "bytes_per_s": round(sum(heard[before:]) / passed, 1),
                "messages": len(heard) - before,
            }
        watcher.disconnect()
        watcher.loop_stop()
    return found


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=120)
    arguments.add_argument("--utterances", type=int, default=2000)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    found: dict[str, Any] = {
        "desk": desk(options.utterances, changes=False),
        "desk, the mode changing every second": desk(options.utterances, changes=True),
        "daemon": daemon(options.seconds),
    }
    if options.json:
        print(json.dumps(found))
        return
    for what, figures in found.items():
        print(f"{what}: {figures}")


if __name__ == "__main__":
    main()

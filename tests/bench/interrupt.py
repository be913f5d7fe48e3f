"""How soon it is silent when cancelled, and how soon something critical is heard, at the loudspeaker.

    python tests/bench/interrupt.py [--times 100] [--busy] [--json]

The whole way: a command over MQTT to the daemon as a process, its sound through ALSA into a real PulseAudio, whose
null sink is recorded. A sample counts as heard when the recorder hands it to us, so that the recorder's own delay is
in the figures. `--busy` has another process keep one core busy. `gaps` counts runs of exact silence in the middle of
speech that nobody interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:1] = [str(TESTS.parent), str(TESTS)]  # not this folder, where a file would be taken for our package daemon

import numpy as np
from simulators.broker import Mosquitto
from simulators.controller import Controller
from simulators.daemon_process import DaemonProcess
from simulators.pulse import RATE, PulseServer

from device.realtime import NICE, take_precedence

LONG = "The quick brown fox jumps over the lazy dog and then it goes on and on without ever coming to an end. " * 3
SHORT = "Stop at once."
QUIET = RATE // 500
"""Frames of exact zeros that are silence: 2 ms. Speech of a neural voice is never exactly zero for as long."""

PATIENCE_S = 20.0


class Ear:
    """Hears the null sink live: each sample's value, and when it was handed to us."""

    def __init__(self, server: PulseServer) -> None:
        self._process = subprocess.Popen(
            [
                server.find("parec"),
                f"--device={server.SINK}.monitor",
                "--raw",
                "--format=float32le",
                f"--rate={RATE}",
                "--channels=1",
                "--latency-msec=5",
            ],
            stdout=subprocess.PIPE,
            env={**os.environ, **server.environment},
        )
        self._pieces: list[tuple[float, np.ndarray[Any, np.dtype[np.float32]]]] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        rest = b""
        while data := os.read(self._process.stdout.fileno(), 65536):
            data = rest + data
            whole = len(data) // 4 * 4
            rest = data[whole:]
            self._pieces.append((time.monotonic(), np.frombuffer(data[:whole], np.float32)))

    def since(self, begun: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Give the samples that came after a moment, and when each one came."""
        pieces = [(at, samples) for at, samples in self._pieces if at >= begun]
        times = np.concatenate([np.full(samples.size, at) for at, samples in pieces] or [np.zeros(0)])
        return np.concatenate([samples for _, samples in pieces] or [np.zeros(0, np.float32)]), times

    def forget(self) -> None:
        """Drop what was heard so far."""
        del self._pieces[:-1]

    def close(self) -> None:
        """Stop listening."""
        self._process.terminate()
        self._process.wait()
        self._thread.join()


def silences(samples: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """Give the runs of exact zeros that are silence, each with its first frame and its end."""
    zero = np.concatenate([[0], (samples == 0).astype(np.int8), [0]])
    edges = np.diff(zero)
    runs = zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True)
    return [(int(start), int(end)) for start, end in runs if end - start >= QUIET]


def measure(times: int, lead_ms: int, *, busy: bool) -> dict[str, Any]:
    rng = random.Random(1)
    pause = threading.Event()
    to_silence, to_critical, gaps, steps = [], [], 0, []
    precedence = take_precedence()
    neighbour = None
    if busy:
        back = -NICE if precedence == "done" else 0
        neighbour = subprocess.Popen([sys.executable, "-c", f"import os; os.nice({back})\nwhile True: pass"])
    with tempfile.TemporaryDirectory() as folder, PulseServer() as server, Mosquitto() as broker:
        from conftest import import_default_voice

        packs = import_default_voice()
        settings = {"audio": {"output": "alsa", "lead_ms": lead_ms}, "limits": {"max_commands_per_s": 1000}}
        with (
            Controller(broker.port) as controller,
            DaemonProcess(Path(folder), broker.port, packs=packs, settings=settings, environment=server.environment),
        ):
            controller.wait_for_status("online")
            controller.speak({"id": "ready", "text": SHORT})
            ear = Ear(server)
            for number in range(times):
                critical = number % 2 == 1
                ear.forget()
                begun = time.monotonic()
                controller.publish({"id": f"long-{number}", "text": LONG, "cache": False, "on_interrupt": "drop"})
                controller.wait_for(f"long-{number}", "started")
                pause.wait(rng.uniform(0.3, 1.5))
                asked = time.monotonic()
                if critical:
                    command = {"id": f"now-{number}", "text": SHORT, "priority": "critical", "cache": False}
                    controller.publish(command)
                    controller.wait_for_final(f"now-{number}")
                else:
                    controller.publish({"all": True}, command="cancel")
                controller.wait_for_final(f"long-{number}")
                quiet: list[tuple[int, int]] = []
                while not quiet and time.monotonic() < asked + PATIENCE_S:  # what was played may be heard later
                    pause.wait(0.3)
                    samples, at = ear.since(begun)
                    first = int(np.argmax(samples != 0))
                    quiet = [run for run in silences(samples[first:]) if at[first + run[0]] >= asked]
                gaps += sum(at[first + run[0]] < asked for run in silences(samples[first:]))
                silent = first + quiet[0][0]
                to_silence.append((at[silent] - asked) * 1000)
                steps.append(float(np.abs(np.diff(samples[silent - RATE // 200 : silent + 1])).max()))
                if critical:
                    to_critical.append((at[first + quiet[0][1]] - asked) * 1000)
            ear.close()
    if neighbour is not None:
        neighbour.kill()
        neighbour.wait()
    return {
        "silence_ms": summary(to_silence),
        "critical_ms": summary(to_critical),
        "largest_step_in_a_fade": round(max(steps), 3),
        "gaps": int(gaps),
        "busy": busy,
        "precedence": precedence,
    }


def summary(values: list[float]) -> dict[str, float]:
    values = sorted(map(float, values))
    return {
        "median": round(float(statistics.median(values)), 1),
        "p99": round(values[min(len(values) - 1, int(0.99 * len(values)))], 1),
        "max": round(values[-1], 1),
        "count": len(values),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--times", type=int, default=100)
    arguments.add_argument("--lead-ms", type=int, default=40)
    arguments.add_argument("--busy", action="store_true")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    found = measure(options.times, options.lead_ms, busy=options.busy)
    if options.json:
        print(json.dumps(found))
    else:
        for what, figures in found.items():
            print(f"{what}: {figures}")


if __name__ == "__main__":
    main()

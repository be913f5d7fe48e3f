"""What the daemon adds to the synthesizer: from publishing a command to its first frame at the sink, less synthesis.

    python tests/bench/daemon.py [--json] [--commands 200]

A real mosquitto, the daemon as a process with the default voice, one command after another. Both processes read the
same clock. `cache` is the same from a kept recording, where nothing is synthesized. `start` is from starting the
process with an existing pack to its status `online`, and its memory at the end.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:1] = [str(TESTS.parent), str(TESTS)]  # not this folder, where this file would be taken for our package

import numpy as np
from conftest import import_default_voice
from simulators.broker import Mosquitto
from simulators.controller import Controller
from simulators.daemon_process import DaemonProcess

SHORT = ("Yes.", "Hello.", "Stop.", "Please wait.", "Door open.", "Thank you.", "Number nine.", "Go ahead.")
KEPT = "Please mind the gap between the train and the platform."


def delays(controller: Controller, texts: list[str], *, cache: bool) -> list[float]:
    """Say each text and wait for its end; gives milliseconds from publishing to the first frame, less synthesis."""
    found = []
    for number, text in enumerate(texts):
        name = f"{'cache' if cache else 'fresh'}-{number}"
        published = time.time()
        events = controller.speak({"id": name, "text": text, "cache": cache})
        by_kind = {event["event"]: event for event in events}
        first = datetime.fromisoformat(by_kind["started"]["time"].replace("Z", "+00:00")).timestamp()
        found.append((first - published) * 1000 - by_kind["synthesized"]["first_ms"])
    return found


def summary(values: list[float]) -> dict[str, float]:
    p50, p99 = np.percentile(values, [50, 99])
    return {"p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2), "commands": len(values)}


def peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s*(\d+)", status)[0]) / 1024


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--commands", type=int, default=200)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name, Mosquitto() as broker:
        folder = Path(name)
        packs = import_default_voice()
        # A file takes frames at once: waiting for the pace of a loudspeaker would only make this last longer.
        settings = {"audio": {"output": "wav", "path": str(folder / "said.wav")}}
        with Controller(broker.port) as controller:
            begun = time.monotonic()
            with DaemonProcess(folder, broker.port, packs=packs, settings=settings) as daemon:
                controller.wait_for_status("online")
                ready_s = time.monotonic() - begun
                controller.speak({"id": "ready", "text": "Ready."})
                fresh = delays(controller, [SHORT[i % len(SHORT)] for i in range(options.commands)], cache=False)
                delays(controller, [KEPT] * 3, cache=True)
                kept = delays(controller, [KEPT] * options.commands, cache=True)
                peak = peak_mb(daemon.pid)
    report = {
        "overhead": summary(fresh),
        "cache_hit": summary(kept),
        "start": {"ready_s": round(ready_s, 2), "peak_mb": round(peak)},
    }
    if options.json:
        print(json.dumps(report))
    else:
        for what, figures in report.items():
            print(f"{what:<10} " + "  ".join(f"{key} {value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()

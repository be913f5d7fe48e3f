"""Years of a kiosk in minutes: one daemon, one utterance after another, as quickly as they can be computed."""

from __future__ import annotations

import random
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from simulators.broker import Mosquitto
from simulators.controller import Controller, Payload
from simulators.daemon_process import DaemonProcess

WARM_UP: Final = 150
"""Utterances until caches and arenas have what they will ever have."""

AHEAD: Final = 4
"""Commands that wait while one is spoken."""

_PHRASES: Final = 40
"""That are said again and again, nine times of ten, and kept; a kiosk has as many."""


@dataclass(frozen=True)
class Found:
    """What has changed between the end of the warm-up and the end."""

    utterances: int
    failed: int
    resident_mb: float
    growth_mb: float
    descriptors: int
    threads: int
    p99_first_tenth_ms: float
    p99_last_tenth_ms: float
    """Computing time until the first samples of what is not kept: free of the broker and of what waits."""
    written_mb: float
    """By the daemon, to disks, in all."""

    def to_dict(self) -> dict[str, float]:
        """Give it for printing."""
        return asdict(self)


def long_run(folder: Path, packs: Path, utterances: int) -> Found:
    """Have so many utterances said, into nowhere, and watch the process."""
    rng = random.Random(1)
    settings = {"audio": {"output": "wav", "path": "/dev/null"}, "limits": {"max_commands_per_s": 10_000.0}}
    with (
        Mosquitto() as broker,
        Controller(broker.port) as controller,
        DaemonProcess(folder, broker.port, packs=packs, settings=settings) as daemon,
    ):
        controller.wait_for_status("online")
        before = _state(daemon.pid)
        firsts: list[float] = []
        failed = 0
        for number in range(utterances):
            if number == WARM_UP:
                before = _state(daemon.pid)
            controller.send({"id": f"u{number}", "text": _text(number, rng)})
            if number >= AHEAD:
                failed += controller.wait_for_final(f"u{number - AHEAD}")[-1]["event"] != "finished"
            if number % 100 == 99:
                firsts += _firsts(controller.forget({f"u{late}" for late in range(number - AHEAD + 1, number + 1)}))
        for number in range(max(0, utterances - AHEAD), utterances):
            failed += controller.wait_for_final(f"u{number}")[-1]["event"] != "finished"
        firsts += _firsts(controller.forget(()))
        after = _state(daemon.pid)
        tenth = max(1, len(firsts) // 10)
        return Found(
            utterances=utterances,
            failed=failed,
            resident_mb=round(after["resident_mb"], 1),
            growth_mb=round(after["resident_mb"] - before["resident_mb"], 1),
            descriptors=int(after["descriptors"] - before["descriptors"]),
            threads=int(after["threads"] - before["threads"]),
            p99_first_tenth_ms=round(float(np.percentile(firsts[:tenth], 99)), 1),
            p99_last_tenth_ms=round(float(np.percentile(firsts[-tenth:], 99)), 1),
            written_mb=round(after["written_mb"], 1),
        )


def _text(number: int, rng: random.Random) -> str:
    if rng.random() < 0.9:
        return f"Please go to counter {rng.randrange(_PHRASES)}."
    return f"Visitor {number}, you are next."


def _firsts(events: list[Payload]) -> list[float]:
    """Give the times of what was synthesized."""
    return [
        float(event["first_ms"])
        for event in events
        if event["event"] == "synthesized" and not event["cached"] and event.get("first_ms") is not None
    ]


def _state(pid: int) -> dict[str, float]:
    process = Path(f"/proc/{pid}")
    status = (process / "status").read_text(encoding="ascii")
    return {
        "resident_mb": int(re.findall(r"VmRSS:\s*(\d+)", status)[0]) / 1024,
        "threads": float(re.findall(r"Threads:\s*(\d+)", status)[0]),
        "descriptors": float(len(list((process / "fd").iterdir()))),
        "written_mb": int(re.findall(r"write_bytes: (\d+)", (process / "io").read_text(encoding="ascii"))[0]) / 2**20,
    }

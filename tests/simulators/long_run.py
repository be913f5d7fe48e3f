"""Years of a kiosk in minutes: one daemon, one utterance after another, as quickly as they can be computed.

Whether it has become slower is asked twice: of its own last tenth against its first, and, since a machine is not as
quick at one hour as at another, beside a daemon that has just started, by turns.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from simulators.broker import Mosquitto
from simulators.controller import Controller, Payload
from simulators.daemon_process import DaemonProcess

WARM_UP: Final = 200
"""Utterances until the phrases are kept and memory has been as large as these texts make it."""

AHEAD: Final = 4
"""Commands that wait while one is spoken."""

TURNS: Final = 12
"""Of the aged daemon and of the fresh one."""

TURN: Final = 25
"""Texts that each computes in its turn: 300 in all, more than a tenth of 10,000 utterances has."""

RESTS: Final = 5
"""Looks at the process, one after another."""

_NEW: Final = 0.2
"""Of all utterances, what was never said before. The 99th percentile of a tenth, 1,000 of 10,000, is then the 95th of
what was computed: ten values lie above it, where two lay above the 99th of the 200, which went from 0.85 to 1.18 of the
first tenth's from one run to the next."""

_PHRASES: Final = 40
"""That are said again and again, and kept; a kiosk has as many."""

_NUMBERS: Final = range(1_000, 10_000)
"""Of visitors: their texts are equally long, for longer ones take longer and more memory."""


@dataclass(frozen=True)
class Beside:
    """The same times of this daemon at its end and of one that has just started, by turns."""

    p50_aged_ms: float
    p50_fresh_ms: float
    p99_aged_ms: float
    p99_fresh_ms: float


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
    """Until the first samples, of all utterances: free of the broker and of what waits."""
    written_mb: float
    """By the daemon, to disks, in all."""
    beside_fresh: Beside | None

    def to_dict(self) -> dict[str, Any]:
        """Give it for printing."""
        return asdict(self)


class Visitors:
    """Texts that were never said before."""

    def __init__(self, rng: random.Random) -> None:
        self._left = iter(rng.sample(_NUMBERS, len(_NUMBERS)))

    def take(self, count: int) -> list[str]:
        """Give the next ones."""
        return [f"Visitor {next(self._left)}, you are next." for _ in range(count)]


class Run:
    """A daemon, and who commands it."""

    def __init__(self, controller: Controller, daemon: DaemonProcess) -> None:
        self.pid: Final = daemon.pid
        self.failed = 0
        self._controller = controller
        self._said = 0
        controller.wait_for_status("online")

    def say(self, texts: Sequence[str]) -> list[float]:
        """Have them said, some always waiting; gives what each took until its first samples, in ms."""
        firsts: list[float] = []
        names = [f"u{self._said + number}" for number in range(len(texts))]
        self._said += len(texts)
        for number, (name, text) in enumerate(zip(names, texts, strict=True)):
            self._controller.send({"id": name, "text": text})
            if number >= AHEAD:
                self._await(names[number - AHEAD])
            if number % 100 == 99:
                firsts += _firsts(self._controller.forget(names[number - AHEAD + 1 :]))
        for name in names[-AHEAD:]:
            self._await(name)
        return firsts + _firsts(self._controller.forget(()))

    def rest(self) -> dict[str, float]:
        """Say what is kept a few times; gives how the process is in between, the least of each: files come and go."""
        states = []
        for _ in range(RESTS):
            self.say([_kept(0)])
            states.append(_state(self.pid))
        return {key: min(state[key] for state in states) for key in states[0]}

    def _await(self, name: str) -> None:
        self.failed += self._controller.wait_for_final(name)[-1]["event"] != "finished"


@contextmanager
def running(folder: Path, packs: Path) -> Iterator[Run]:
    """Start a daemon that speaks into nowhere, with a broker of its own."""
    folder.mkdir()
    settings = {"audio": {"output": "wav", "path": "/dev/null"}, "limits": {"max_commands_per_s": 10_000.0}}
    with (
        Mosquitto() as broker,
        Controller(broker.port) as controller,
        DaemonProcess(folder, broker.port, packs=packs, settings=settings) as daemon,
    ):
        yield Run(controller, daemon)


def long_run(folder: Path, packs: Path, utterances: int, *, beside_fresh: bool = True) -> Found:
    """Have so many utterances said after a warm-up, and watch the process."""
    rng = random.Random(1)
    visitors = Visitors(rng)
    with running(folder / "aged", packs) as aged:
        aged.say(_mixed(WARM_UP, visitors, rng))
        before = aged.rest()
        firsts = aged.say(_mixed(utterances, visitors, rng))
        after = aged.rest()
        beside = None
        if beside_fresh:
            with running(folder / "fresh", packs) as fresh:
                fresh.say(_mixed(WARM_UP, visitors, rng))
                beside = _by_turns(aged, fresh, visitors)
                aged.failed += fresh.failed
        tenth = max(1, len(firsts) // 10)
        return Found(
            utterances=utterances,
            failed=aged.failed,
            resident_mb=round(after["resident_mb"], 1),
            growth_mb=round(after["resident_mb"] - before["resident_mb"], 1),
            descriptors=int(after["descriptors"] - before["descriptors"]),
            threads=int(after["threads"] - before["threads"]),
            p99_first_tenth_ms=_percentile(firsts[:tenth], 99),
            p99_last_tenth_ms=_percentile(firsts[-tenth:], 99),
            written_mb=round(after["written_mb"], 1),
            beside_fresh=beside,
        )


def _by_turns(aged: Run, fresh: Run, visitors: Visitors) -> Beside:
    of_aged: list[float] = []
    of_fresh: list[float] = []
    for _ in range(TURNS):
        of_aged += aged.say(visitors.take(TURN))
        of_fresh += fresh.say(visitors.take(TURN))
    return Beside(
        p50_aged_ms=_percentile(of_aged, 50),
        p50_fresh_ms=_percentile(of_fresh, 50),
        p99_aged_ms=_percentile(of_aged, 99),
        p99_fresh_ms=_percentile(of_fresh, 99),
    )


def _mixed(utterances: int, visitors: Visitors, rng: random.Random) -> list[str]:
    return [visitors.take(1)[0] if rng.random() < _NEW else _kept(rng.randrange(_PHRASES)) for _ in range(utterances)]


def _kept(counter: int) -> str:
    return f"Please go to counter {counter}."


def _percentile(firsts: list[float], percent: float) -> float:
    return round(float(np.percentile(firsts, percent)), 1)


def _firsts(events: list[Payload]) -> list[float]:
    return [float(event["first_ms"]) for event in events if event["event"] == "synthesized"]


def _state(pid: int) -> dict[str, float]:
    process = Path(f"/proc/{pid}")
    status = (process / "status").read_text(encoding="ascii")
    return {
        "resident_mb": int(re.findall(r"VmRSS:\s*(\d+)", status)[0]) / 1024,
        "threads": float(re.findall(r"Threads:\s*(\d+)", status)[0]),
        "descriptors": float(len(list((process / "fd").iterdir()))),
        "written_mb": int(re.findall(r"write_bytes: (\d+)", (process / "io").read_text(encoding="ascii"))[0]) / 2**20,
    }

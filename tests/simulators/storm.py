"""Commands while broker and daemon are killed again and again, and what came of each of them.

A sender does what the manual asks of one: it sends a command again, with the same id, until it hears how it ended. What
was really spoken is counted in the recorded sound: the voice's seed is fixed, so that each text has samples of its own,
which were recorded once in peace.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from simulators.broker import Mosquitto
from simulators.controller import Controller, Payload
from simulators.daemon_process import DaemonProcess

RATE: Final = 48_000
MARK: Final = RATE // 20
"""Frames of the sound, 50 ms in the middle of an utterance, by which it is found."""

WAV_HEADER: Final = 44
OUTSTANDING: Final = 30
AGAIN_S: Final = 2.0
"""Without an answer for so long a command is sent again."""

LONGEST_S: Final = 1800.0


@dataclass
class Outcome:
    """What came of a storm."""

    finals: dict[str, set[str]] = field(default_factory=dict)
    """Id -> the events that ended it, each once however often it was told."""
    spoken: Counter[str] = field(default_factory=Counter)
    """Id -> how often its sound is in the record."""
    broker_kills: int = 0
    daemon_kills: int = 0
    sent: int = 0
    seconds: float = 0.0

    @property
    def kinds(self) -> Counter[str]:
        """How the commands ended, each by its first end."""
        return Counter(json.loads(next(iter(ends)))["event"] for ends in self.finals.values() if ends)


class Storm:
    """One daemon and one broker on one port, and their lives."""

    def __init__(self, folder: Path, packs: Path, commands: int) -> None:
        self._folder = folder
        self._packs = packs
        self._texts = {f"c{number}": f"Number {number}, please." for number in range(commands)}
        self._lives = 0

    def run(self, *, broker_kills: int, daemon_kills: int) -> Outcome:
        """Have all commands sent, the processes killed so many times, evenly in between; gives what came of it."""
        marks = self._marks()
        outcome = Outcome({command_id: set() for command_id in self._texts})
        began = time.monotonic()
        with Mosquitto() as broker, Controller(broker.port) as controller:
            kills = [*self._spread("broker", broker_kills), *self._spread("daemon", daemon_kills)]
            kills.sort()
            daemon = self._daemon(broker.port)
            daemon.__enter__()
            try:
                sender = _Sender(controller, self._texts, outcome)
                while sender.step():
                    ended = sum(map(bool, outcome.finals.values()))
                    while kills and ended >= kills[0][0]:
                        _, whom = kills.pop(0)
                        if whom == "broker":
                            broker.kill()
                            broker.start()
                            outcome.broker_kills += 1
                        else:
                            daemon.kill()
                            daemon.wait()
                            daemon = self._daemon(broker.port)
                            daemon.__enter__()
                            outcome.daemon_kills += 1
                    assert time.monotonic() - began < LONGEST_S, daemon.log
            finally:
                daemon.__exit__(None, None, None)
        outcome.seconds = time.monotonic() - began
        record = b"".join(map(self._sound, range(1, self._lives + 1)))
        outcome.spoken.update({command_id: record.count(mark) for command_id, mark in marks.items()})
        return outcome

    def _spread(self, whom: str, kills: int) -> list[tuple[float, str]]:
        """Give after how many ended commands each kill comes."""
        shift = 0.25 if whom == "broker" else 0.75
        return [(len(self._texts) * (number + shift) / (kills + 1), whom) for number in range(kills)]

    def _daemon(self, port: int) -> DaemonProcess:
        self._lives += 1
        return self._process(port, self._record(self._lives), self._folder / f"life-{self._lives}")

    def _record(self, life: int) -> Path:
        return self._folder / f"record-{life}.wav"

    def _sound(self, life: int) -> bytes:
        """Samples that a life of the daemon recorded: none if it was killed before it opened its output."""
        try:
            return self._record(life).read_bytes()[WAV_HEADER:]
        except FileNotFoundError:
            return b""

    def _process(self, port: int, record: Path, folder: Path) -> DaemonProcess:
        folder.mkdir()
        settings: Mapping[str, Mapping[str, Any]] = {
            "audio": {"output": "wav", "path": str(record)},
            "cache": {"enabled": False},
            "journal": {"file": str(folder.parent / f"{record.stem.split('-')[0]}.db"), "speak_after_restart_s": 3600},
            "mqtt": {"reconnect_max_s": 1},
        }
        return DaemonProcess(folder, port, packs=self._packs, settings=settings)

    def _marks(self) -> dict[str, bytes]:
        """Have each text spoken in peace; gives what of its sound is nowhere else."""
        record = self._folder / "peace.wav"
        with (
            Mosquitto() as broker,
            Controller(broker.port) as controller,
            self._process(broker.port, record, self._folder / "in-peace"),
        ):
            controller.wait_for_status("online")
            lengths = {
                command_id: controller.speak({"id": command_id, "text": text})[-1]["audio_s"]
                for command_id, text in self._texts.items()
            }
        samples = np.frombuffer(record.read_bytes()[WAV_HEADER:], "<i2")
        marks, start = {}, 0.0
        for command_id, length in lengths.items():
            middle = round((start + length / 2) * RATE)
            marks[command_id] = samples[middle : middle + MARK].tobytes()
            start += length
        whole = samples.tobytes()
        assert all(whole.count(mark) == 1 for mark in marks.values()), "a mark that would prove nothing"
        return marks


class _Sender:
    """Sends each command until it knows how it ended."""

    def __init__(self, controller: Controller, texts: Mapping[str, str], outcome: Outcome) -> None:
        self._controller = controller
        self._texts = texts
        self._outcome = outcome
        self._sent_at: dict[str, float] = {}
        self._seen = 0
        self._pause = threading.Event()

    def step(self) -> bool:
        """Do what is due; False once all have ended."""
        self._pause.wait(0.02)
        self._listen()
        open_ids = [command_id for command_id, ends in self._outcome.finals.items() if not ends]
        now = time.monotonic()
        for command_id in open_ids[:OUTSTANDING]:
            if now - self._sent_at.get(command_id, -AGAIN_S) >= AGAIN_S:
                self._sent_at[command_id] = now
                self._outcome.sent += 1
                self._controller.send({"id": command_id, "text": self._texts[command_id]})
        return bool(open_ids)

    def _listen(self) -> None:
        events = self._controller.events
        while self._seen < len(events):
            event = events[self._seen]
            self._seen += 1
            final: Payload | None = event.get("final") if event["event"] == "known" else event
            if final is not None and final["event"] in {"finished", "failed", "expired", "superseded", "cancelled"}:
                self._outcome.finals[final["id"]].add(json.dumps(final, sort_keys=True))

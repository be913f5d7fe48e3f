"""Whatever anybody publishes on the speak topic, the daemon lives, answers, and does not grow."""

from __future__ import annotations

import json
import random

from simulators.controller import FINAL, Controller
from simulators.daemon_process import DaemonProcess

BATCH = 100
"""Fewer than any queue on the way holds: nothing may get lost, or a missing answer would prove nothing."""

GROWTH_MB = 10


def random_bytes(rng: random.Random) -> bytes:
    # From ten bytes on hardly any are valid UTF-8, which would be spoken.
    return rng.randbytes(rng.randint(10, 60))


def malformed_json(rng: random.Random) -> bytes:
    # A few come out right after all: without a text they take no time.
    fields: dict[str, object] = {"id": f"m{rng.getrandbits(40)}", "text": "", "volume": 1, "priority": "message"}
    wrong: list[object] = [None, [], {}, -1, 1e300, "\ud800", "\0", True, ["a"], {"a": []}, 10**30]
    whole = json.dumps(fields).encode()
    kind = rng.randrange(5)
    if kind == 0:
        return whole[: rng.randint(1, len(whole) - 1)]
    if kind == 1:
        place = rng.randrange(1, len(whole) - 1)
        return whole[:place] + rng.choice([b"{", b"\xff", b"}", b"NaN", b'"', b",,"]) + whole[place:]
    if kind == 2:
        fields[rng.choice(list(fields))] = rng.choice(wrong)
        fields["volume"] = "loud"
        return json.dumps(fields).encode()
    if kind == 3:
        return json.dumps(fields | {rng.choice(["txet", "\ud800", "\x1b", "k" * 1000]): 1}).encode()
    return rng.choice([b"[" * 3000, b'{"text":' * 3000, b"null", b"3", b'["a"]', b'"a"', b'{"text": 1e999}', b"{}"])


def test_a_storm_of_nonsense(daemon: DaemonProcess, controller: Controller) -> None:
    rng = random.Random(1)

    def storm(payloads: list[bytes]) -> None:
        for start in range(0, len(payloads), BATCH):
            before = len(controller.finals())
            batch = payloads[start : start + BATCH]
            controller.publish_all(batch)
            controller.wait_for_finals(before + len(batch), timeout_s=60)

    storm([random_bytes(rng) for _ in range(BATCH)])
    storm([malformed_json(rng) for _ in range(BATCH)])
    # Longer than anything in the storm, so that memory for longer sentences is not what grows.
    warm = "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen."
    assert controller.speak({"id": "warm", "text": warm})[-1]["event"] == "finished"
    threads, resident_mb = daemon.threads, daemon.resident_mb
    before = len(controller.finals())

    storm([random_bytes(rng) for _ in range(1000)])
    storm([malformed_json(rng) for _ in range(200)])
    assert len(controller.finals()) == before + 1200
    assert controller.speak({"id": "after", "text": "One, two, three."})[-1]["event"] == "finished"

    assert daemon.running
    assert daemon.threads == threads
    assert daemon.resident_mb < resident_mb + GROWTH_MB
    accepted = {event["id"] for event in controller.events if event["event"] == "accepted"}
    for command_id in accepted:
        ends = [event["event"] for event in controller.events_of(command_id) if event["event"] in FINAL]
        assert len(ends) == 1
        assert ends != ["rejected"]

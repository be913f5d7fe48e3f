"""Whatever anybody publishes on whatever topic, the daemon lives, answers, and does not grow.

2,000 payloads by default; `SPEAKD_FUZZ=20000` makes it as many.
"""

from __future__ import annotations

import json
import os
import random
from functools import partial

import pytest
from integration.conftest import MakeDaemon
from simulators.controller import DEVICE, Controller

BATCH = 100
"""Fewer than any queue on the way holds: nothing may get lost, or a missing answer would prove nothing."""

GROWTH_MB = 10

PAYLOADS = int(os.environ.get("SPEAKD_FUZZ", "2000"))


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


TOPICS = (
    *("speak", "cancel", "pause", "resume", "skip", "ping", "volume/set", "mute/set", "voice/set", "config/set"),
    *("queue/get", "voices/get", "mode/set", "nothing/get", "\u00fc/set"),
)
SCOPES = (DEVICE, "all", "group/hall")

CONTROLS = (
    *(b"", b"{}", b"0.5", b"true", b"joe", b'{"request": "r"}', b'{"request": 5}', b'{"all": true}', b'{"id": "a"}'),
    *(b'{"all": false}', b'{"all": true, "id": "a"}', b'{"volume": 3}', b'{"volume": NaN}', b'{"muted": "yes"}'),
    *(b'{"reply_to": "speakd/bench/speak"}', b'{"reply_to": "#"}', b'{"reply_to": "$SYS/x"}', b'{"version": -1}'),
    *(b'{"repeat_sentences": 101}', b'{"session": "\\u0000"}', b'{"rate": 9}', b"[]", b"null", b'"x"', b"\xff\xfe"),
)

ANSWERS = {"accepted", "known", "rejected", "done", "queue", "voices", "pong"}
"""Every message is answered by just one of these."""


@pytest.mark.timeout(1800)
def test_a_storm_of_nonsense(make_daemon: MakeDaemon, controller: Controller) -> None:
    rng = random.Random(1)
    codes: set[str] = set()

    def answers() -> int:
        return sum(event["event"] in ANSWERS for event in controller.events)

    def answered(count: int) -> bool:
        return answers() >= count

    def storm(payloads: list[bytes]) -> None:
        for start in range(0, len(payloads), BATCH):
            batch = payloads[start : start + BATCH]
            count = len(batch)
            topic, scope = rng.choice(TOPICS), rng.choice(SCOPES)
            controller.publish_all(batch, command=topic, scope=scope)
            controller.wait_until(partial(answered, count), "not every message was answered")
            assert answers() == count, "each one once"
            rejected = [event for event in controller.events if event["event"] == "rejected"]
            assert all(event["code"] and event["reason"] for event in rejected)
            codes.update(event["code"] for event in rejected)
            # Whoever fuzzes `pause` succeeds now and then, and what waits would never end.
            controller.publish({}, command="resume")
            controller.wait_until(partial(answered, count + 1), "no answer to resume")
            controller.wait_until(lambda: not controller.open_ids(), "a command has no end")
            controller.events.clear()

    def mixture(count: int) -> list[bytes]:
        makers = (random_bytes, malformed_json, lambda rng: rng.choice(CONTROLS))
        return [rng.choice(makers)(rng) for _ in range(count)]

    settings = {
        "limits": {"max_commands_per_s": 10_000.0},
        "device": {"groups": ["hall"]},
        "mqtt": {"keepalive_s": 5},  # whoever is busy for longer is cut off by the broker
    }
    with make_daemon(**settings) as daemon:
        controller.wait_for_status("online")
        storm(mixture(3 * BATCH))
        # Longer than anything in the storm, so that memory for longer sentences is not what grows.
        warm = "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen."
        controller.publish({"muted": False, "voice": "", "volume": 1, "rate": 1}, command="config/set")
        assert controller.speak({"id": "warm", "text": warm})[-1]["event"] == "finished"
        threads, resident_mb = daemon.threads, daemon.resident_mb
        controller.events.clear()

        storm(mixture(PAYLOADS))
        controller.publish({"muted": False, "voice": "", "volume": 1, "rate": 1}, command="config/set")
        assert controller.speak({"id": "after", "text": "One, two, three."})[-1]["event"] == "finished"

        assert daemon.running
        assert daemon.log.count("connected, MQTT 5") == 1
        assert daemon.threads == threads
        assert daemon.resident_mb < resident_mb + GROWTH_MB
    assert codes >= {"encoding", "json", "field", "topic", "reply_to"}

"""Figures of a device: made up, of which nothing is known but what a test says; and as Prometheus scrapes them."""

from __future__ import annotations

import urllib.request
from typing import Any

from daemon.telemetry_messages import Latency, Memory, Telemetry


def figures(**wanted: Any) -> Telemetry:  # noqa: ANN401
    nothing: dict[str, Any] = {
        "interval_s": 15,
        "uptime_s": 1,
        "ttfa_ms": Latency(),
        "utterances": 0,
        "failed": 0,
        "rejected": 0,
        "cache_hits": 0,
        "queue": 0,
        "rendering": 0,
        "speaking": False,
        "restarts": 0,
        "memory_mb": Memory(),
        "clocks_mhz": {},
        "temperatures_c": {},
        "rails_mw": {},
        "degraded": {},
        "lost": 0,
    }
    return Telemetry(**{**nothing, **wanted})


def scraped(port: int, name: str) -> float:
    """Give the first value of a metric; 0 where there is none."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(line.split()[1]) for line in lines if line.startswith(name + "{")), 0.0)

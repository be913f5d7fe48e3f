"""Figures of a device of which nothing is known but what a test says."""

from __future__ import annotations

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

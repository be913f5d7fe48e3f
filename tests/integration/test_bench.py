"""The measuring scripts run, and print what the README says they print. Figures are not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[1] / "bench"
TIMEOUT_S = 600
"""Ten times what the longest of them takes where nobody else uses the machine."""

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)


def run(script: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(BENCH / script), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def test_peers() -> None:
    """Piper is always there: its espeak-ng is ours. The others are left out where they are not installed."""
    found = run("peers.py", "--json", "--runs", "1")
    assert set(found) == {"texts", "ratio_first", "ratio_total"}
    assert set(found["texts"]) == set(found["ratio_first"]) == set(found["ratio_total"])
    for by_peer in found["texts"].values():
        assert {"speakd", "piper"} <= set(by_peer)
        assert all(set(timing) == {"first_ms", "total_ms", "audio_s"} for timing in by_peer.values())


def test_daemon() -> None:
    found = run("daemon.py", "--json", "--commands", "4")
    assert found["overhead"]["commands"] == found["cache_hit"]["commands"] == 4
    assert found["start"]["ready_s"] > 0
    assert found["start"]["peak_mb"] > 50


def test_soak() -> None:
    found = run("soak.py", "memory", "--utterances", "4")
    assert found["buffers_missing"] == 0
    found = run("soak.py", "underruns", "--minutes", "0.01")
    assert found["speech_s"] > 1


def test_render() -> None:
    found = run("render.py", "--rounds", "1", "--batches", "--spoken", "1", "--json")
    assert set(found["throughput"]) == {"one after another", "2 threads", "4 threads"}
    assert all(set(figures) == {"speech_s_per_s", "ratio"} for figures in found["throughput"].values())
    assert set(found["first_sound"]) == {"alone_ms", "beside_ms", "delay_ms", "worst_delay_ms", "one_window_ms"}


def test_interrupt() -> None:
    found = run("interrupt.py", "--json", "--times", "2")
    assert found["silence_ms"]["count"] == 2
    assert found["critical_ms"]["count"] == 1


def test_telemetry() -> None:
    found = run("telemetry.py", "--json", "--seconds", "2", "--utterances", "200")
    assert found["desk"]["percent_of_a_core"] < 1
    assert found["desk"]["bytes_per_s"] < 200
    assert found["desk, the mode changing every second"]["bytes_per_s"] < 200
    assert set(found["daemon"]) == {"percent_of_a_core_in_all", "bytes_per_s", "messages"}


def test_fleet() -> None:
    found = run("fleet.py", "--json", "--devices", "40", "--seconds", "1")
    assert found["ping_all"]["answered"] == found["ping_all"]["meant_for"] == 40
    assert found["volume_to_one_group"]["answered"] == 2
    assert found["volume_to_one_group"]["others_answered"] == 0
    assert found["extended"][-1]["devices"] == 100_000

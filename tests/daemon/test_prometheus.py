"""What Prometheus scrapes, over real sockets, read by the client library's own parser."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import stat
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from simulators.broker import free_port
from simulators.figures import figures
from simulators.waiting import wait_until

from daemon.bridges import prometheus as prometheus_module
from daemon.bridges.prometheus import Prometheus
from daemon.config import Config
from daemon.errors import StartError
from daemon.figures import STAGES
from daemon.histogram import Rolling
from daemon.telemetry import Durations, Snapshot
from daemon.telemetry_messages import Disk, Memory, SelfCheck, VoiceLoads

DASHBOARD = Path(prometheus_module.__file__).parent / "grafana/speakd.json"
PLAIN = Snapshot(figures(), {})


def full() -> Snapshot:
    """Everything is known."""
    durations = {}
    for number, stage in enumerate(STAGES):
        rolling = Rolling()
        for value in (10 * number + 1, 240, 260, 99_999):
            rolling.add(value, 0.0)
        durations[stage] = Durations(tuple(rolling.total), rolling.sum_ms)
    check = SelfCheck.model_validate(
        {"state": "passed", "time": "2026-11-30T12:00:00Z", "voice": "v", "mos": 3.4, "level_db": 0.1}
    )
    said = figures(
        mode="efficiency",
        reason="nobody waits",
        rtf=0.07,
        utterances=42,
        cache_hits=7,
        underruns=1,
        encoder_packets=100,
        encoder_drops=2,
        memory_mb=Memory(process=250, pool_used=1, pool=73, gpu_used=100, gpu=200, available=1000),
        gpu_load=0.5,
        cpu_load=0.25,
        clocks_mhz={"gpu": 625},
        temperatures_c={"cpu-thermal": 51.5},
        rails_mw={"VDD_IN": 6120},
        power_mw=6120,
        energy_mj_per_s=5400.0,
        battery_percent=80,
        throttling=("cpu-throttle-alert",),
        degraded={"jtop": 'it said "no"\n'},
        alerts=("throttling",),
        missing_phonemes={"kokoro": 3},
        disk=Disk(free_mb=2000, written_mb=30, written_day_mb=20, written_per_day_mb=25, wear_percent=40),
        self_check=check,
        voices={"kokoro": VoiceLoads(loaded=False, load_s=1.5, loads=3, releases=3, memory_mb=330)},
    )
    return Snapshot(said, durations)


@contextlib.contextmanager
def served(snapshot: Snapshot | None, **settings: Any) -> Iterator[Prometheus]:  # noqa: ANN401
    config = Config.model_validate(
        {"device": {"name": 'kiosk-"7"'}, "prometheus": {"enabled": True, "port": free_port(), **settings}}
    )
    bridge = Prometheus(config, lambda: snapshot)
    bridge.start()
    try:
        yield bridge
    finally:
        bridge.stop()
        bridge.stop()


def scraped(bridge: Prometheus) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{bridge.port}/metrics", timeout=10) as answer:
        return parsed(answer.read().decode())


def parsed(text: str) -> dict[tuple[str, ...], float]:
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels.pop("device") == 'kiosk-"7"'
            key = (sample.name, *(value for _, value in sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def test_the_figures_are_those_of_telemetry() -> None:
    with served(full()) as bridge:
        found = scraped(bridge)
    assert found["speakd_utterances_total",] == 42
    assert found["speakd_real_time_factor",] == 0.07
    assert found["speakd_memory_bytes", "process"] == 250 * 2**20
    assert found["speakd_temperature_celsius", "cpu-thermal"] == 51.5
    assert found["speakd_mode", "efficiency"] == 1
    assert found["speakd_mode", "latency"] == 0
    assert found["speakd_alert", "throttling"] == 1
    assert found["speakd_degraded", "jtop"] == 1
    assert found["speakd_voice_loaded", "kokoro"] == 0
    assert found["speakd_voice_load_seconds", "kokoro"] == 1.5
    assert found["speakd_voice_loads_total", "kokoro"] == found["speakd_voice_releases_total", "kokoro"] == 3
    assert found["speakd_missing_phonemes_total", "kokoro"] == 3
    assert found["speakd_energy_joules_per_speech_second",] == 5.4
    assert found["speakd_disk_free_bytes",] == 2000 * 2**20
    assert found["speakd_written_bytes_total",] == 30 * 2**20
    assert found["speakd_written_bytes_per_day",] == 25 * 2**20
    assert found["speakd_flash_wear_ratio",] == 0.4
    assert found["speakd_stage_seconds_count", "response"] == 4
    le = {key[1]: value for key, value in found.items() if key[0].endswith("_seconds_bucket") and key[2] == "response"}
    assert (le["0.01"], le["0.25"], le["0.5"], le["10.0"], le["+Inf"]) == (0, 2, 3, 3, 4)


def test_what_nobody_knows_is_not_there() -> None:
    with served(PLAIN) as bridge:
        names = {key[0] for key in scraped(bridge)}
    assert "speakd_queue" in names
    assert not names & {"speakd_real_time_factor", "speakd_underruns_total", "speakd_power_watts", "speakd_mode"}
    assert not names & {"speakd_disk_free_bytes", "speakd_written_bytes_total", "speakd_flash_wear_ratio"}


def test_before_the_first_figures_there_are_none() -> None:
    with served(None) as bridge:
        assert scraped(bridge) == {}


class OverUnix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(str(self._path))


def test_on_a_unix_socket_for_its_group_only(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    with served(full(), socket=str(path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        for _ in range(2):
            connection = OverUnix(path)
            connection.request("GET", "/metrics")
            assert parsed(connection.getresponse().read().decode())["speakd_queue",] == 0
            connection.close()
        with pytest.raises(StartError, match=r"\[prometheus\]"), served(full(), socket=str(path)):
            pass
    assert not path.exists()


def test_a_file_that_is_no_socket_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(StartError), served(full(), socket=str(path)):
        pass
    assert path.read_text() == "mine"


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"127.0.0.1:{port}"), served(full(), port=port):
            pass


@pytest.mark.parametrize("host", ["192.0.2.7", "2001:db8::7"])
def test_an_address_that_the_network_has_yet_to_bring_keeps_nobody_silent(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    """RFC 5737 and 3849 keep these for examples: no machine has them."""
    try:
        socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError:
        return  # a kernel without IPv6
    with served(full(), host=host):
        assert f"{host} is no address of this machine yet" in caplog.text


def test_a_client_that_says_nothing_holds_up_nobody() -> None:
    with served(full()) as bridge, socket.create_connection(("127.0.0.1", bridge.port)):
        assert scraped(bridge)


def test_many_that_say_nothing_take_few_threads_and_hold_up_nobody() -> None:
    with served(full()) as bridge, contextlib.ExitStack() as opened:
        before = threading.active_count()
        silent = [opened.enter_context(socket.create_connection(("127.0.0.1", bridge.port))) for _ in range(60)]
        silent[0].settimeout(10)
        assert silent[0].recv(1) == b"", "whoever has taken the longest is hung up on"
        wait_until(lambda: threading.active_count() < before + 20, "their threads stay")
        assert scraped(bridge)


class TestGrafana:
    def test_every_metric_that_a_query_names_exists(self) -> None:
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        with served(full()) as bridge:
            names = {key[0] for key in scraped(bridge)}
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        expressions += [
            variable["definition"] for variable in dashboard["templating"]["list"] if "definition" in variable
        ]
        expressions += [note["expr"] for note in dashboard["annotations"]["list"]]
        assert len(expressions) > 20
        named = {name for expression in expressions for name in re.findall(r"\bspeakd_\w+", expression)}
        assert named <= names
        assert {"speakd_alert", "speakd_stage_seconds_bucket", "speakd_temperature_celsius"} <= named

    def test_it_is_about_many_devices_and_its_panels_do_not_overlap(self) -> None:
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        assert "device" in {variable["name"] for variable in dashboard["templating"]["list"]}
        places = set()
        for panel in dashboard["panels"]:
            assert all('device=~"$device"' in target["expr"] for target in panel["targets"])
            # A device that moved to another address is there twice for a while: nothing may want it to be unique.
            assert not any(re.search(r"\b(on|ignoring) *\(", target["expr"]) for target in panel["targets"])
            at = panel["gridPos"]
            squares = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            assert not places & squares
            places |= squares
            assert at["x"] + at["w"] <= 24
        assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])

    def test_labels_that_queries_choose_by_exist(self) -> None:
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        with served(full()) as bridge:
            told = {word for key in scraped(bridge) for word in key[1:]}
        text = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
        chosen = {one for match in re.findall(r'(?:kind|stage|clock)=~?"([^"]+)"', text) for one in match.split("|")}
        assert chosen <= told

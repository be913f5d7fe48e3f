"""The figures for Prometheus to scrape, on a port of the loopback or a unix socket.

The only module that imports prometheus_client.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import socketserver
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from daemon.bridges.listening import listen
from daemon.config import Config
from daemon.errors import StartError
from daemon.events import Event
from daemon.histogram import BOUNDS_MS
from daemon.inbox import Origin
from daemon.telemetry import Durations, Snapshot
from daemon.telemetry_messages import Telemetry
from power.mode import Mode

_LOG = logging.getLogger(__name__)

_CLIENT_S: Final = 10.0
"""For a client to send its request, which is one line."""

_MOST_CLIENTS: Final = 8
"""At once; each takes a thread and a descriptor. A scrape is over within milliseconds."""

_MB: Final = 2**20

_LE_MS: Final = (1, 2.5, 5, 10, 15, 25, 50, 75, 100, 150, 250, 500, 750, 1000, 2500, 5000, 10000)
"""Of our 144 buckets these bounds are told: each is a time series for every stage and device."""

_TOLD: Final = [(bound, BOUNDS_MS.index(bound)) for bound in _LE_MS]


class Prometheus:
    """One of the bridges: it speaks HTTP. `latest` gives what is told, from any thread; None before the first."""

    def __init__(self, config: Config, latest: Callable[[], Snapshot | None]) -> None:
        self._config = config.prometheus
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Figures(config.device.name, latest))
        self._app: Any = make_wsgi_app(registry)
        self._server: WSGIServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The TCP port that it listens on."""
        return 0 if self._server is None else self._server.server_port

    def start(self) -> None:
        """Listen. StartError where address or socket cannot be had."""
        config = self._config
        where = config.socket or f"{config.host}:{config.port}"
        try:
            self._server = _UnixServer(Path(config.socket)) if config.socket else _TcpServer(config.host, config.port)
        except OSError as error:
            raise StartError(f"Prometheus cannot be served on {where}: {error.strerror}: see [prometheus]") from error
        self._server.set_app(self._app)
        self._thread = threading.Thread(target=self._server.serve_forever, name="prometheus", daemon=True)
        self._thread.start()
        _LOG.info("figures for Prometheus on %s", where)

    def told(self, event: Event, origin: Origin) -> None:
        """See `Bridge.told`: all of it is in the figures."""

    def stop(self) -> None:
        """Listen no more. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        if self._config.socket and server is not None:
            Path(self._config.socket).unlink(missing_ok=True)


class _Handler(WSGIRequestHandler):
    timeout = _CLIENT_S

    def log_message(self, *_: object) -> None:
        """Say nothing of every scrape."""


class _FewClients(socketserver.ThreadingMixIn):
    """A thread for each client; of too many, the one that has taken the longest is hung up on."""

    daemon_threads = True

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  of the server that this is mixed into
        self._clients: list[socket.socket] = []
        self._lock = threading.Lock()
        super().__init__(*arguments, **options)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  as in socketserver
        """Serve it."""
        with self._lock:
            if len(self._clients) >= _MOST_CLIENTS:
                with contextlib.suppress(OSError):  # it has gone by itself
                    self._clients.pop(0).shutdown(socket.SHUT_RDWR)
            self._clients.append(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401
        """Hang up."""
        with self._lock:
            if request in self._clients:
                self._clients.remove(request)
        super().shutdown_request(request)  # type: ignore[misc]  # of the server


class _TcpServer(_FewClients, WSGIServer):
    def __init__(self, host: str, port: int) -> None:
        listening = listen(host, port)
        super().__init__((host, port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.server_address = listening.getsockname()
        # As HTTPServer does, but for the look-up of our own name that takes seconds on a network without one.
        self.server_name = str(self.server_address[0])
        self.server_port = int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that hung up."""


class _UnixServer(_TcpServer):
    address_family = socket.AF_UNIX

    def __init__(self, path: Path) -> None:
        _remove_stale(path)
        _FewClients.__init__(self, str(path), _Handler)

    def server_bind(self) -> None:
        """Bind, for ourselves and our group."""
        before = os.umask(0o117)
        try:
            socketserver.TCPServer.server_bind(self)
        finally:
            os.umask(before)
        self.server_name, self.server_port = "localhost", 0
        self.setup_environ()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Take a connection; its address is empty here, which the handler could not print."""
        return self.socket.accept()[0], ("unix", 0)


def _remove_stale(path: Path) -> None:
    """Remove a socket on which nobody listens any more; whatever else lies there makes binding fail."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.stat().st_mode):
            return
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)


class _Figures(Collector):
    """Gives the metrics at each scrape."""

    def __init__(self, device: str, latest: Callable[[], Snapshot | None]) -> None:
        self._device = device
        self._latest = latest

    def collect(self) -> Iterable[Metric]:
        """Give all of what is known."""
        snapshot = self._latest()
        return [] if snapshot is None else list(_metrics(self._device, snapshot))


def _metrics(device: str, snapshot: Snapshot) -> Iterator[Metric]:
    figures = snapshot.figures
    yield _durations(device, snapshot.durations)
    for name, text, value in _counts(figures):
        if value is not None:
            counter = CounterMetricFamily(f"speakd_{name}", text, labels=["device"])
            counter.add_metric([device], value)
            yield counter
    yield from _voices(device, figures)
    yield _by_voice(device, "missing_phonemes", "That a voice does not know, left out", figures.missing_phonemes)
    for name, text, value in _values(figures):
        if value is not None:
            yield _gauge(device, name, text, {"": value})
    for name, text, label, values in _families(figures):
        yield _gauge(device, name, text, values, label)


def _gauge(device: str, name: str, text: str, values: Mapping[str, float], label: str = "") -> Metric:
    gauge = GaugeMetricFamily(f"speakd_{name}", text, labels=["device", label] if label else ["device"])
    for key, value in values.items():
        gauge.add_metric([device, key] if label else [device], value)
    return gauge


def _durations(device: str, stages: Mapping[str, Durations]) -> Metric:
    text = "Time to first audio: whole, without the queue (response), and of each stage"
    histogram = HistogramMetricFamily("speakd_stage_seconds", text, labels=["device", "stage"])
    for stage, durations in stages.items():
        told = [(str(bound / 1000), float(sum(durations.buckets[: index + 1]))) for bound, index in _TOLD]
        told.append(("+Inf", float(sum(durations.buckets))))
        histogram.add_metric([device, stage], told, durations.sum_ms / 1000)
    return histogram


def _counts(figures: Telemetry) -> list[tuple[str, str, float | None]]:
    """Give what only grows while the daemon runs."""
    disk = figures.disk
    return [
        ("utterances", "Heard", figures.utterances),
        ("failed", "Accepted commands that failed", figures.failed),
        ("rejected", "Commands that were not accepted", figures.rejected),
        ("cache_hits", "Utterances that were kept phrases", figures.cache_hits),
        ("underruns", "Gaps in speech that was being heard", figures.underruns),
        ("encoder_packets", "Pieces of streams that were sent", figures.encoder_packets),
        ("encoder_drops", "Pieces of streams that were lost", figures.encoder_drops),
        ("watermarked", "Utterances that carry the watermark", figures.watermarked),
        ("restarts", "Beginnings without a clean end before", figures.restarts),
        ("written_bytes", "By the daemon to its disks", None if disk.written_mb is None else disk.written_mb * _MB),
        ("telemetry_lost", "Messages given up while the broker was away", figures.lost),
    ]


def _voices(device: str, figures: Telemetry) -> Iterator[Metric]:
    """Give what voices for the loudspeaker cost."""
    voices = figures.voices.items()
    gauges = {
        "loaded": ("1 where it is loaded", {name: float(voice.loaded) for name, voice in voices}),
        "load_seconds": ("What loading it took, the last time", {name: voice.load_s for name, voice in voices}),
        "memory_bytes": ("That it takes, or took", {name: voice.memory_mb * _MB for name, voice in voices}),
    }
    for end, (text, values) in gauges.items():
        yield _gauge(device, f"voice_{end}", text, values, "voice")
    counters = {
        "loads": ("How often it was loaded", {name: voice.loads for name, voice in voices}),
        "releases": ("How often others took its memory", {name: voice.releases for name, voice in voices}),
    }
    for end, (text, counts) in counters.items():
        yield _by_voice(device, f"voice_{end}", text, counts)


def _by_voice(device: str, name: str, text: str, counts: Mapping[str, float]) -> Metric:
    counter = CounterMetricFamily(f"speakd_{name}", text, labels=["device", "voice"])
    for voice, count in counts.items():
        counter.add_metric([device, voice], count)
    return counter


def _values(figures: Telemetry) -> list[tuple[str, str, float | None]]:
    check, disk = figures.self_check, figures.disk
    wear = disk.wear_percent
    power, energy, battery = figures.power_mw, figures.energy_mj_per_s, figures.battery_percent
    return [
        ("uptime_seconds", "Since the daemon's start", figures.uptime_s),
        ("real_time_factor", "Computing time per time of speech, of the last hour", figures.rtf),
        ("watermark_real_time_factor", "Of it, what the watermark took", figures.watermark_rtf),
        ("queue", "Commands that wait for the loudspeaker", figures.queue),
        ("rendering", "Commands that are rendered or wait for that", figures.rendering),
        ("speaking", "1 while it speaks", figures.speaking),
        ("power_watts", "Of the whole board", None if power is None else power / 1000),
        (
            "energy_joules_per_speech_second",
            "What the board took while it spoke, of the last hour",
            None if energy is None else energy / 1000,
        ),
        ("disk_free_bytes", "On the fullest disk it writes to", None if disk.free_mb is None else disk.free_mb * _MB),
        (
            "written_bytes_per_day",
            "At the pace of the last 24 hours",
            None if disk.written_per_day_mb is None else disk.written_per_day_mb * _MB,
        ),
        ("flash_wear_ratio", "Of its life, what the eMMC has used at most", None if wear is None else wear / 100),
        ("battery_ratio", "Charge, 0 to 1", None if battery is None else battery / 100),
        (
            "self_check_passed",
            "1 where the voice found itself well",
            None if check is None else check.state == "passed",
        ),
        ("self_check_mos", "Its rating of itself, 1 to 5", None if check is None else check.mos),
    ]


def _families(figures: Telemetry) -> list[tuple[str, str, str, dict[str, float]]]:
    memory = {
        name: value * _MB for name, value in figures.memory_mb.model_dump().items() if isinstance(value, int | float)
    }
    loads = {"gpu": figures.gpu_load, "cpu": figures.cpu_load}
    modes = {mode.value: float(mode.value == figures.mode) for mode in Mode} if figures.mode else {}
    return [
        ("memory_bytes", "As telemetry's memory_mb", "kind", memory),
        ("load_ratio", "Share of time that it was busy", "unit", {k: v for k, v in loads.items() if v is not None}),
        ("clock_hertz", "How fast it runs", "clock", {k: v * 1e6 for k, v in figures.clocks_mhz.items()}),
        ("temperature_celsius", "By zone", "zone", dict(figures.temperatures_c)),
        ("rail_watts", "By rail", "rail", {k: v / 1000 for k, v in figures.rails_mw.items()}),
        ("mode", "1 for the mode that the governor has chosen", "mode", modes),
        ("throttling", "1 for what slows the board down", "alert", dict.fromkeys(figures.throttling, 1.0)),
        (
            "degraded",
            "1 for a source of figures that says less than it could",
            "source",
            dict.fromkeys(figures.degraded, 1.0),
        ),
        ("alert", "1 for each alert that is raised", "alert", dict.fromkeys(figures.alerts, 1.0)),
    ]

"""What a device says of how it is: figures, and alerts where one of them is out of bounds.

Figures are numbers or null, never invented. Durations are of the last hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


def _now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


class Model(BaseModel):
    """What all share: frozen."""

    model_config = ConfigDict(frozen=True)

    def to_json(self) -> str:
        """Give the payload; what is not known is null."""
        return self.model_dump_json()


class Percentiles(Model):
    """Of a duration, milliseconds, within 16 %."""

    p50: float
    p95: float
    p99: float


class Latency(Model):
    """Time to first audio of the last hour; null where nothing was said."""

    whole: Percentiles | None = None
    """Since the command came in, its time in the queue included."""
    response: Percentiles | None = None
    """The same without the queue: the four stages that follow, and what loading a voice took. Alerts judge this."""
    queue: Percentiles | None = None
    """Until the voice began with it: what spoke before it, and whatever the daemon itself takes."""
    text: Percentiles | None = None
    """From written text to phonemes, of the first sentence. Null as the next two where all were kept phrases."""
    acoustic: Percentiles | None = None
    """From phonemes to latents, of the first sentence."""
    window: Percentiles | None = None
    """The first window of sound."""
    sink: Percentiles | None = None
    """From the first samples to the output that takes them."""


class Memory(Model):
    """MiB."""

    process: float | None = None
    """Resident memory of the daemon; its phonemizer's processes are not in it."""
    pool_used: float | None = None
    """Of the sample buffers, those in use."""
    pool: float | None = None
    gpu_used: float | None = None
    """By all programs. On a Jetson, whose GPU shares the system's memory, this is of that."""
    gpu: float | None = None
    available: float | None = None
    """Of the system's memory, what could still be had."""


class VoiceLoads(Model):
    """Of a voice for the loudspeaker, since the start: what a memory for fewer voices than are used costs."""

    loaded: bool
    load_s: float
    """Of the last time; the command that needed it waited for so long."""
    loads: int
    releases: int
    """For others that needed the memory."""
    memory_mb: float
    """MiB that it takes, or took when it was loaded."""


class Disk(Model):
    """The disks that it writes to, and what it has written itself; null where nobody knows."""

    free_mb: float | None = None
    """MiB, on the fullest of them."""
    refusal: str = ""
    """Why what should be kept is not; empty where it is."""
    written_mb: float | None = None
    """By the daemon and what it has started, since its start. What the file system and the flash memory itself write
    beside that is not in it."""
    written_day_mb: float | None = None
    """Of that, within the last 24 hours."""
    written_per_day_mb: float | None = None
    """At the pace of the last 24 hours, or since the start; null within the first hour."""
    wear_percent: int | None = None
    """Of its life, what the eMMC has used at most."""


class SelfCheck(Model):
    """How the voice judged itself last."""

    state: Literal["passed", "failed", "error"]
    """`error`: it could not be done."""
    time: datetime
    voice: str
    reason: str = ""
    """Why not `passed`, or what was left out."""
    mos: float | None = None
    """DNSMOS P.835 overall quality, 1 to 5; null where the ratings' models are not installed."""
    level_db: float | None = None
    """Loudness beside the voice's own record, decibels."""
    spectrum_db: float | None = None
    """Mean difference of the spectrum from that record, decibels."""


class Telemetry(Model):
    """Retained, with QoS 0: how the device is, every `telemetry.interval_s` and when its state changes."""

    time: datetime = Field(default_factory=_now)
    interval_s: int
    """After which the next one comes, at the latest: without several of them something hangs."""
    uptime_s: int
    mode: str | None = None
    """How the governor runs the board: latency, efficiency, protect."""
    reason: str | None = None
    """Why."""
    power_mode: str | None = None
    """The board's own name of its mode (nvpmodel)."""
    ttfa_ms: Latency
    rtf: float | None = None
    """Real-time factor of the last hour: computing time per time of speech, kept phrases left out."""
    utterances: int
    """Heard since the start."""
    failed: int
    """Of what was accepted, what failed since the start."""
    rejected: int
    cache_hits: int
    """Of what was said since the start, how many were kept phrases."""
    cache_share: float | None = None
    """Of what was said in the last hour, the share that were."""
    underruns: int | None = None
    """Gaps in speech that was being heard, since the start."""
    encoder_packets: int | None = None
    encoder_drops: int | None = None
    """Pieces of streams that were lost, since the start."""
    watermarked: int = 0
    """Utterances that carry the watermark, since the start: kept phrases, files and streams too, and what was
    interrupted or cancelled while it was heard."""
    watermark_rtf: float | None = None
    """Time that the watermark took per time of speech, of the last hour; null where nothing was marked."""
    missing_phonemes: Mapping[str, int] = Field(default_factory=dict)
    """By voice, how many phonemes it was to say and does not know, each counted once a sentence, since the start: they
    are left out. Empty where none was missing. A kept phrase counts when it is computed."""
    queue: int
    """Waiting for the loudspeaker."""
    rendering: int
    """Being rendered to a file or a stream, or waiting for that."""
    speaking: bool
    restarts: int
    """How often the daemon began again without a clean end, since the journal began."""
    memory_mb: Memory
    disk: Disk = Disk()
    voices: Mapping[str, VoiceLoads] = Field(default_factory=dict)
    """Those that were loaded, by name."""
    gpu_load: float | None = None
    """Share of time that it was busy, 0 to 1."""
    cpu_load: float | None = None
    clocks_mhz: Mapping[str, int]
    temperatures_c: Mapping[str, float]
    """By zone."""
    rails_mw: Mapping[str, int]
    power_mw: int | None = None
    """Of the whole board."""
    energy_mj_per_s: float | None = None
    """What the whole board took while it spoke, per second of speech of the last hour."""
    battery_percent: int | None = None
    throttling: tuple[str, ...] = ()
    """The alerts by which the kernel says that it slows something down."""
    degraded: Mapping[str, str]
    """Source of figures -> why it says nothing, or less than it could."""
    alerts: tuple[str, ...] = ()
    """Those that are raised."""
    self_check: SelfCheck | None = None
    lost: int
    """Of these messages, those that were given up while the broker was away."""


class Alert(Model):
    """On the alert topic, with QoS 1: a figure has left its bounds, or is back."""

    alert: str
    """Its name; the same when it is cleared."""
    state: Literal["raised", "cleared"]
    severity: Literal["warning", "critical"]
    value: float | None
    """The figure now; null where there is none any more."""
    threshold: float | None
    """Beyond which it is raised; null where the alert is about a fact."""
    unit: str
    reason: str
    """In words, for people."""
    time: datetime = Field(default_factory=_now)

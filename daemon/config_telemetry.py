"""The sections of the configuration file that are about what is seen of a device: see `config_sections`."""

from __future__ import annotations

from pydantic import Field

from daemon.config_section import Section, listening_address


class TelemetryConfig(Section):
    """Figures about this device, on its telemetry topic."""

    interval_s: int = Field(
        default=15, ge=1, le=3600, description="How often they are published, beside changes of state; seconds"
    )
    self_check: bool = Field(
        default=True,
        description="Whether the voice checks itself once a day, when idle and cool, unheard",
    )


class AlertsConfig(Section):
    """Beyond which figures an alert is raised. It is cleared when they are well within again, for a while."""

    ttfa_p95_ms: float = Field(
        default=250.0,
        ge=1.0,
        le=100000.0,
        description="95th percentile of the time to first audio, without its time in the queue (warning); milliseconds",
    )
    ttfa_p99_ms: float = Field(
        default=500.0, ge=1.0, le=100000.0, description="99th percentile of the same (critical); milliseconds"
    )
    gpu_memory_percent: float = Field(
        default=85.0, ge=1.0, le=100.0, description="GPU memory in use (warning); percent"
    )
    pool_percent: float = Field(
        default=90.0, ge=1.0, le=100.0, description="Sample buffers in use for a minute (warning); percent"
    )
    encoder_drops_percent: float = Field(
        default=1.0, ge=0.0, le=100.0, description="Of streams, what is lost (warning); percent"
    )
    # Below 500 MiB no more phrases are kept, and the journal ends at some 20: what still grows then is somebody else's.
    disk_free_mb: int = Field(
        default=100, ge=0, le=1048576, description="Room on the disks it writes to, below it being one (warning); MiB"
    )
    disk_refuses: bool = Field(
        default=True, description="Whether a disk that keeps nothing, full or mounted read-only, is one (critical)"
    )
    # A card of 32 GB that bears 500 writes of each cell, ten bytes for each of ours, lasts 4 years of such days. An
    # utterance was seen to take 44 kB, mostly whole pages of the journal: this is 24,000 of them.
    disk_written_mb: int = Field(
        default=1000,
        ge=1,
        le=1048576,
        description="What the daemon itself writes within 24 hours (warning), which wears flash memory; MiB",
    )
    disk_wear_percent: int = Field(
        default=90, ge=1, le=100, description="Of its life, what the eMMC has used, where it tells (warning); percent"
    )
    throttling: bool = Field(default=True, description="Whether a board that slows itself down is an alert (critical)")
    card_lost: bool = Field(default=True, description="Whether an output that takes no sound is an alert (critical)")
    self_check: bool = Field(default=True, description="Whether a voice gone bad is an alert (critical)")


class PrometheusConfig(Section):
    """The same figures for Prometheus to scrape."""

    enabled: bool = Field(default=False, description="Whether they can be scraped")
    host: str = listening_address()
    port: int = Field(default=9468, ge=1, le=65535, description="Its TCP port, where no socket is given; port number")
    socket: str = Field(
        default="",
        description='Unix socket to listen on instead of host and port, "" for none; text of up to 100 characters',
        pattern=r"^[^\x00-\x1f\x7f-\x9f]*$",
        max_length=100,
    )

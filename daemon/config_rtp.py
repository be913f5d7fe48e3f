"""The keys of speech over RTP."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from daemon.config_section import TEXT, Section, Text
from device.rtp import Target


def _is_target(value: str) -> str:
    try:
        return str(Target.parse(value))
    except ValueError:
        raise ValueError("list of addresses and ports such as 239.255.0.1:5004 or [ff15::1]:5004, no names") from None


class RtpConfig(Section):
    """Speech over RTP, to those addresses only that stand here."""

    targets: tuple[Annotated[str, AfterValidator(_is_target)], ...] = Field(
        default=(),
        strict=False,  # TOML has arrays only
        max_length=32,
        description="Where commands may have speech sent, the first where they do not say; "
        "list of up to 32 texts such as 239.255.0.1:5004 or [ff15::1]:5004",
    )
    ttl: int = Field(default=1, ge=1, le=255, description="How far multicast goes, 1 for this network only; routers")
    interface: Text = Field(
        default="", description=f'Network interface that multicast leaves by, "" for the usual one; {TEXT}'
    )
    payload_type: int = Field(
        default=111, ge=96, le=126, description="Payload type of Opus, the next one being that of raw PCM; number"
    )
    loss_percent: int = Field(
        default=5,
        ge=0,
        le=100,
        description="Packets that are expected to be lost, 0 for none: up to 5 each carries the one before where "
        "encoder.bitrate has room for that, which is from 34000 on, above 5 in any case, with less treble; percent",
    )

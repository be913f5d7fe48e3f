"""The section of the configuration file about the board's temperature and clocks: see `config_sections`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from daemon.config_section import Section
from power.heat import LEAST_HYSTERESIS_MC

_PATH = "printable text of 1 to 4096 characters"
_Path = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", max_length=4096)]

_LEAST_GAP_C = LEAST_HYSTERESIS_MC // 1000


class PowerConfig(Section):
    """How board and voice are run: quick where somebody waits, frugal where nobody does, careful where it is hot."""

    enabled: bool = Field(
        default=True, description="Whether sensors are read, and the voice and the board's clocks follow them"
    )
    interval_s: float = Field(
        default=2.0, ge=0.5, le=15.0, description="Time between two readings of all sensors; seconds"
    )
    protect_c: int | None = Field(
        default=None,
        ge=40,
        le=120,
        description="Temperature of any sensor above which all but speech waits, "
        "10 below where the board itself slows down if left out; degrees Celsius",
        examples=[85],
    )
    hysteresis_c: int = Field(
        default=_LEAST_GAP_C,
        ge=_LEAST_GAP_C,
        le=30,
        description="By how much it must fall below that, for all else to go on; degrees Celsius",
    )
    idle_s: int = Field(
        default=120,
        ge=10,
        le=86400,
        description="Silence after which memory that only speaking needs is given back; seconds",
    )
    battery_low: int = Field(
        default=20,
        ge=0,
        le=90,
        description="Charge of a battery that is not charged now, up to which power is saved; percent",
    )
    jtop: bool = Field(default=True, description="Whether jtop is asked too, on a Jetson that has it")
    helper: _Path = Field(
        default="/run/speakd-power.sock", description=f"Socket of the helper that may change clocks; {_PATH}"
    )
    root: _Path = Field(default="/", description=f"Folder in which /sys and /proc are looked for; {_PATH}")

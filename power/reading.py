"""What the board's sensors say at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Rail:
    """One supply of the board, as far as its monitor tells."""

    name: str
    power_mw: int | None = None
    voltage_mv: int | None = None
    current_ma: int | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """How fast something runs, and between which limits it may."""

    current_hz: int | None = None
    min_hz: int | None = None
    max_hz: int | None = None


@dataclass(frozen=True, slots=True)
class Battery:
    """What feeds a robot."""

    percent: int | None = None
    charging: bool | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """All of it. What a sensor did not say, or said wrongly, is absent or None: there are no invented numbers."""

    at_s: float
    """`time.monotonic` when it was taken."""
    temperatures: Mapping[str, int] = field(default_factory=dict)
    """Zone -> thousandths of a degree Celsius."""
    rails: tuple[Rail, ...] = ()
    total_power_mw: int | None = None
    """Of the whole board, where it has a monitor for that or all rails are known."""
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    """"gpu", "emc", "cpu0" and so on -> its clock."""
    loads: Mapping[str, float] = field(default_factory=dict)
    """"gpu", "cpu" -> the share of time that it was busy, 0 to 1."""
    throttling: tuple[str, ...] = ()
    """The alerts by which the kernel says that it slows something down."""
    over_current_events: Mapping[str, int] = field(default_factory=dict)
    """Counter -> how often since boot a supply gave in."""
    battery: Battery | None = None
    memory_available: int | None = None
    """Bytes that could still be allocated without swapping."""
    power_mode: str | None = None
    """The board's own name of the mode that it is in (nvpmodel)."""
    fans: Mapping[str, float] = field(default_factory=dict)
    """Fan -> its speed as a share of the greatest, 0 to 1."""
    degraded: Mapping[str, str] = field(default_factory=dict)
    """Source -> why it says nothing, or less than it could."""

    @property
    def hottest(self) -> int | None:
        """The highest temperature, thousandths of a degree Celsius; None where none is known."""
        return max(self.temperatures.values(), default=None)

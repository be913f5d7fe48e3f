"""What time it is, also where the wall clock was never set, steps, or the machine was suspended."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PLAUSIBLE_WALL: Final = 1_767_225_600.0
"""2026-01-01: a clock before it was never set since the board started."""


@dataclass(frozen=True, slots=True)
class Clock:
    """What time it is, in several ways. Within one boot the time since it counts, whatever the wall clock does."""

    boot: str
    monotonic: float
    wall: float
    asleep: float = 0.0
    """Seconds of this boot for which the machine was suspended: `monotonic` stood still."""

    @classmethod
    def now(cls) -> Clock:
        """Read all of them."""
        boot = "unknown"
        with contextlib.suppress(OSError):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        monotonic = time.monotonic()
        return cls(boot, monotonic, time.time(), max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - monotonic))

    @property
    def since_boot(self) -> float:
        """Seconds since the boot, those of suspensions among them."""
        return self.monotonic + self.asleep

    def age_s(self, earlier: Clock) -> float | None:
        """Give the time since `earlier`; None where no clock can tell: one was not set, or went backwards."""
        if self.boot == earlier.boot and self.since_boot >= earlier.since_boot:
            return self.since_boot - earlier.since_boot
        if earlier.wall >= PLAUSIBLE_WALL and self.wall >= earlier.wall:
            return self.wall - earlier.wall
        return None

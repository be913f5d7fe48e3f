"""How much memory the system could still give, and a gate before large allocations.

The driver's own figure (cuMemGetInfo) leaves out what the kernel would free on demand; on a board whose GPU shares the
system's memory it is far too low. The kernel's MemAvailable counts it in.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from device.errors import MemoryLowError, MemoryUnknownError

MEMINFO: Final = Path("/proc/meminfo")

_MEM_AVAILABLE: Final = re.compile(rb"^MemAvailable:[ \t]+(\d{1,15}) kB$", re.MULTILINE)


def parse(meminfo: bytes) -> int | None:
    """Find MemAvailable, in bytes, in the text of /proc/meminfo; None where it does not say."""
    found = _MEM_AVAILABLE.search(meminfo)
    return None if found is None else int(found[1]) * 1024


def available_bytes(meminfo: Path = MEMINFO) -> int:
    """Give MemAvailable in bytes. MemoryUnknownError where it cannot be read."""
    try:
        value = parse(meminfo.read_bytes())
    except OSError as error:
        raise MemoryUnknownError(str(meminfo), error.strerror or str(error)) from error
    if value is None:
        raise MemoryUnknownError(str(meminfo), "has no line MemAvailable")
    return value


def require(wanted_bytes: int, *, reserve_bytes: int, meminfo: Path = MEMINFO) -> None:
    """Raise MemoryLowError if `wanted_bytes` more would leave the system less than `reserve_bytes`.

    Asked for pinned memory beyond what there is, a board swaps, then kills a process, ours or another; so ask before.
    """
    available = available_bytes(meminfo)
    if available - wanted_bytes < reserve_bytes:
        raise MemoryLowError(wanted_bytes, available, reserve_bytes)

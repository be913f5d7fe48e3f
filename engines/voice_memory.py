"""How much memory each loaded voice takes, and which go when it is too much."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from device.heap import trim
from engines.pack import AnyPack
from engines.voice import Voice

V = TypeVar("V")

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

_HEARD: Final = "heard"


@dataclass(frozen=True, slots=True)
class Loads:
    """How often a voice was loaded and released, and what that cost."""

    loaded: bool
    load_s: float
    """The last time."""
    loads: int
    releases: int
    bytes: int
    """That it takes, or took when it was there."""


_NEVER: Final = Loads(loaded=False, load_s=0.0, loads=0, releases=0, bytes=0)


class VoiceBudget:
    """What voices may take together: those that are heard, and the render threads' copies. For any thread."""

    def __init__(self, limit_bytes: int | None) -> None:
        """None: as much as they like."""
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._taken: dict[str, int] = {}
        self.spare: Callable[[int], None] = _nothing
        """Frees what nobody renders with while, with so many bytes to come, it is too much; waits for nobody."""

    def take(self, whose: str, size: int) -> None:
        """Take note of the bytes that some voices take now."""
        with self._lock:
            self._taken[whose] = size

    def is_exceeded(self, coming: int = 0) -> bool:
        """Tell whether it is too much, with so many bytes more."""
        with self._lock:
            return self._limit is not None and sum(self._taken.values()) + coming > self._limit


class LoadedVoices:
    """Voices in the order of their last use, within a budget. For one thread; owns them."""

    def __init__(self, budget: VoiceBudget) -> None:
        """Whatever the budget, the one asked for last stays."""
        self._budget = budget
        self._voices: OrderedDict[str, Voice] = OrderedDict()
        self._counts: dict[str, Loads] = {}
        self.load_s = 0.0
        """Time spent loading so far."""

    def get(self, name: str, open_pack: Callable[[], AnyPack], load: Callable[[AnyPack], Voice]) -> Voice:
        """Give a voice, loaded now if it is not; what has not been used for the longest goes first, before that."""
        if name not in self._voices:
            begun = time.perf_counter()
            pack = open_pack()
            count = self._counts.get(name, _NEVER)
            self._release(max(file_bytes(pack), count.bytes))
            self._voices[name], took = measured(pack, load)
            took_s = time.perf_counter() - begun
            self.load_s += took_s
            self._counts[name] = replace(count, loaded=True, load_s=took_s, loads=count.loads + 1, bytes=took)
        self._voices.move_to_end(name)
        self._release(0, keep=name)
        return self._voices[name]

    @property
    def all(self) -> list[Voice]:
        """Those that are loaded."""
        return list(self._voices.values())

    @property
    def counts(self) -> dict[str, Loads]:
        """Of each voice that was ever loaded, by name."""
        return dict(self._counts)

    @property
    def bytes(self) -> int:
        """What those that are loaded took."""
        return sum(self._counts[name].bytes for name in self._voices)

    def close(self) -> None:
        """Free all. Idempotent."""
        while self._voices:
            self._voices.popitem()[1].close()
        self._budget.take(_HEARD, 0)

    def _release(self, coming: int, keep: str = "") -> None:
        self._budget.take(_HEARD, self.bytes)
        if self._budget.is_exceeded(coming):
            self._budget.spare(coming)
        released = False
        while self._voices and self._budget.is_exceeded(coming):
            oldest = next(iter(self._voices))
            if oldest == keep:
                break
            self._voices.pop(oldest).close()
            count = self._counts[oldest]
            self._counts[oldest] = replace(count, loaded=False, releases=count.releases + 1)
            self._budget.take(_HEARD, self.bytes)
            released = True
        if released:
            trim()


def file_bytes(pack: AnyPack) -> int:
    """Give the size of a pack's files, the least that its voice will take."""
    return sum((pack.folder / file).stat().st_size for file in pack.info.files)


def measured(pack: AnyPack, load: Callable[[AnyPack], V]) -> tuple[V, int]:
    """Load a voice; gives the bytes that it takes too.

    That is how much the process grew meanwhile, at least the size of its files: other threads blur that, and what
    speaking takes on top is not in it.
    """
    before = _resident_bytes()
    voice = load(pack)
    trim()  # a graph as it is read takes twice what is kept of it
    return voice, max(file_bytes(pack), _resident_bytes() - before)


def _nothing(_: int) -> None:
    pass


def _resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):  # no Linux
        return 0

"""How much memory each loaded voice takes, and which go when it is too much."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from device.heap import trim
from engines.pack import AnyPack
from engines.voice import Voice

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


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


class LoadedVoices:
    """Voices in the order of their last use, within a budget. For one thread; owns them.

    What a voice takes is how much the process grew as it was loaded, at least the size of its files: other threads
    blur that, and what speaking takes on top is not in it.
    """

    def __init__(self, limit_bytes: int | None) -> None:
        """`limit_bytes`: of all voices together; None: without a limit. The one asked for last always stays."""
        self._limit = limit_bytes
        self._voices: OrderedDict[str, Voice] = OrderedDict()
        self._counts: dict[str, Loads] = {}
        self.load_s = 0.0
        """Time spent loading so far."""

    def get(self, name: str, open_pack: Callable[[], AnyPack], load: Callable[[AnyPack], Voice]) -> Voice:
        """Give a voice, loaded now if it is not; what has not been used for the longest goes first, before that."""
        voice = self._voices.get(name)
        if voice is None:
            begun = time.perf_counter()
            pack = open_pack()
            least = sum((pack.folder / file).stat().st_size for file in pack.info.files)
            count = self._counts.get(name, _NEVER)
            self._release(max(least, count.bytes))
            before = _resident_bytes()
            voice = load(pack)
            trim()  # a graph as it is read takes twice what is kept of it
            took = max(least, _resident_bytes() - before)
            self._voices[name] = voice
            took_s = time.perf_counter() - begun
            self.load_s += took_s
            self._counts[name] = replace(count, loaded=True, load_s=took_s, loads=count.loads + 1, bytes=took)
            self._release(0, keep=name)
        self._voices.move_to_end(name)
        return voice

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

    def _release(self, coming: int, keep: str = "") -> None:
        released = False
        while self._limit is not None and self._voices and self.bytes + coming > self._limit:
            oldest = next(iter(self._voices))
            if oldest == keep:
                break
            self._voices.pop(oldest).close()
            count = self._counts[oldest]
            self._counts[oldest] = replace(count, loaded=False, releases=count.releases + 1)
            released = True
        if released:
            trim()


def _resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):  # no Linux
        return 0

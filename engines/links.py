"""Which links are in a folder: read again only where that has changed, and never waited for."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engines.aside import PATIENCE_S, Aside

_SETTLES_S: Final = 2.5
"""Two changes within the same step of a disk's clock look alike: some ms at most places, 2 s on FAT."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What was in a folder."""

    names: tuple[str, ...] = ()
    """In order."""
    state: tuple[int, ...] = ()
    """What the kernel changes with the folder, as it was before the names were read."""
    since: float = 0.0
    """When that state was first seen, in seconds of `time.monotonic`."""
    is_settled: bool = False
    """Whether whatever changes the names from now on changes the state too."""


class Links:
    """The links in one folder. For any threads."""

    def __init__(self, folder: Path, pattern: re.Pattern[str]) -> None:
        """Count only those whose whole name fits `pattern`."""
        self._folder = folder
        self._pattern = pattern
        self._aside = Aside("links")
        self._known: Listing | None = None

    def now(self) -> Listing:
        """Give what is there, the same object while that is settled. OSError where it cannot be read.

        Where the disk does not answer: what was there before, or TimeoutError.
        """
        try:
            self._known = self._aside.do(self._look, PATIENCE_S)
        except FileNotFoundError:
            self._known = None
            return Listing()
        except TimeoutError:
            if self._known is None:
                raise
        return self._known

    def _look(self) -> Listing:
        status, now, known = self._folder.stat(), time.monotonic(), self._known
        state = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        is_same = known is not None and known.state == state
        if known is not None and is_same and known.is_settled:
            return known
        since = known.since if known is not None and is_same else now
        names = sorted(p.name for p in self._folder.iterdir() if p.is_symlink() and self._pattern.fullmatch(p.name))
        return Listing(tuple(names), state, since, is_settled=now - since >= _SETTLES_S)

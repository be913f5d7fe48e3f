"""Other programs' sound, turned down while speech is heard and up again after it, also after a crash."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from daemon.inbox import Inbox
from daemon.worker import Worker
from device.ducking import Others, Stream, turned_down
from device.errors import DuckingError

_LOG = logging.getLogger(__name__)

_LINGER_S: Final = 0.7
"""After speech: the next sentence often follows, and music that comes up in between is worse than none."""

_SAME: Final = 1 / 65536 * 2
"""Volumes are whole steps of this kind in the server; whoever changed one himself is left alone."""

_MOST_OWED: Final = 50
"""Streams that ended while they were turned down: the server gives their volume to that program's next one."""


@dataclass(frozen=True, slots=True)
class _Ducked:
    who: str
    before: tuple[float, ...]
    now: tuple[float, ...]

    def is_still(self, stream: Stream) -> bool:
        """Tell whether a stream has the volume that we gave it."""
        if stream.who != self.who or len(stream.volumes) != len(self.now):
            return False
        return all(abs(one - other) < _SAME for one, other in zip(stream.volumes, self.now, strict=True))


class Ducking(Worker):
    """Owns what was turned down. `begin` and `end` are for any thread and return at once."""

    def __init__(self, by_db: float, record: Path, post: Callable[[Inbox], None]) -> None:
        """`record`: where it is written down what was turned down, before it is."""
        super().__init__("ducking", post)
        self._by_db = by_db
        self._record = record
        self._changed = threading.Condition()
        self._speaking = 0
        self._stopping = False
        self._news = False
        self._owed: list[_Ducked] = []
        self._told = ""

    def begin(self) -> None:
        """Take note that an utterance is on its way; each has one `end`."""
        with self._changed:
            self._speaking += 1
            self._news = True
            self._changed.notify()

    def end(self) -> None:
        """Take note that it is over."""
        with self._changed:
            self._speaking -= 1
            self._news = True
            self._changed.notify()

    def stop(self) -> None:
        """Turn all up again and end the thread."""
        with self._changed:
            self._stopping = self._news = True
            self._changed.notify()

    def work(self) -> None:
        """Turn down and up until stopped."""
        self._owed = self._recall()
        self._try(self._up)
        down = False
        while True:
            with self._changed:
                silent = down and not self._speaking
                news = self._changed.wait_for(lambda: self._news, _LINGER_S if silent else None)
                self._news = False
                if self._stopping:
                    break
                speaking = self._speaking > 0
            if speaking:
                self._try(self._down)  # again with each utterance: somebody may have begun to play
                down = True
            elif down and not news:
                self._try(self._up)
                down = False
        self._try(self._up)

    def _down(self) -> None:
        with Others() as others:
            down = []
            for stream in others.playing():
                if any(ducked.is_still(stream) for ducked in self._owed):
                    continue
                ducked = _Ducked(stream.who, stream.volumes, turned_down(stream.volumes, self._by_db))
                down.append((stream, ducked))
            if not down:
                return
            self._owed = [*self._owed, *(ducked for _, ducked in down)][-_MOST_OWED:]
            self._remember()
            for stream, ducked in down:
                others.set(stream, ducked.now)

    def _up(self) -> None:
        if not self._owed:
            return
        with Others() as others:
            for stream in others.playing():
                found = next((ducked for ducked in self._owed if ducked.is_still(stream)), None)
                if found is not None:
                    others.set(stream, found.before)
                    self._owed.remove(found)
        self._remember()

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except (DuckingError, OSError) as error:
            if str(error) != self._told:
                self._told = str(error)
                _LOG.warning("%s", error)

    def _remember(self) -> None:
        unfinished = self._record.with_suffix(".new")
        unfinished.write_text(json.dumps([asdict(ducked) for ducked in self._owed]))
        unfinished.replace(self._record)

    def _recall(self) -> list[_Ducked]:
        try:
            kept = json.loads(self._record.read_bytes())
            return [_Ducked(str(one["who"]), tuple(one["before"]), tuple(one["now"])) for one in kept]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, KeyError) as error:
            _LOG.warning("%s: what was turned down before the restart is unknown: %s", self._record, error)
            return []

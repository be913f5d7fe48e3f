"""The lexicon as it is now: what was set over MQTT, and the files of a folder, which may change while it is in use."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from daemon.commands import LexiconGet, LexiconSet
from daemon.events import Done, LexiconState
from daemon.journal import Journal
from engines.aside import PATIENCE_S, Aside
from engines.text.lexicon import MOST_ENTRIES, Entry, Lexicon
from engines.text.lexicon_files import LexiconFolder

_LOG = logging.getLogger(__name__)

_FACT: Final = "lexicon"

_READ_S: Final = 8.0
"""For files that have changed, of which the largest take some seconds on a slow board; less than counts as a hung
thread."""


class _Set(BaseModel):
    """What `lexicon/set` said last."""

    model_config = ConfigDict(frozen=True)

    version: int = 0
    entries: tuple[Entry, ...] = ()


class Lexica:
    """`current` is for all threads, the rest for the speaker's."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        """Recall what was set before the restart; the journal stays the caller's."""
        self._journal = journal
        self._set = _recalled(journal)
        self._folder = folder
        self._files = LexiconFolder(folder, lambda problem: _LOG.warning("%s", problem))
        self._aside = Aside("lexicon")  # of whose thread the files are
        self._answers = True
        self._lock = threading.Lock()  # guards the three below
        self._from_files: tuple[Entry, ...] = ()
        self._from_set = self._set.entries
        self._lexicon = Lexicon(self._from_set)

    def current(self) -> Lexicon:
        """Give the lexicon with all that has changed until now, as far as the disk with the files answers."""
        try:
            self._aside.do(self._touch, PATIENCE_S)  # a disk that hangs is told sooner from one whose files are read
            self._aside.do(self._look, _READ_S)
            self._answers = True
        except TimeoutError:
            if self._answers:
                _LOG.warning("the lexicon's folder %s does not answer: what was read before counts", self._folder)
            self._answers = False
        return self._lexicon

    def _touch(self) -> None:
        with suppress(OSError):  # a folder that is not there, or cannot be looked at, has no files for us
            self._folder.stat()

    def _look(self) -> None:
        entries = self._files.entries()
        if entries is not None:
            with self._lock:
                self._from_files = entries
                self._make()

    def answer(self, command: LexiconSet | LexiconGet) -> Done | LexiconState:
        """Carry a command out."""
        if isinstance(command, LexiconSet):
            version = self._set.version + 1 if command.version is None else command.version
            self._set = _Set(version=version, entries=command.entries)
            with self._lock:
                self._from_set = command.entries
                self._make()
            self._journal.remember(_FACT, self._set.model_dump_json())
            return Done(request=command.request, command="lexicon/set")
        self.current()
        entries = tuple(entry.model_dump(exclude_defaults=True) for entry in self._set.entries)
        in_files = len(self._from_files)
        return LexiconState(request=command.request, version=self._set.version, entries=entries, in_files=in_files)

    def _make(self) -> None:
        """Replace the lexicon as a whole; those who read a text with the old one finish with it."""
        entries: Sequence[Entry] = (*self._from_set, *self._from_files)
        if len(entries) > MOST_ENTRIES:
            _LOG.warning("of %d entries of the lexicon the first %d count", len(entries), MOST_ENTRIES)
        self._lexicon = Lexicon(entries[:MOST_ENTRIES])


def _recalled(journal: Journal) -> _Set:
    kept = journal.recall(_FACT)
    try:
        return _Set() if kept is None else _Set.model_validate_json(kept)
    except ValueError as error:
        _LOG.warning("the lexicon that was set before cannot be read, so it is empty: %s", error)
        return _Set()

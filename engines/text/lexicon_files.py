"""Lexica in files: a folder of TOML files, each a list of tables `[[entry]]` with the keys of `lexicon.Entry`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from engines.text.lexicon import Entry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MOST_FILES: Final = 100
_LARGEST_BYTES: Final = 2**21
_MOST_PROBLEMS: Final = 3


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    entry: list[Entry]


@dataclass(frozen=True, slots=True)
class _Known:
    """What a file held when it was last looked at."""

    state: tuple[int, int]
    """Its time of change in nanoseconds, and its size."""
    entries: tuple[Entry, ...]


class LexiconFolder:
    """The files `*.toml` of a folder, in the order of their names. For one thread at a time."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        """Read nothing yet. `warn` is told of each file that cannot be used, once until it changes."""
        self._folder = folder
        self._warn = warn
        self._known: dict[Path, _Known] = {}

    def entries(self) -> tuple[Entry, ...] | None:
        """Give all entries where a file has come, gone or changed since the last call; None where none has.

        A file that cannot be used keeps the entries that it had before.
        """
        states = self._states()
        changed = [
            path for path, state in states.items() if path not in self._known or self._known[path].state != state
        ]
        if not changed and states.keys() == self._known.keys():
            return None
        known = {path: self._known[path] for path in states if path in self._known}
        for path in changed:
            before = known[path].entries if path in known else ()
            known[path] = _Known(states[path], self._read(path, before))
        self._known = {path: known[path] for path in sorted(known)}
        return tuple(entry for file in self._known.values() for entry in file.entries)

    def _states(self) -> dict[Path, tuple[int, int]]:
        try:
            files = sorted(path for path in self._folder.iterdir() if path.suffix == ".toml")[:_MOST_FILES]
            stats = {path: path.stat() for path in files}
        except OSError:
            return {}  # there is no such folder, or a file went just now: then the next call sees that
        return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in stats.items()}

    def _read(self, path: Path, before: tuple[Entry, ...]) -> tuple[Entry, ...]:
        try:
            if path.stat().st_size > _LARGEST_BYTES:
                raise ValueError(f"it is larger than {_LARGEST_BYTES} bytes")  # noqa: TRY301  told as all else is
            return tuple(_File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).entry)
        except ValidationError as error:
            reason = "; ".join(_problem(detail["loc"], detail["msg"]) for detail in error.errors()[:_MOST_PROBLEMS])
        except (OSError, ValueError) as error:
            reason = str(error)
        kept = " and what it held before counts" if before else ""
        self._warn(f"the lexicon {path} cannot be used{kept}: {reason}")
        return before


def _problem(place: tuple[int | str, ...], what: str) -> str:
    where = [f"number {part + 1}" if isinstance(part, int) else part for part in place]
    return f"{' '.join(where)}: {what}"

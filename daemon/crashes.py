"""How speakd ended the last times, and what follows: a pause before it starts again, a safer engine.

systemd writes a line for each end (`ExecStopPost=` of the unit): whatever happened to us, it saw it. A driver or a
library that crashes again and again is not asked a fourth time: the next safer engine speaks instead.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from engines.durable import write_whole

_LOG = logging.getLogger(__name__)

ENDS: Final = "ends"
"""The file to which the unit adds a line per end: its `$SERVICE_RESULT`."""

PUT_ASIDE: Final = "engine-put-aside.json"
"""The file that tells what must not be used any more."""

_NO_MEMORY: Final = "oom-kill"
_CRASHES: Final = frozenset({"core-dump", "signal", "watchdog", _NO_MEMORY})
"""What systemd calls an end that native code is to blame for. What speakd itself gives up on is 'exit-code'."""

_TENSORRT: Final = "tensorrt"
"""In the name of an engine that is one of its."""

_IN_A_ROW: Final = 3
"""So many crashes on one engine put it aside."""

STEADY_S: Final = 600.0
"""A run of this length, ten minutes, ends the row: what crashes less often than that is better than nothing."""

_FREE_ATTEMPTS: Final = 4
_LONGEST_PAUSE_S: Final = 60.0
"""The first few times it starts again at once. Then it waits 1, 2, 4, ... s, a minute at most: what fails for good
should not heat the board, and what is mended from afar should be noticed."""

_LONGEST_FILE: Final = 65536
"""Bytes of ends: some thousand starts that failed. What is longer is shortened to its last ones."""

_KEPT: Final = 4096
"""Bytes that stay of it. From fewer ends than these hold, all that is ever asked follows."""

LADDER: Final = ("", "int8", "trt")
"""Step -> what is put aside at it, with all before: nothing, INT8, all of TensorRT."""


@dataclass(frozen=True, slots=True)
class _Facts:
    version: str = ""
    """Of speakd: another one may have mended it."""
    step: int = 0
    """On `LADDER`."""
    engine: str = ""
    """What computed the default voice last, such as 'trt int8'; empty where none was ever ready at this step."""


class Crashes:
    """The row of bad ends, and what was put aside for it. For the main thread."""

    def __init__(self, folder: Path, version: str) -> None:
        """Read what is known in `folder`, the state folder; `version` of speakd."""
        self._folder = folder
        _shorten(folder / ENDS)
        ends = _read_ends(folder / ENDS)
        self.in_a_row = len(ends)
        """Bad ends since the last good or long run."""
        known = self._written = _read_facts(folder / PUT_ASIDE)
        self._facts = known if ends else replace(known, engine="")
        if self._facts.version != version:
            self._facts = _Facts(version)
        if _crashed_in_a_row(ends) >= _IN_A_ROW and self._facts.step < len(LADDER) - 1:
            self._put_aside(out_of_memory=_NO_MEMORY in ends[-_IN_A_ROW:])

    @property
    def pause_s(self) -> float:
        """How long to wait before starting."""
        beyond = self.in_a_row - _FREE_ATTEMPTS
        return 0.0 if beyond < 0 else min(_LONGEST_PAUSE_S, 2.0 ** min(beyond, 10))

    @property
    def put_aside(self) -> str:
        """What must not be used: nothing, 'int8' or 'trt'."""
        return LADDER[self._facts.step]

    @property
    def problem(self) -> str | None:
        """What was done about crashes, in words; None where nothing was."""
        return _problem(self._facts)

    def speaks_with(self, engine: str) -> None:
        """Note the engine of the default voice, once it is ready."""
        self._facts = replace(self._facts, engine=engine)
        self._write()

    def steady(self) -> None:
        """End the row: it has run long enough, or was stopped in order."""
        self.in_a_row = 0
        try:
            (self._folder / ENDS).unlink(missing_ok=True)
        except OSError as error:
            _LOG.warning("the record of crashes cannot be cleared: %s", error)

    def _put_aside(self, *, out_of_memory: bool) -> None:
        """Go up the ladder to where what was in use, or may have been, is left out. Wider numbers need more memory."""
        engine = self._facts.engine
        if self._facts.step == 0 and (not engine or "int8" in engine) and not out_of_memory:
            step = 1
        elif not engine or _TENSORRT in engine:
            step = 2
        else:
            _LOG.error("%s crashed %d times in a row, and nothing safer is known", engine, self.in_a_row)
            return
        self._facts = replace(self._facts, step=step, engine="")
        # In this order: after a power cut between the two, the row must not put a second engine aside for the same.
        self.steady()
        self._write()
        _LOG.error("%s", self.problem)

    def _write(self) -> None:
        # As a rule nothing has changed since the last start. Where there is no folder nobody installed it as a service,
        # so nobody notes how it ends either.
        if self._facts == self._written or not self._folder.is_dir():
            return
        try:
            write_whole(self._folder / PUT_ASIDE, json.dumps(asdict(self._facts)).encode())
            self._written = self._facts
        except OSError as error:  # a full disk: the next crash is judged by what was known before
            _LOG.warning("which engine speaks cannot be noted: %s", error)


def problem_of(file: Path) -> str | None:
    """Say what the file `PUT_ASIDE` tells of, for whoever only looks; None where it is nothing."""
    return _problem(_read_facts(file))


def _problem(facts: _Facts) -> str | None:
    if not facts.step:
        return None
    what = "TensorRT" if LADDER[facts.step] == "trt" else "INT8"
    return f"{what} crashed {_IN_A_ROW} times in a row and is put aside; `speakd doctor` tells how to try it again"


def _shorten(file: Path) -> None:
    """Keep the file from growing by a line for each start that fails, for months."""
    try:
        if file.stat().st_size > _LONGEST_FILE:
            write_whole(file, file.read_bytes()[-_KEPT:].partition(b"\n")[2])
    except FileNotFoundError:
        return
    except OSError as error:
        _LOG.warning("the record of crashes cannot be shortened: %s", error)


def _read_ends(file: Path) -> Sequence[str]:
    """Give systemd's words for the last bad ends in a row, oldest first."""
    try:
        with file.open("rb") as opened:
            opened.seek(0, 2)
            opened.seek(max(0, opened.tell() - _LONGEST_FILE))
            lines = opened.read().decode("ascii", "replace").split("\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        _LOG.warning("how speakd ended the last times cannot be read: %s", error)
        return []
    ends: list[str] = []
    for line in lines[:-1]:  # a line that a power cut left without its end is none
        if line == "success":
            ends.clear()
        elif line:
            ends.append(line)
    return ends


def _crashed_in_a_row(ends: Sequence[str]) -> int:
    row = 0
    for end in reversed(ends):
        if end not in _CRASHES:
            break
        row += 1
    return row


def _read_facts(file: Path) -> _Facts:
    try:
        facts = json.loads(file.read_bytes())
        return _Facts(str(facts["version"]), min(len(LADDER) - 1, max(0, int(facts["step"]))), str(facts["engine"]))
    except FileNotFoundError:
        return _Facts()
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        _LOG.warning("%s cannot be read, so no engine is put aside: %s", file, error)
        return _Facts()

"""The one who changes the board: within what it offers, with the old values kept, in the right order, and read back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from power import sysfs
from power.actions import Action, Restore, SetEmcCap, SetLimits, SetPowerMode
from power.board import Board, Range, read_board
from power.errors import BoardChangedError, NvpmodelError, PowerError, RefusedError, StateError
from power.nvpmodel import TIME_LIMIT_S, Nvpmodel, PowerMode, id_of
from power.saved import Snapshot, SnapshotFile, boot_of

RESTORE_WAITS_S: Final = (1.0, 3.0)
"""Before nvpmodel is asked once more for the mode that was found: at boot its files may not be there yet."""


class Actor:
    """Does actions, as root. What was there before the first is kept in a file, and put back by `restore`.

    For one thread; a change of power mode takes seconds, everything else well under one millisecond.
    """

    def __init__(
        self,
        root: Path,
        state: Path,
        *,
        nvpmodel_limit_s: float = TIME_LIMIT_S,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """`root` is what every path starts with; `state` the file with old values. `wait` is given seconds."""
        self._root = root
        self._file = SnapshotFile(state)
        self._nvpmodel_limit_s = nvpmodel_limit_s
        self._wait = wait
        self._board: Board | None = None
        self._snapshot: Snapshot | None = None

    @property
    def board(self) -> Board:
        """What the board offers, as it was found before the first action."""
        if self._board is None:
            self._board = read_board(self._root)
        return self._board

    def is_lost(self) -> bool:
        """See `Actions.is_lost`: nobody else undoes it."""
        return False

    def do(self, action: Action) -> str:
        """Do it, and give what reads back.

        RefusedError where it is beyond what the board offers or what it was set to, NvpmodelError and StateError where
        something failed, BoardChangedError where somebody else has chosen another power mode.
        """
        if isinstance(action, Restore):
            problems = self.restore()
            if problems:
                raise StateError("; ".join(problems))
            return "restore"
        self._check_owner()
        if isinstance(action, SetLimits):
            return self._set_limits(action)
        if isinstance(action, SetEmcCap):
            return self._set_emc_cap(action)
        return self._set_power_mode(action)

    def restore(self) -> list[str]:
        """Put back what was found, also by a helper before us that was killed. Gives what could not be, in words."""
        self._board = None
        try:
            snapshot = self._snapshot or self._file.load()
            self._snapshot = None
            if snapshot is None:
                return []
            problems = self._restore_all(snapshot)
            if not problems:
                self._file.forget()
        except PowerError as error:
            return [str(error)]
        return problems

    # Changes ----------------------------------------------------------------------------------------------------------

    def _set_limits(self, action: SetLimits) -> str:
        found = self.board.ranges.get(action.domain)
        if found is None:
            raise RefusedError(f"this board has no clock {action.domain}")
        if not action.min_hz <= action.max_hz:
            raise RefusedError("the lower limit is above the upper one")
        for hertz in (action.min_hz, action.max_hz):
            if not found.offers(hertz):
                raise RefusedError(f"{action.domain} does not offer {hertz} Hz")
        if action.max_hz > found.max_hz:
            raise RefusedError(f"{action.domain} was limited to {found.max_hz} Hz before, and {action.max_hz} is more")
        self._keep()
        unit = found.domain.unit
        write_limits(found, str(action.min_hz // unit), str(action.max_hz // unit))
        low, high = (_number(path) * unit for path in (found.domain.minimum, found.domain.maximum))
        # Lower is the kernel's right: it throttles. Higher was not written.
        if high > action.max_hz:
            raise RefusedError(f"{action.domain} shows {low} to {high} Hz after {action.min_hz} to {action.max_hz}")
        return f"limits {action.domain} {low} {high}"

    def _set_emc_cap(self, action: SetEmcCap) -> str:
        file, found = self.board.emc_cap_file, self.board.emc_cap_hz
        if file is None:
            raise RefusedError("this board has no cap for its memory's clock")
        if action.cap_hz not in (*self.board.emc_caps, found):
            raise RefusedError(f"no power mode of this board has {action.cap_hz} Hz as its memory's cap")
        if found and not 0 < action.cap_hz <= found:
            raise RefusedError(f"the memory was capped at {found} Hz before, and {action.cap_hz} is more")
        self._keep()
        _write(file, str(action.cap_hz))
        shown = _text(file)
        if shown != str(action.cap_hz):
            raise RefusedError(f"the memory's cap shows {shown} after {action.cap_hz}")
        return f"emc-cap {shown}"

    def _set_power_mode(self, action: SetPowerMode) -> str:
        modes, found = self.board.modes, self.board.mode
        if modes is None or found is None:
            raise RefusedError("this board has no power modes, or does not tell in which it is")
        mode = modes.by_id(action.mode_id)
        if mode is None:
            raise RefusedError(f"this board has no power mode {action.mode_id}")
        if mode.gating != found.gating:
            raise RefusedError(f"power mode {mode.name} needs a reboot")
        if mode.rank > found.rank:
            raise RefusedError(f"the board was in power mode {found.name}, and {mode.name} is more")
        snapshot = replace(self._keep(), mode_asked=mode.id)
        self._file.keep(snapshot)
        self._snapshot = snapshot
        self._nvpmodel(self.board).change(mode)
        return f"power-mode {mode.id}"

    def _keep(self) -> Snapshot:
        """Keep the present values, if that was not done yet."""
        if self._snapshot is None:
            kept = self._file.load()  # after a restore that failed in part: the older values are the true ones
            snapshot = kept or Snapshot(
                boot=boot_of(self._root),
                limits={
                    name: (_text(known.domain.minimum), _text(known.domain.maximum))
                    for name, known in self.board.ranges.items()
                },
                emc_cap=_text(self.board.emc_cap_file) if self.board.emc_cap_file else None,
                mode=self.board.mode.id if self.board.mode else None,
            )
            self._file.keep(snapshot)
            self._snapshot = snapshot
        return self._snapshot

    def _check_owner(self) -> None:
        snapshot = self._snapshot
        if snapshot is None:
            return
        now = self._mode_id(self.board)
        if now not in (None, snapshot.mode, snapshot.mode_asked):
            self._snapshot = self._board = None
            told = f"somebody else has chosen power mode {now}: its limits hold now"
            try:
                self._file.forget()  # nvpmodel has written the new mode's limits over ours
            except StateError as error:
                raise BoardChangedError(f"{told}; {error}") from error
            raise BoardChangedError(told)

    # The way back -----------------------------------------------------------------------------------------------------

    def _restore_all(self, snapshot: Snapshot) -> list[str]:
        problems = self._restore_mode(read_board(self._root), snapshot)
        board = read_board(self._root)  # with the cores that another mode had switched off
        is_owners = not problems and self._mode_id(board) not in (None, snapshot.mode)
        if snapshot.boot == boot_of(self._root) and not is_owners:
            problems += self._restore_limits(board, snapshot)
        return problems

    def _restore_mode(self, board: Board, snapshot: Snapshot) -> list[str]:
        asked = snapshot.mode_asked
        if asked is None or asked == snapshot.mode or board.modes is None:
            return []
        mode = board.modes.by_id(snapshot.mode)
        # Anything but what we asked for is either what was found, or somebody else's choice. An attempt that failed
        # halfway may have changed limits without changing the status: asking again sets them right.
        if mode is None or self._mode_id(board) not in (asked, snapshot.mode):
            return []
        return self._change_back(self._nvpmodel(board), mode)

    def _change_back(self, nvpmodel: Nvpmodel, mode: PowerMode) -> list[str]:
        failure = _failure(nvpmodel, mode)
        for wait_s in RESTORE_WAITS_S:
            if failure is None:
                return []
            self._wait(wait_s)
            failure = _failure(nvpmodel, mode)
        return [] if failure is None else [f"power mode {mode.name}: {failure}"]

    def _restore_limits(self, board: Board, snapshot: Snapshot) -> list[str]:
        problems = []
        for name, (low, high) in snapshot.limits.items():
            known = board.ranges.get(name)
            try:
                if known is None:
                    problems.append(f"{name}: is not there any more")
                else:
                    write_limits(known, low, high)
            except (RefusedError, ValueError) as error:
                problems.append(str(error))
        if snapshot.emc_cap is not None and board.emc_cap_file is not None:
            try:
                _write(board.emc_cap_file, snapshot.emc_cap)
            except RefusedError as error:
                problems.append(str(error))
        return problems

    def _nvpmodel(self, board: Board) -> Nvpmodel:
        if board.modes is None:
            raise RefusedError("this board has no power modes")
        return Nvpmodel(self._root, board.modes, time_limit_s=self._nvpmodel_limit_s)

    def _mode_id(self, board: Board) -> int | None:
        return id_of(_text(board.modes.status)) if board.modes and board.modes.status.exists() else None


def _failure(nvpmodel: Nvpmodel, mode: PowerMode) -> NvpmodelError | None:
    try:
        nvpmodel.change(mode)
    except NvpmodelError as error:
        return error
    return None


def write_limits(known: Range, low: str, high: str) -> None:
    """Write both limits, in the unit of their files and in the order in which neither crosses the other.

    The kernel refuses a lower limit above the upper one, so a falling upper limit is written last, a rising one first.
    What shows the value already is not written.
    """
    files = [(known.domain.minimum, low), (known.domain.maximum, high)]
    if int(high) > _number(known.domain.maximum):
        files.reverse()
    for path, text in files:
        if _text(path) != text:
            _write(path, text)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror or error}") from error


def _number(path: Path) -> int:
    text = _text(path)
    if not text.isdigit():
        raise RefusedError(f"{path} shows no number: {text[:20]!r}")
    return int(text)


def _write(path: Path, text: str) -> None:
    try:
        sysfs.write(path, text)
    except OSError as error:
        raise RefusedError(f"{path} does not take {text}: {error.strerror or error}") from error

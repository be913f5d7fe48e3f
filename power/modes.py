"""From a decision to the board's clocks and power mode, and back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from power.actions import Action, Actions, Restore, SetEmcCap, SetLimits, SetPowerMode
from power.board import Board, Range
from power.errors import HelperError, NvpmodelError, PowerError, RefusedError, StateError
from power.mode import Decision, Mode

CAPPED_SHARE: Final = 0.6
"""Of the highest clock that was found. Energy for the same work falls with the square of the voltage, and that falls
with the clock down to some such share; below, the work merely takes longer. Not measured on a board yet."""

UNKNOWN: Final = "unknown"

FIRST_WAIT_S: Final = 30.0
MOST_TRIES: Final = 5
"""Of changing the power mode while that fails, each after twice the wait of the one before."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a decision."""

    changed: tuple[str, ...] = ()
    """What reads back, in words such as "limits gpu 306000000 612000000"."""
    refused: tuple[str, ...] = ()
    """What is not done, and why: now, or when it was asked for."""
    power_mode: str | None = None
    """The board's own name of the mode that it is in now; "unknown" after a change that failed; None without modes."""
    took_s: float = 0.0
    """How long it took: what a switch costs."""


class Modes:
    """Applies decisions through whoever may change the board. For one thread.

    What a decision needs and already is so, is not asked for again. Where there is no helper, everything is refused and
    the board stays as it is.
    """

    def __init__(
        self, actions: Actions, *, power_modes: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`power_modes`: while protecting, choose the board's next lower mode too, if that needs no reboot."""
        self._actions = actions
        self._power_modes = power_modes
        self._clock = clock
        self._done: dict[str, Action | None] = {}  # None: not known any more
        self._refusals: dict[str, str] = {}
        self._mode_name: str | None = None
        self._tries = 0
        self._next_try = 0.0

    def apply(self, decision: Decision) -> Applied:
        """Bring the board to what a decision wants. Takes about a millisecond; seconds where the power mode changes.

        To be called for the same decision again from time to time: a helper that was restarted has put everything back,
        and a power mode that failed is tried once more when its time has come.
        """
        began = self._clock()
        changed: list[str] = []
        refused: list[str] = []
        if self._actions.is_lost():
            self._forget()
        try:
            board = self._actions.board
            if self._mode_name is None and board.mode is not None:
                self._mode_name = board.mode.name
            for action in plan(board, decision, power_modes=self._power_modes):
                self._one(board, action, changed)
            refused += self._refusals.values()
        except HelperError as error:
            self._forget()
            refused.append(str(error))
        return Applied(tuple(changed), tuple(refused), self._mode_name, self._clock() - began)

    def restore(self) -> Applied:
        """Put everything back as it was found."""
        began = self._clock()
        if not self._done and not self._tries:
            return Applied(power_mode=self._mode_name)
        self._forget()
        try:
            told = self._actions.do(Restore())
        except PowerError as error:
            return Applied(refused=(str(error),), took_s=self._clock() - began)
        return Applied((told,), took_s=self._clock() - began)

    def _one(self, board: Board, action: Action, changed: list[str]) -> None:
        key = action.domain if isinstance(action, SetLimits) else type(action).__name__
        if self._done.get(key, _as_found(board, key)) == action:
            return
        if isinstance(action, SetPowerMode):
            if self._tries >= MOST_TRIES or self._clock() < self._next_try:
                return
            # nvpmodel writes its mode's limits over ours, whether or not it succeeds.
            self._done.update(dict.fromkeys((*board.ranges, SetEmcCap.__name__)))
        self._refusals.pop(key, None)
        try:
            changed.append(self._actions.do(action))
        except NvpmodelError as error:
            self._mode_name = UNKNOWN
            self._next_try = self._clock() + FIRST_WAIT_S * 2**self._tries
            self._tries += 1
            self._done[key] = None
            self._refusals[key] = str(error)
            return
        except (RefusedError, StateError) as error:
            self._refusals[key] = str(error)
        else:
            if isinstance(action, SetPowerMode):
                self._tries = 0
                self._mode_name = _name_of(board, action)
        # Asked for once. What is refused now will be refused the next time, until the decision is another.
        self._done[key] = action

    def _forget(self) -> None:
        self._done.clear()
        self._refusals.clear()
        self._mode_name = None
        self._tries = 0
        self._next_try = 0.0


def plan(board: Board, decision: Decision, *, power_modes: bool = True) -> tuple[Action, ...]:
    """Say what a decision means on this board: every clock's limits, the memory's cap and the power mode.

    Someone waits: each clock at the highest that was found. Capped: at most CAPPED_SHARE of that. Otherwise as found.
    """
    actions: list[Action] = []
    caps: dict[str, int] = {}
    if board.modes is not None and board.mode is not None and power_modes:
        lower = board.modes.lower(board.mode) if decision.mode is Mode.PROTECT else None
        actions.append(SetPowerMode((lower or board.mode).id))
        caps = board.caps_of(lower) if lower else {}
    for name, known in board.ranges.items():
        highest = min(known.max_hz, caps.get(name, known.max_hz))
        if name == "emc" and not known.table:
            continue  # a clock between the memory's own ones
        actions.append(_limits(known, decision, known.at_most(highest) if highest < known.max_hz else highest))
    if board.emc_cap_file is not None and board.emc_caps:
        lowest = board.emc_caps[0]
        is_lower = not board.emc_cap_hz or lowest < board.emc_cap_hz
        actions.append(SetEmcCap(lowest if decision.clocks_capped and is_lower else board.emc_cap_hz))
    return tuple(actions)


def _limits(known: Range, decision: Decision, highest: int) -> SetLimits:
    name = known.domain.name
    if decision.clocks_capped:
        cap = min(highest, known.at_most(int(known.max_hz * CAPPED_SHARE)))
        return SetLimits(name, known.lowest_hz if known.is_pinned else min(known.min_hz, cap), cap)
    if decision.mode is Mode.LATENCY:
        return SetLimits(name, highest, highest)
    return SetLimits(name, min(known.min_hz, highest), highest)


def _as_found(board: Board, key: str) -> Action | None:
    """Give the action that would change nothing on a board as it was found."""
    if key in board.ranges:
        return SetLimits(key, board.ranges[key].min_hz, board.ranges[key].max_hz)
    if key == SetPowerMode.__name__ and board.mode is not None:
        return SetPowerMode(board.mode.id)
    return SetEmcCap(board.emc_cap_hz)


def _name_of(board: Board, action: SetPowerMode) -> str | None:
    mode = board.modes.by_id(action.mode_id) if board.modes else None
    return mode.name if mode else None

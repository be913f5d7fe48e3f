"""What may be asked of the root side: exact actions, one line each, and nothing else.

    limits gpu 306000000 612000000      lowest and highest clock in Hz
    emc-cap 2133000000                  highest clock of the memory in Hz; 0: none
    power-mode 1                        an id of the board's own file
    restore                             everything as it was before the first action

One line comes back for each: `ok` and what reads back, `refused` and why, `failed` and what went wrong, or `gone` and
why the helper hangs up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol

from power.board import Board
from power.errors import ActionError

MOST_LINE_BYTES: Final = 64
"""The longest action has 42."""

_LINE: Final = re.compile(
    rb"limits (?P<domain>gpu|emc|cpu(?:0|[1-9]\d{0,3})) (?P<low>\d{1,11}) (?P<high>\d{1,11})"
    rb"|emc-cap (?P<cap>\d{1,11})"
    rb"|power-mode (?P<mode>\d{1,6})"
    rb"|(?P<restore>restore)"
)


@dataclass(frozen=True, slots=True)
class SetLimits:
    """Lets a clock run between these, in Hz."""

    domain: str
    min_hz: int
    max_hz: int


@dataclass(frozen=True, slots=True)
class SetEmcCap:
    """Caps the memory's clock, in Hz; 0 takes the cap away."""

    cap_hz: int


@dataclass(frozen=True, slots=True)
class SetPowerMode:
    """Changes to a mode of nvpmodel."""

    mode_id: int


@dataclass(frozen=True, slots=True)
class Restore:
    """Puts everything back as it was before the first action."""


Action = SetLimits | SetEmcCap | SetPowerMode | Restore


class Actions(Protocol):
    """Who can change the board: the helper's client; in the helper, the one that does it."""

    @property
    def board(self) -> Board:
        """What the board offers, as it was before the first action."""

    def is_lost(self) -> bool:
        """Tell whether what was done is undone, for the helper has gone."""

    def do(self, action: Action) -> str:
        """Do it, and give what reads back. RefusedError, NvpmodelError, StateError; HelperError without a helper."""


def parse(line: bytes) -> Action:
    """Make an action of a line without its end. ActionError for every other."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise ActionError("is no action that there is")
    if found["domain"] is not None:
        return SetLimits(found["domain"].decode("ascii"), int(found["low"]), int(found["high"]))
    if found["cap"] is not None:
        return SetEmcCap(int(found["cap"]))
    if found["mode"] is not None:
        return SetPowerMode(int(found["mode"]))
    return Restore()


def line_of(action: Action) -> bytes:
    """Give the line of an action, with its end."""
    if isinstance(action, SetLimits):
        text = f"limits {action.domain} {action.min_hz} {action.max_hz}"
    elif isinstance(action, SetEmcCap):
        text = f"emc-cap {action.cap_hz}"
    elif isinstance(action, SetPowerMode):
        text = f"power-mode {action.mode_id}"
    else:
        text = "restore"
    return text.encode("ascii") + b"\n"

"""What the governor chooses between, and what it has decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Mode(str, Enum):
    """How the board and the voice are run.

    latency: someone is waiting: clocks up, engines warm. efficiency: nobody is: clocks capped, engines released.
    protect: too hot, or nearly: speech is still served, everything else waits.
    """

    LATENCY = "latency"
    EFFICIENCY = "efficiency"
    PROTECT = "protect"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done from now on."""

    mode: Mode
    reason: str
    """In words, for people: 'a command waits', '82 °C and rising'."""
    clocks_capped: bool = False
    engines_warm: bool = True
    """False: what an idle voice holds may be given back."""
    large_windows: bool = False
    """Fewer, larger windows: less work for the same speech, and a later first sound."""
    encoder_complexity: int | None = None
    """The highest Opus complexity from now on; None: as configured."""
    rendering_paused: bool = False
    """What needs no loudspeaker waits."""
    rest_s: float = 0.0
    """Seconds between two utterances, in which the board cools down."""

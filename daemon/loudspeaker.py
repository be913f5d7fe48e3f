"""Whoever opens, closes, wakes and finds again the sink that the player writes to."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from daemon.inbox import AudioState, Inbox
from device.errors import SinkError
from device.realtime import raise_priority
from device.sink import Sink

_FIRST_RETRY_S: Final = 0.25
_LAST_RETRY_S: Final = 2.0
"""Between attempts to find a lost card. One costs 1 ms of computing; whoever is back waits no longer than this."""

_CHECK_S: Final = 2.0
"""How soon it is noticed, while nothing is said, that a card was unplugged: a look at memory that alsa-lib shares with
the kernel."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How a loudspeaker wants to be treated. The defaults are a file's, which must not be opened twice."""

    keeps: bool = False
    """Whether a lost one is looked for, and an open one looked after, while nothing is said."""
    idle_close_s: float = 0.0
    """How long after the last sound it is closed, so that it may sleep and others may have it; 0: never."""
    wake_s: float = 0.0
    """Silence to be played before speech to one that sleeps and swallows what comes first."""
    wake_after_s: float = 0.0
    """How long after the last sound it sleeps. One that was just opened does."""
    clicks: bool = False
    """Whether a jump to or from silence gets a ramp, as it is heard; a file shall be as long as the speech."""


class Loudspeaker:
    """Owns whether the sink is open, and tells when that is lost and found. For the player's thread."""

    def __init__(self, sink: Sink, post: Callable[[Inbox], None], manners: Manners | None = None) -> None:
        self._sink = sink
        self._post = post
        self._manners = manners or Manners()
        self._open = False
        self._problem: str | None = None  # as told last; None: nothing yet
        self._retry_s = _FIRST_RETRY_S
        self._retry_at = 0.0
        self._heard_at = -1e9
        """When the last sound ended, or it was opened."""
        self._awake = False

    def open(self) -> None:
        """Have it open now. SinkError where it cannot be, which is told too."""
        if self._open:
            return
        # A sound server's client has a thread of its own, which shall be as urgent as this one.
        raise_priority(inherited=True)
        try:
            self._sink.open()
        except SinkError as error:
            self.lose(error)
            raise
        finally:
            raise_priority()
        self._open = True
        self._awake = False
        self._heard_at = time.monotonic()
        self._retry_s = _FIRST_RETRY_S
        self._tell("")

    def lose(self, error: SinkError) -> None:
        """Close it after a failure: a card that comes back is another one."""
        self._sink.close()
        self._open = False
        self._retry_at = time.monotonic() + self._retry_s
        self._retry_s = min(2 * self._retry_s, _LAST_RETRY_S)
        self._tell(f"lost: {error}")

    def sleeps_for_s(self) -> float:
        """Give the silence it must be played before it lets anything be heard; 0 for one that is awake."""
        idle_s = time.monotonic() - self._heard_at
        return 0.0 if self._awake and idle_s < self._manners.wake_after_s else self._manners.wake_s

    def heard(self) -> None:
        """Take note that it has played until now."""
        self._heard_at = time.monotonic()
        self._awake = True

    def slept(self) -> None:
        """Take note that the whole machine slept, and this with it."""
        self._awake = False

    def care_in_s(self) -> float | None:
        """Tell when `tend` is wanted, while nothing is said; None: not at all."""
        manners, now = self._manners, time.monotonic()
        if not manners.keeps:
            return None
        if not self._open:
            return max(0.0, self._retry_at - now) if self._problem else None
        if manners.idle_close_s:
            return min(_CHECK_S, max(0.0, self._heard_at + manners.idle_close_s - now))
        return _CHECK_S

    def tend(self) -> None:
        """Look for a lost one, see whether an open one is still there, close it where it was idle for long."""
        manners, now = self._manners, time.monotonic()
        try:
            if not self._open:
                if self._problem and now >= self._retry_at:
                    self.open()
            elif manners.idle_close_s and now >= self._heard_at + manners.idle_close_s:
                self.close()
            else:
                self._sink.check()
        except SinkError as error:
            if self._open:
                self.lose(error)  # `open` has told of its own failure

    def close(self) -> None:
        """Close it in peace."""
        self._sink.close()
        self._open = False

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self._post(AudioState(problem))

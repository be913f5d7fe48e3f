"""The two threads beside the board: one reads its sensors, one carries decisions to its clocks.

Two, for the sensors matter most while the helper is slow: a change of power mode takes seconds.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections.abc import Callable
from typing import Final, Literal

from daemon.inbox import Inbox, ModeApplied, ReadingTaken
from daemon.worker import Worker
from power.mode import Decision, Mode
from power.modes import Applied, Modes
from power.sensors import Sensors

_LOG = logging.getLogger(__name__)

_SOON_S: Final = 0.3
"""After a command: the first sound is on its way by then, and no core is taken from it by reading some 100 files."""

_CAPPED: Final = Decision(Mode.LATENCY, "to see what a raise costs", clocks_capped=True)

_AGAIN_S: Final = 30.0
"""Without a new decision the old one is applied again: a helper that was restarted has put everything back."""

_MOST_TOLD: Final = 20
"""Different refusals that are logged, each once."""


class SensorWatch(Worker):
    """Owns the sensors. `look_soon` and `stop` may be called from any thread and return at once."""

    def __init__(
        self, make_sensors: Callable[[], Sensors], post: Callable[[Inbox], None], *, interval_s: float
    ) -> None:
        """`make_sensors` is called in the thread."""
        super().__init__("sensors", post)
        self._make_sensors = make_sensors
        self._interval_s = interval_s
        self._orders: queue.SimpleQueue[Literal["look", "stop"]] = queue.SimpleQueue()

    def look_soon(self) -> None:
        """Have the sensors read as soon as that delays no sound."""
        self._orders.put("look")

    def stop(self) -> None:
        """End after the reading that is being taken."""
        self._orders.put("stop")

    def work(self) -> None:
        """Read until stopped."""
        with contextlib.closing(self._make_sensors()) as sensors:
            due = time.monotonic()
            while (order := self._order(due)) != "stop":
                if order == "look":
                    due = min(due, time.monotonic() + _SOON_S)
                else:
                    self._post(ReadingTaken(sensors.read()))
                    due = time.monotonic() + self._interval_s

    def _order(self, due: float) -> Literal["look", "stop"] | None:
        """Wait for an order until something is due; None once it is."""
        try:
            return self._orders.get(timeout=max(0.0, due - time.monotonic()))
        except queue.Empty:
            return None


class BoardHand(Worker):
    """Owns the clocks. `apply` and `stop` may be called from any thread and return at once."""

    def __init__(
        self,
        make_modes: Callable[[], tuple[Modes, Callable[[], None]]],
        post: Callable[[Inbox], None],
        *,
        again_s: float = _AGAIN_S,
    ) -> None:
        """`make_modes` is called in the thread; it also gives what hangs up on the helper.

        `again_s`: after so long without a new decision the old one is applied again.
        """
        super().__init__("board", post)
        self._make_modes = make_modes
        self._orders: queue.SimpleQueue[Decision | None] = queue.SimpleQueue()
        self._again_s = again_s
        self._was_capped = False
        self._refused: tuple[str, ...] = ()
        self._told: set[str] = set()

    def apply(self, decision: Decision) -> None:
        """Have the board follow a decision; where several have come, the last one."""
        self._orders.put(decision)

    def stop(self) -> None:
        """Put the board back as it was found, and end."""
        self._orders.put(None)

    def work(self) -> None:
        """Apply until stopped."""
        modes, hang_up = self._make_modes()
        decision: Decision | None = _CAPPED  # what comes first is a raise then, which tells what one costs
        try:
            while decision is not None:
                self._apply(modes, decision)
                decision = self._after(decision)
            modes.restore()
        finally:
            hang_up()  # at which the helper puts back whatever is left

    def _after(self, decision: Decision) -> Decision | None:
        """Give the newest decision, after a while the same again; None to end."""
        newest: Decision | None = decision
        with contextlib.suppress(queue.Empty):
            newest = self._orders.get(timeout=self._again_s)
            while newest is not None:
                newest = self._orders.get_nowait()
        return newest

    def _apply(self, modes: Modes, decision: Decision) -> None:
        applied = modes.apply(decision)
        raised = self._was_capped and not decision.clocks_capped and _is_clocks_alone(applied)
        self._was_capped = decision.clocks_capped
        for refusal in applied.refused:
            if refusal not in self._told and len(self._told) < _MOST_TOLD:
                self._told.add(refusal)
                _LOG.warning("the board's clocks do not follow: %s", refusal)
        if applied.changed or applied.refused != self._refused:
            self._refused = applied.refused
            self._post(ModeApplied(applied, raised))


def _is_clocks_alone(applied: Applied) -> bool:
    """Tell whether clocks were changed and nothing else: another power mode takes seconds, and is no race to idle."""
    return bool(applied.changed) and not any(change.startswith("power-mode") for change in applied.changed)

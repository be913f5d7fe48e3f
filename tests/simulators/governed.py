"""A daemon's part of governing a board: decisions, and who carries them out through the helper."""

from __future__ import annotations

from collections.abc import Callable

from simulators.board_parts import BoardTree
from simulators.power_helper import HelperProcess

from power.helper_client import HelperClient
from power.mode import Decision, Mode
from power.modes import Applied, Modes

LATENCY = Decision(Mode.LATENCY, "a command waits")
EFFICIENCY = Decision(Mode.EFFICIENCY, "nobody waits", clocks_capped=True)
PROTECT = Decision(Mode.PROTECT, "too hot", clocks_capped=True)
AS_FOUND = Decision(Mode.EFFICIENCY, "nobody waits")


class Daemon:
    """What the daemon has of it: a client and its Modes."""

    def __init__(self, helper: HelperProcess, tree: BoardTree) -> None:
        self.client = HelperClient(helper.socket, tree.root)
        self.now = 0.0
        self.modes = Modes(self.client, clock=lambda: self.now)

    def apply(self, decision: Decision) -> Applied:
        applied = self.modes.apply(decision)
        assert applied.refused == ()
        return applied


Connect = Callable[[HelperProcess, BoardTree], Daemon]


def whole(tree: BoardTree) -> dict[str, str]:
    """Everything that may be changed on a board."""
    files = [*tree.policies, *([tree.gpu] if tree.gpu else [])]
    known = {str(path): str(limits) for path, limits in tree.caps().items() if path in files}
    status = {"mode": tree.read("var/lib/nvpmodel/status")} if tree.name != "pc" else {}
    return known | status | ({"emc": tree.read(tree.emc_cap)} if tree.emc_cap else {})

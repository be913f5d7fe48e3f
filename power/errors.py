"""What can go wrong with the board's sensors and settings."""

from __future__ import annotations


class PowerError(Exception):
    """Root of every error raised in `power`."""


class ActionError(PowerError):
    """What a client asks of the helper is none of the actions that there are."""


class RefusedError(PowerError):
    """The helper knows the action and does not do it. The text says why."""


class HelperError(PowerError):
    """Nobody changes the board's settings for us: there is no helper, it is busy, or it went away."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the power helper {reason}")


class BoardChangedError(PowerError):
    """Somebody else has chosen another power mode since: what was known of the board holds no more."""


class NvpmodelError(PowerError):
    """The board's power mode could not be changed, or is not what was asked for. The text says why."""


class StateError(PowerError):
    """The values to be restored cannot be kept or read back."""

"""Where speech goes: a loudspeaker, a file, or nowhere at the pace of a loudspeaker."""

from __future__ import annotations

from typing import Protocol

from device.format import Samples


class Sink(Protocol):
    """Takes mono float32 frames at `device.format.RATE`.

    Constructing one touches nothing. One thread at a time uses it. Every method but `close` raises SinkError.
    """

    @property
    def description(self) -> str:
        """Where the sound goes, for people: 'alsa default (48000 Hz, ...)', a file's path, 'null'."""

    @property
    def pending(self) -> int:
        """How many frames were taken and are not yet played: a whole buffer at most. 0 where nothing is played."""

    @property
    def period(self) -> int:
        """How many frames are played between two wake-ups: less than two of these ahead may run dry. 0 for a file."""

    @property
    def underruns(self) -> int:
        """How often it ran dry in the middle of a sound since it was constructed: gaps that were heard."""

    def open(self) -> None:
        """Get ready to take frames. Nothing happens where the sink is open already."""

    def check(self) -> None:
        """SinkError where it is known that no more frames can be taken. Costs next to nothing, and asks no server."""

    def write(self, samples: Samples) -> None:
        """Take all of `samples` (any length) and block until there is room for them.

        The memory is read before this returns and never after.
        """

    def drain(self) -> None:
        """Return when the last frame taken has been played (a file: is on its way to the disk), and stay open."""

    def drop(self) -> None:
        """Forget what was taken but not played, at once, and stay open."""

    def close(self) -> None:
        """Stop and free everything. Idempotent. What was not drained may be lost or may still be heard."""

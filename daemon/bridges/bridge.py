"""What a bridge is: the same commands and events in the words of another protocol."""

from __future__ import annotations

from typing import Protocol

from daemon.events import Event
from daemon.inbox import Origin


class Bridge(Protocol):
    """Posts commands to the inbox and hears every event. Its methods are for the main thread and return at once."""

    def start(self) -> None:
        """Begin, in the background. StartError where the configuration cannot be used."""

    def told(self, event: Event, origin: Origin) -> None:
        """Hear an event, of whomever; `origin` is that of the command."""

    def stop(self) -> None:
        """Say goodbye. Idempotent; raises nothing."""

"""A thread whose death is heard."""

from __future__ import annotations

import threading
from collections.abc import Callable

from daemon.health import Pulse
from daemon.inbox import Inbox, ThreadDied


class Worker(threading.Thread):
    """A daemon thread; an exception that leaves `work` reaches the inbox instead of being lost on stderr."""

    def __init__(self, name: str, post: Callable[[Inbox], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._post = post
        self.pulse = Pulse()
        """Whether it moves. `work` beats as it goes on, and says when it has nothing to do."""
        self.pulse.rest()

    def run(self) -> None:
        """Work until done."""
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001  whatever it was, the main thread decides
            self._post(ThreadDied(self.name, error))

    def work(self) -> None:
        """Do the thread's work; to be overridden."""
        raise NotImplementedError

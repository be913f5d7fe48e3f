"""What can go wrong in the service around the voice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class DaemonError(Exception):
    """Root of every error raised in `daemon`."""


class ConfigError(DaemonError):
    """The configuration cannot be used. Carries every problem found, not only the first."""

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        self.path = path
        self.problems = list(problems)
        super().__init__("\n".join(f"{path}: {problem}" for problem in self.problems))


class PayloadError(DaemonError):
    """A message on a command topic is no command that can be accepted."""

    def __init__(self, code: str, reason: str, command_id: str | None = None) -> None:
        self.code = code
        """See `daemon.events.Rejected.code`."""
        self.reason = reason
        self.command_id = command_id
        super().__init__(reason)


class StoppedError(DaemonError):
    """The daemon was stopped before the utterance was over."""

    def __init__(self) -> None:
        super().__init__("the daemon was stopped")


class UnsaidError(DaemonError):
    """A text was not spoken, or not to its end. Says why."""


class RenderQueueFullError(DaemonError):
    """More was to be rendered than may wait."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        super().__init__(f"{capacity} utterances wait to be rendered already: try again later")


class StreamLostError(DaemonError):
    """A stream has a gap: its pieces found no room on the way to the broker."""

    def __init__(self) -> None:
        super().__init__("a piece of the stream could not be sent: the broker was away for too long")


class ListenerGoneError(DaemonError):
    """Whoever asked for the sound of a command takes none of it any more."""

    def __init__(self) -> None:
        super().__init__("whoever asked for the sound takes no more of it")


class BrokerConfigError(DaemonError):
    """What the configuration says about the broker cannot be used."""


class StartError(DaemonError):
    """The daemon cannot start. The text says what to do."""


class JournalError(DaemonError):
    """The journal cannot be opened, read or written."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"the journal {path}: {reason} (is another speakd running, or the disk full?)")


class InterruptedByCrashError(DaemonError):
    """The daemon or the device went down and a command is not spoken any more."""

    def __init__(self, when: str) -> None:
        super().__init__(f"the daemon went down {when}")


class ChimeError(DaemonError):
    """A chime cannot be played, or a default one does not exist."""

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        self.reason = reason
        super().__init__(f"{key}: {reason}")

"""What all sinks that are files have in common."""

from __future__ import annotations

from pathlib import Path


class FileSink:
    """The part of a `Sink` that speaks of a loudspeaker, for those that are none: a file has played what it took."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    @property
    def description(self) -> str:
        """The file's path."""
        return str(self._path)

    @property
    def pending(self) -> int:
        """See `Sink.pending`."""
        return 0

    @property
    def period(self) -> int:
        """See `Sink.period`."""
        return 0

    @property
    def underruns(self) -> int:
        """See `Sink.underruns`."""
        return 0

"""What other programs play, through PulseAudio or PipeWire's stand-in for it. The only module that imports pulsectl."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from device.errors import DuckingError

_CUBIC: Final = 3
"""PulseAudio's volumes are cube roots of factors on the samples."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What somebody plays."""

    index: int
    """The server's number for it, for as long as it lasts."""
    who: str
    """By whom: the server remembers volumes by this, and gives them to that program's next stream."""
    volumes: tuple[float, ...]
    """Of each channel, as the server counts them."""


def turned_down(volumes: tuple[float, ...], by_db: float) -> tuple[float, ...]:
    """Give these volumes, less by so many dB."""
    factor = 10 ** (-by_db / 20 / _CUBIC)
    return tuple(volume * factor for volume in volumes)


class Others:
    """A connection to the sound server. For one thread; every method raises DuckingError where that does not answer."""

    def __init__(self) -> None:
        self._server: Any = None
        self._error: type[Exception] = Exception

    def __enter__(self) -> Others:  # noqa: PYI034  typing.Self is of Python 3.11
        """Connect."""
        try:
            import pulsectl  # noqa: PLC0415  loads libpulse, which many machines lack
        except (ImportError, OSError) as error:
            raise DuckingError(f"{error}: install pulsectl and libpulse0, or leave audio.duck_db out") from error
        self._error = pulsectl.PulseError
        self._server = pulsectl.Pulse("speakd", connect=False)
        try:
            # Not with pulsectl's own time-out, which is waited for to its end. libpulse gives a server 30 s.
            self._server.connect(autospawn=False)
        except self._error as error:
            self._server.close()
            raise DuckingError(str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave."""
        self._server.close()

    def playing(self) -> list[Stream]:
        """Give what other processes play."""
        ours = str(os.getpid())
        try:
            found = self._server.sink_input_list()
        except self._error as error:
            raise DuckingError(str(error)) from error
        return [
            Stream(stream.index, _who(stream), tuple(stream.volume.values))
            for stream in found
            if stream.proplist.get("application.process.id") != ours
        ]

    def set(self, stream: Stream, volumes: tuple[float, ...]) -> None:
        """Give a stream other volumes. One that has ended meanwhile is passed over."""
        import pulsectl  # noqa: PLC0415

        try:
            self._server.sink_input_volume_set(stream.index, pulsectl.PulseVolumeInfo(list(volumes)))
        except pulsectl.PulseIndexError:
            return
        except self._error as error:
            if any(other.index == stream.index for other in self.playing()):
                raise DuckingError(str(error)) from error


def _who(stream: Any) -> str:  # noqa: ANN401  pulsectl has no types
    known = stream.proplist
    return str(known.get("module-stream-restore.id") or known.get("application.name") or stream.name or "")

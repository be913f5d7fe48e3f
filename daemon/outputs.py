"""Where speech goes that is not for the loudspeaker: files of one folder, and streams over MQTT."""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from daemon.commands import Speak
from daemon.config import EncoderConfig
from daemon.errors import StreamLostError
from daemon.inbox import AudioPage, Inbox, RenderEnded, RenderStarted
from device.errors import SinkError
from device.format import Samples
from device.opus import OpusSink
from device.sink import Sink
from device.wav import WavSink

_LONGEST_NAME: Final = 100
_PART: Final = ".part"

_MARK: Final = 8
"""Hexadecimal digits that tell apart what would have the same name."""


class Outputs:
    """Makes a destination for each command, and completes it. For the main thread, but for `Destination.take`."""

    def __init__(
        self,
        folder: Path,
        file_format: str,
        encoder: EncoderConfig,
        *,
        topic_of: Callable[[str], str],
        post: Callable[[Inbox], None],
    ) -> None:
        """Nothing is made before it is needed. `topic_of` names the topic of a command's stream."""
        self._folder = folder
        self._suffix = "." + file_format
        self._encoder = encoder
        self._topic_of = topic_of
        self._post = post
        self._open: dict[str, _Destination] = {}
        self._complexity_cap: int | None = None

    def begin(
        self, command: Speak, given: Callable[[Samples], None] | None = None
    ) -> tuple[Callable[[Samples], None], str]:
        """Give what takes the command's samples, in any one thread, and where they will be found.

        What takes them raises SinkError; where somebody in this process takes them, it is `given`.
        """
        if given is not None:
            return given, ""
        destination: _Destination
        if command.output == "file":
            destination = self._file(command.id)
        else:
            topic = self._topic_of(command.id)
            pages = _Pages(lambda page: self._post(AudioPage(command.id, topic, page)))
            destination = _Destination(self._opus(topic, pages), topic)
        self._open[command.id] = destination

        def take(samples: Samples) -> None:
            if not destination.begun:
                destination.begin()
                self._post(RenderStarted(command.id, time.monotonic()))
            destination.sink.write(samples)

        return take, destination.location

    def set_complexity_cap(self, cap: int | None) -> None:
        """Have what is begun from now on encoded with at most this complexity; None: as configured."""
        self._complexity_cap = cap

    def lose(self, command_id: str) -> None:
        """Take note that a piece of a stream could not be sent."""
        destination = self._open.get(command_id)
        if destination is not None:
            destination.error = destination.error or StreamLostError()

    def end(self, message: RenderEnded) -> RenderEnded:
        """Complete what a command has written, or do away with it; gives the message with what went wrong here."""
        destination = self._open.pop(message.id, None)
        if destination is None:
            return message
        error = message.error or destination.error
        try:
            destination.finish(keep=error is None)
        except SinkError as failure:
            error = error or failure
        return replace(message, error=error)

    def clear_leftovers(self) -> None:
        """Delete what a crash left unfinished. Raises nothing."""
        with contextlib.suppress(OSError):
            for part in self._folder.glob(f".*{_PART}"):
                part.unlink(missing_ok=True)

    def close(self) -> None:
        """Do away with all that is not complete. Raises nothing; nobody takes samples any more."""
        while self._open:
            with contextlib.suppress(SinkError):
                self._open.popitem()[1].finish(keep=False)

    def _opus(self, path: Path | str, file: io.RawIOBase | None = None) -> OpusSink:
        encoder, cap = self._encoder, self._complexity_cap
        complexity = encoder.complexity if cap is None else min(encoder.complexity, cap)
        return OpusSink(path, bitrate=encoder.bitrate, complexity=complexity, frame_ms=encoder.frame_ms, file=file)

    def _file(self, command_id: str) -> _File:
        path = self._folder / (file_name(command_id) + self._suffix)
        part = path.with_name(f".{path.name}{_PART}")
        sink: Sink = WavSink(part) if self._suffix == ".wav" else self._opus(part)
        return _File(sink, path, part)


def file_name(command_id: str) -> str:
    """Make a file's name, without its suffix, of an id: nothing in it leaves the folder or hides."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", command_id)[:_LONGEST_NAME].lstrip(".") or "_"
    if name == command_id:
        return name
    return f"{name}-{hashlib.sha256(command_id.encode()).hexdigest()[:_MARK]}"


class _Destination:
    """A sink that is opened with the first samples: what has none leaves nothing behind."""

    def __init__(self, sink: Sink, location: str) -> None:
        self.sink = sink
        self.location = location
        self.begun = False
        self.error: Exception | None = None

    def begin(self) -> None:
        self.sink.open()
        self.begun = True

    def finish(self, *, keep: bool) -> None:
        """Complete it; SinkError where that fails. Not to be kept, it may stay incomplete."""
        try:
            if self.begun and keep:
                self.sink.drain()
        finally:
            self.sink.close()


class _File(_Destination):
    """A file that has its name only once it is whole."""

    def __init__(self, sink: Sink, path: Path, part: Path) -> None:
        super().__init__(sink, path.name)
        self._path = path
        self._part = part

    def begin(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SinkError(str(self._path.parent), f"cannot be made: {error.strerror}", "see render.folder") from error
        super().begin()

    def finish(self, *, keep: bool) -> None:
        if keep and not self.begun:
            self.begin()  # nothing was to be said: a file without a sound says so
        try:
            super().finish(keep=keep)
            if keep:
                self._part.replace(self._path)
        except OSError as error:
            raise SinkError(str(self._path), f"cannot be written: {error.strerror}", "see render.folder") from error
        finally:
            with contextlib.suppress(OSError):
                self._part.unlink(missing_ok=True)


class _Pages(io.RawIOBase):
    """A file each write to which is one Ogg page to send."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        super().__init__()
        self._send = send

    def writable(self) -> bool:
        """Say yes."""
        return True

    def write(self, page: bytes) -> int:  # type: ignore[override]
        """Send a page."""
        self._send(bytes(page))
        return len(page)

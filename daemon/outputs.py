"""Where speech goes that is not for the loudspeaker: files of one folder, streams over MQTT, RTP targets."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import queue
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from daemon.commands import Speak, StreamQuality
from daemon.config import Config, renders_folder
from daemon.destinations import Destination, FileDestination, RtpDestination, StreamDestination
from daemon.errors import PayloadError, StreamLostError
from daemon.inbox import AudioPage, Inbox, RenderEnded, RenderStarted
from daemon.rtp_sender import RtpSender, RtpUtterance
from daemon.worker import Worker
from device.errors import SinkError
from device.format import Samples
from device.opus import EncoderPool, OpusSettings
from device.opus_packets import Dial
from device.rtp import Target, sdp
from engines.aside import Aside

_LOG = logging.getLogger(__name__)

_LONGEST_NAME: Final = 100
_PART: Final = ".part"

_MARK: Final = 8
"""Hexadecimal digits that tell apart what would have the same name."""

_STOP_S: Final = 2.0


@dataclass(slots=True)
class EncoderCounts:
    """What became of packets, of all commands that have ended. Written by the main thread, read by any."""

    packets: int = 0
    """Encoded."""
    dropped: int = 0
    """Encoded, but lost on the way out of here."""


class _Completer(Worker):
    """The thread that completes files, or does away with them: the main thread waits for no disk."""

    def __init__(self, post: Callable[[Inbox], None]) -> None:
        super().__init__("files", post)
        self._files: queue.SimpleQueue[tuple[FileDestination, RenderEnded] | None] = queue.SimpleQueue()

    def complete(self, file: FileDestination, ended: RenderEnded) -> None:
        """Have a file completed whose command has ended; what is told of that comes through the inbox again."""
        self._files.put((file, ended))

    def stop(self) -> None:
        """End once all that waits is completed."""
        self._files.put(None)

    def work(self) -> None:
        """Complete what comes until stopped."""
        while (item := self._files.get()) is not None:
            file, ended = item
            try:
                file.finish(keep=ended.error is None)
            except SinkError as failure:
                file.error = failure
            file.is_complete = True
            self._post(ended)


class Outputs:
    """Makes a destination for each command, and completes it. For the main thread, but for what `begin` gives."""

    def __init__(
        self,
        config: Config,
        *,
        topic_of: Callable[[str], str],
        post: Callable[[Inbox], None],
    ) -> None:
        """Nothing is made before it is needed. `topic_of` names the topic of a command's stream."""
        self._config = config
        self._folder = renders_folder(config)
        self._suffix = "." + config.render.file_format
        self._topic_of = topic_of
        self._post = post
        self._open: dict[str, Destination] = {}
        self._senders: dict[str, RtpSender] = {}
        self._aside = Aside("renders")
        self._completer: _Completer | None = None
        self._wanted = config.encoder.settings
        self._cap: int | None = None
        self.encoders: Final = EncoderPool()
        self.counts: Final = EncoderCounts()

    def begin(
        self,
        command: Speak,
        given: Callable[[Samples], None] | None = None,
        stopped: threading.Event | None = None,
    ) -> tuple[Callable[[Samples], None], str]:
        """Give what takes the command's samples, in any one thread, and where they will be found.

        What takes them raises SinkError; where somebody in this process takes them, it is `given`. `stopped`: set by
        whoever no longer wants the command.
        """
        if given is not None:
            return given, ""
        destination = self._open[command.id] = self._destination(command, stopped or threading.Event())

        def take(samples: Samples) -> None:
            first = not destination.begun
            destination.take(samples)
            if first:
                location, fallback = destination.location, destination.fallback
                self._post(RenderStarted(command.id, time.monotonic(), location, fallback))

        return take, destination.location

    def check(self, command: Speak) -> None:
        """PayloadError `target` for a target that the owner has not allowed, or none to choose."""
        if command.output == "rtp":
            self._target(command)
        elif command.target is not None:
            raise PayloadError("target", 'only output "rtp" has a target', command.id)

    def describe(self, command: Speak) -> str | None:
        """Give the SDP of what goes to an RTP target."""
        if command.output != "rtp":
            return None
        rtp, settings = self._config.rtp, self._settings()
        return sdp(
            Target.parse(self._target(command)),
            name=f"speakd {self._config.device.name}",
            payload_type=rtp.payload_type,
            frame_ms=settings.frame_ms,
            rate=settings.rate,
            ttl=rtp.ttl,
        )

    def set_complexity_cap(self, cap: int | None) -> None:
        """Let no encoder work harder than this from its next packet on; None: as configured."""
        self._cap = cap
        for dial in self._dials().values():
            dial.settings = self._capped(dial.settings)

    def set_quality(self, command: StreamQuality) -> list[str]:
        """Adapt what is being encoded, and with `all` what will be too; gives the ids of the former."""
        wanted = command.model_dump(include={"bitrate", "loss_percent", "frame_ms"}, exclude_none=True)
        if command.all:
            self._wanted = replace(self._wanted, **wanted)
        found = {i: dial for i, dial in self._dials().items() if command.all or i == command.id}
        for dial in found.values():
            dial.settings = replace(dial.settings, **wanted)
        return list(found)

    def _dials(self) -> dict[str, Dial]:
        """Give those of what is being encoded. The thread that encodes may find that it cannot."""
        dials = {command_id: destination.dial for command_id, destination in self._open.items()}
        return {command_id: dial for command_id, dial in dials.items() if dial is not None}

    def lose(self, message: AudioPage) -> None:
        """Take note that a piece of a stream could not be sent."""
        destination = self._open.get(message.id)
        if isinstance(destination, StreamDestination):
            destination.lose(message.page, StreamLostError())

    def end(self, message: RenderEnded) -> RenderEnded | None:
        """Complete what a command has written, or do away with it; gives the message with what went wrong here.

        None where some is still to be sent or written: the message comes again once that is done.
        """
        destination = self._open.get(message.id)
        if destination is None:
            return message
        if isinstance(destination, FileDestination) and not destination.is_complete:
            self._complete(destination, message)
            return None
        if isinstance(destination, FileDestination):
            destination.take_back()
        handed_over = isinstance(destination, RtpDestination) and destination.utterance.ended is not None
        error = message.error or destination.error
        try:
            if not (handed_over or isinstance(destination, FileDestination)):
                destination.finish(keep=error is None)
        except SinkError as failure:
            error = error or failure
        told = replace(message, error=error, location=destination.location, fallback=destination.fallback)
        if isinstance(destination, RtpDestination) and not handed_over and destination.hand_over(told):
            return None
        del self._open[message.id]
        self._count(message.id, destination)
        return told

    def clear_leftovers(self) -> None:
        """Delete what a crash left unfinished. Raises nothing, and waits for no disk that hangs."""

        def clear() -> None:
            for part in self._folder.glob(f".*{_PART}"):
                part.unlink(missing_ok=True)

        with contextlib.suppress(OSError):
            self._aside.do(clear)

    def close(self) -> None:
        """Do away with all that is not complete. Raises nothing; nobody takes samples any more."""
        for sender in self._senders.values():
            sender.stop()
        for sender in self._senders.values():
            sender.join(_STOP_S)
        if self._completer is not None:
            self._completer.stop()
            self._completer.join(_STOP_S)
        while self._open:
            destination = self._open.popitem()[1]
            with contextlib.suppress(SinkError, TimeoutError):
                self._aside.do(partial(destination.finish, keep=False))
        self.encoders.close()

    def _complete(self, file: FileDestination, ended: RenderEnded) -> None:
        if self._completer is None:
            self._completer = _Completer(self._post)
            self._completer.start()
        self._completer.complete(file, ended)

    def _destination(self, command: Speak, stopped: threading.Event) -> Destination:
        dial = Dial(self._settings())
        if command.output == "file":
            path = self._folder / (file_name(command.id) + self._suffix)
            return FileDestination(path, _PART, dial, self.encoders, self._aside, stopped)
        if command.output == "rtp":
            dial.settings = replace(dial.settings, loss_percent=self._config.rtp.loss_percent)
            target, utterance = self._target(command), RtpUtterance(stopped)
            sender = self._sender(target)
            return RtpDestination(target, dial, self.encoders, utterance, lambda: sender.submit(utterance))
        topic = self._topic_of(command.id)

        def send(page: bytes, content_type: str) -> None:
            self._post(AudioPage(command.id, topic, page, content_type))

        return StreamDestination(topic, dial, self.encoders, send)

    def _target(self, command: Speak) -> str:
        allowed = self._config.rtp.targets
        if not allowed:
            raise PayloadError("target", "rtp.targets in the configuration allows none", command.id)
        try:
            target = allowed[0] if command.target is None else str(Target.parse(command.target))
        except ValueError as error:
            raise PayloadError("target", str(error), command.id) from None
        if target not in allowed:
            raise PayloadError("target", f"{target} is none of rtp.targets in the configuration", command.id)
        return target

    def _sender(self, target: str) -> RtpSender:
        sender = self._senders.get(target)
        if sender is None:
            sender = self._senders[target] = RtpSender(Target.parse(target), self._config.rtp, self._post)
            sender.start()
        return sender

    def _settings(self) -> OpusSettings:
        return self._capped(self._wanted)

    def _capped(self, settings: OpusSettings) -> OpusSettings:
        configured = self._wanted.complexity
        return replace(settings, complexity=configured if self._cap is None else min(configured, self._cap))

    def _count(self, command_id: str, destination: Destination) -> None:
        utterance = destination.utterance if isinstance(destination, RtpDestination) else None
        dropped = destination.dropped + (utterance.dropped if utterance else 0)
        self.counts.packets += destination.packets
        self.counts.dropped += dropped
        if dropped > self._config.encoder.drop_warn * destination.packets:
            _LOG.warning("%d of %d packets of command %s were not sent", dropped, destination.packets, command_id)


def file_name(command_id: str) -> str:
    """Make a file's name, without its suffix, of an id: nothing in it leaves the folder or hides."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", command_id)[:_LONGEST_NAME].lstrip(".") or "_"
    if name == command_id:
        return name
    return f"{name}-{hashlib.sha256(command_id.encode()).hexdigest()[:_MARK]}"

"""One command's speech on its way: into a file, into a stream over MQTT, or to an RTP target."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from daemon.inbox import RenderEnded
from daemon.rtp_sender import RtpUtterance
from device.errors import NoEncoderError, SinkError
from device.format import Samples
from device.ogg import packets_on_page
from device.opus import EncoderPool
from device.opus_packets import Dial
from device.opus_sink import OpusSink
from device.rtp import RawRtpSink, RtpSink
from device.wav import WavSink
from engines.aside import Aside
from engines.durable import flush_file, flush_folder

OPUS_TYPE = "audio/ogg; codecs=opus"
WAV_TYPE = "audio/wav"


class Writer(Protocol):
    """What a destination writes to: a sink, or what is enough of one."""

    def open(self) -> None:
        """See `Sink.open`."""

    def write(self, samples: Samples) -> None:
        """See `Sink.write`."""

    def drain(self) -> None:
        """See `Sink.drain`."""

    def close(self) -> None:
        """See `Sink.close`."""


class Destination:
    """Where one command's samples go. Opened with the first of them: what has none leaves nothing behind.

    `take` is called in one thread; all else in the main thread, `finish` once no more samples come. Where there is no
    Opus encoder the sound goes there as raw PCM; where it fails on the way, too, if there is a way from one to the
    other.
    """

    can_change = False
    """Whether raw PCM may follow Opus."""

    def __init__(self, location: str, dial: Dial | None = None) -> None:
        """`dial`: what the encoder does; None where nothing is encoded, or not any more."""
        self.location = location
        self.dial = dial
        self.begun = False
        self.error: Exception | None = None
        self.fallback = ""
        """Why it is raw PCM, which nobody asked for; empty where it is not."""
        self.dropped = 0
        """Packets that were not sent."""
        self._encoded = 0  # packets, by an encoder that has failed since
        self.writer = self.coded()

    def coded(self) -> Writer:
        """Make what writes as was asked for."""
        raise NotImplementedError

    def raw(self) -> Writer:
        """Make what writes raw PCM instead."""
        raise NotImplementedError

    def take(self, samples: Samples) -> None:
        """Take samples. SinkError."""
        if not self.begun:
            self.begin()
        try:
            self.writer.write(samples)
        except SinkError as error:
            self._go_on_raw(error)

    def begin(self) -> None:
        """Open it. SinkError."""
        try:
            self.writer.open()
        except NoEncoderError as error:
            self._open_raw(error)
        self.begun = True

    def _open_raw(self, error: SinkError) -> None:
        self.fallback = error.reason
        self.dial = None
        self.writer = self.raw()
        self.writer.open()

    def _go_on_raw(self, error: SinkError) -> None:
        """Write as raw PCM what the encoder left over when it failed; the error again where that cannot be."""
        coder = self.writer
        if not isinstance(coder, OpusSink | RtpSink) or coder.left is None or (coder.packets and not self.can_change):
            raise error
        self._encoded = coder.packets
        coder.close()
        self.discard()
        self._open_raw(error)
        self.writer.write(coder.left)

    def discard(self) -> None:
        """Do away with what an encoder began that has failed."""

    def finish(self, *, keep: bool) -> None:
        """Complete it; SinkError where that fails. Not to be kept, it may stay incomplete."""
        try:
            if self.begun and keep:
                self._complete()
        finally:
            self.writer.close()

    def _complete(self) -> None:
        try:
            if isinstance(self.writer, OpusSink):
                self.writer.finish()
            else:
                self.writer.drain()
        except SinkError as error:
            self._go_on_raw(error)
            self.writer.drain()

    @property
    def packets(self) -> int:
        """How many packets were encoded."""
        return self._encoded + (self.writer.packets if isinstance(self.writer, OpusSink | RtpSink) else 0)


class FileDestination(Destination):
    """A file that has its name only once it is whole, also after a power cut."""

    def __init__(
        self,
        path: Path,
        part: str,
        dial: Dial,
        encoders: EncoderPool,
        aside: Aside,
        stopped: threading.Event | None = None,
    ) -> None:
        """`part`: the end of its name until then; `aside`: for what hangs where the folder's disk does.

        `stopped`: set by whoever no longer wants it.
        """
        self._aside = aside
        self._stopped = stopped or threading.Event()
        self.is_complete = False
        """Whether all was done for it that can be, for better or worse."""
        self._path = path
        self._suffix = part
        self._encoders = encoders
        self._encodes = path.suffix == ".opus"
        self._file_dial = dial
        super().__init__(path.name, dial if self._encodes else None)

    @property
    def _part(self) -> Path:
        return self._path.with_name(f".{self._path.name}{self._suffix}")

    def coded(self) -> Writer:
        """See `Destination.coded`."""
        return OpusSink(self._part, self._file_dial, encoders=self._encoders) if self._encodes else WavSink(self._part)

    def discard(self) -> None:
        """See `Destination.discard`."""
        with contextlib.suppress(OSError):
            self._part.unlink(missing_ok=True)

    def raw(self) -> Writer:
        """See `Destination.raw`."""
        self._path = self._path.with_suffix(".wav")
        self.location = self._path.name
        return WavSink(self._part)

    def begin(self) -> None:
        """See `Destination.begin`."""
        try:
            self._aside.do(partial(self._path.parent.mkdir, parents=True, exist_ok=True))
        except OSError as error:
            raise SinkError(str(self._path.parent), f"cannot be made: {error.strerror}", "see render.folder") from error
        super().begin()

    def finish(self, *, keep: bool) -> None:
        """See `Destination.finish`. What was stopped on the way is no file."""
        keep = keep and not self._stopped.is_set()
        if not (keep or self.begun):
            return
        if not self.begun:
            self.begin()  # nothing was to be said: a file without a sound says so
        try:
            super().finish(keep=keep)
            if keep:
                flush_file(self._part)
                self._part.replace(self._path)
                flush_folder(self._path.parent)
        except OSError as error:
            raise SinkError(str(self._path), f"cannot be written: {error.strerror}", "see render.folder") from error
        finally:
            self.discard()

    def take_back(self) -> None:
        """Leave no file of what was stopped while it got its name. Raises nothing."""
        if self._stopped.is_set():
            with contextlib.suppress(OSError):
                self._aside.do(partial(self._path.unlink, missing_ok=True))


class StreamDestination(Destination):
    """Ogg pages over MQTT, one a message."""

    def __init__(self, topic: str, dial: Dial, encoders: EncoderPool, send: Callable[[bytes, str], None]) -> None:
        """`send(page, content_type)`."""
        self._send = send
        self._encoders = encoders
        self._stream_dial = dial
        self._headers: list[bytes] = []
        """Pages that wait for the first one with sound: until then it may still become raw PCM."""
        self._sounds = False
        super().__init__(topic, dial)

    def coded(self) -> Writer:
        """See `Destination.coded`."""
        return OpusSink(self.location, self._stream_dial, encoders=self._encoders, file=_Pages(self._send_opus))

    def discard(self) -> None:
        """See `Destination.discard`."""
        self._headers.clear()

    def raw(self) -> Writer:
        """See `Destination.raw`."""
        return WavSink(self.location, file=_Pages(lambda page: self._send(page, WAV_TYPE)))

    def _send_opus(self, page: bytes) -> None:
        self._sounds = self._sounds or packets_on_page(page) > 0
        self._headers.append(page)
        while self._sounds and self._headers:
            self._send(self._headers.pop(0), OPUS_TYPE)

    def lose(self, page: bytes, error: Exception) -> None:
        """Take note that a piece could not be sent."""
        self.error = self.error or error
        self.dropped += packets_on_page(page)


class RtpDestination(Destination):
    """Packets to an RTP target, in real time: it ends later than its rendering."""

    can_change = True  # each packet says what it is, and the SDP names both kinds

    def __init__(
        self, target: str, dial: Dial, encoders: EncoderPool, utterance: RtpUtterance, start: Callable[[], None]
    ) -> None:
        """`start` is called with the first samples."""
        self.utterance = utterance
        self._start = start
        self._encoders = encoders
        self._rtp_dial = dial
        super().__init__(f"rtp://{target}", dial)

    def coded(self) -> Writer:
        """See `Destination.coded`."""
        return RtpSink(self.utterance.put, self._rtp_dial, self._encoders)

    def raw(self) -> Writer:
        """See `Destination.raw`."""
        return RawRtpSink(self.utterance.put)

    def begin(self) -> None:
        """See `Destination.begin`."""
        super().begin()
        self._start()

    def finish(self, *, keep: bool) -> None:
        """See `Destination.finish`."""
        self.utterance.closing = True
        super().finish(keep=keep)

    def hand_over(self, ended: RenderEnded) -> bool:
        """Have the end told once the last packet is sent; False where nothing is to be sent."""
        if self.begun:
            self.utterance.end(ended)
        return self.begun


class _Pages(io.RawIOBase):
    """A file each write to which is one message to send."""

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

"""Speech into an Ogg Opus file."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from device.errors import EncoderError, NoEncoderError, SinkError
from device.file_sink import FileSink
from device.files import open_output, output_errors
from device.format import Samples, is_samples
from device.ogg import OggOpusWriter
from device.opus import EncoderPool, OpusSettings
from device.opus_packets import Dial, OpusPackets


class OpusSink(FileSink):
    """A `Sink` that writes an Ogg Opus file. Each opening starts the file anew.

    A file read while it grows lacks at most half a second, after `drain` at most one packet: the frames that do not
    fill one wait for more or for `close`, which completes the file to the sample.
    """

    def __init__(
        self,
        path: Path | str,
        dial: Dial | OpusSettings | None = None,
        *,
        encoders: EncoderPool | None = None,
        file: io.RawIOBase | BinaryIO | None = None,
    ) -> None:
        """Take note of it. `encoders`: where the encoder is taken from, for as long as the file is open.

        `file`: written to, page by page, and closed in place of one at `path`, which names it.
        """
        super().__init__(path)
        self._given = file
        self._dial = dial if isinstance(dial, Dial) else Dial(dial or OpusSettings())
        self._packets = OpusPackets(encoders or EncoderPool(), self._dial, self._take)
        self._file: BinaryIO | io.RawIOBase | None = None
        self._ogg: OggOpusWriter | None = None
        self._lookahead = 0
        self.failure: OSError | None = None
        """Why `close` could not complete the file, which nobody who closes it at an end wants to hear."""

    @property
    def packets(self) -> int:
        """How many packets were encoded."""
        return self._packets.count

    @property
    def left(self) -> Samples | None:
        """See `OpusPackets.left`."""
        return self._packets.left

    def open(self) -> None:
        """See `Sink.open`. NoEncoderError where there is no encoder; nothing was touched then."""
        if self._ogg is not None:
            return
        try:
            encoder = self._packets.begin()
        except EncoderError as error:
            raise NoEncoderError(str(self._path), str(error)) from error
        try:
            with output_errors(self._path):
                file = self._file = self._given or open_output(self._path)
                rate = self._dial.settings.rate
                self._lookahead = encoder.lookahead
                self._ogg = OggOpusWriter(file, pre_skip=encoder.lookahead, vendor=encoder.version, rate=rate)
        except SinkError:
            self.close()
            raise

    def check(self) -> None:
        """See `Sink.check`."""
        self._opened()

    def write(self, samples: Samples) -> None:
        """See `Sink.write`. Whole packets are encoded from the given memory itself."""
        self._opened()
        if not is_samples(samples):
            raise SinkError(self.description, "takes contiguous mono float32 only")
        with output_errors(self._path):
            self._packets.write(samples)

    def drain(self) -> None:
        """See `Sink.drain`."""
        ogg = self._opened()
        with output_errors(self._path):
            ogg.flush()

    def drop(self) -> None:
        """See `Sink.drop`. Only the frames that do not fill a packet yet can still be forgotten."""
        self._opened()
        self._packets.forget()

    def finish(self) -> None:
        """Complete the file, to the sample, as `close` does, but with what goes wrong: SinkError."""
        ogg = self._opened()
        with output_errors(self._path):
            ogg.finish(self._packets.finish())
        self._ogg = None

    def close(self) -> None:
        """See `Sink.close`. Completes the file; where the encoder fails, with what it made before."""
        ogg, file = self._ogg, self._file
        try:
            if ogg is not None:
                ogg.finish(self._last_frame())
        except OSError as error:
            self.failure = error
        self._ogg = self._file = None
        self._packets.end()
        try:
            if file is not None:
                file.close()
        except OSError as error:
            self.failure = error

    def _last_frame(self) -> int:
        """Make the last packets; gives the frames that a decoder shall give out."""
        if self._packets.left is None:
            with suppress(EncoderError):
                return self._packets.finish()
        return max(0, self._packets.encoded - self._lookahead)

    def _opened(self) -> OggOpusWriter:
        if self._ogg is None:
            raise SinkError(self.description, "is not open")
        return self._ogg

    def _take(self, packet: memoryview, frames: int) -> None:
        if self._ogg is not None:
            self._ogg.packet(packet, frames)

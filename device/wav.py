"""Speech into a WAV file."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, cast

import numpy as np
from numpy.typing import NDArray

from device.errors import SinkError
from device.file_sink import FileSink
from device.files import open_output, output_errors
from device.format import CHANNELS, RATE, Samples

SAMPLE_BYTES: Final = 2
FULL_SCALE: Final = 32_768
"""What 1.0 is in 16 bits; +1.0 itself saturates at 32,767. Every reader divides by this again, so levels stay exact."""

SCRATCH: Final = 4_800
"""Frames converted at a time, 100 ms: small enough to stay in the cache, and allocated once."""

MOST_FRAMES: Final = (2**32 - 1 - 36) // SAMPLE_BYTES
"""RIFF counts bytes in 32 bits, 36 of them its own header: 12.4 hours."""


class WavSink(FileSink):
    """A `Sink` that writes 16-bit mono PCM. Each opening starts the file anew, unless it failed to be written.

    After each drain the file is complete. On a pipe the header cannot be corrected later, so it announces the
    longest possible file and readers go on until the pipe ends.
    """

    def __init__(self, path: Path | str, *, file: io.RawIOBase | BinaryIO | None = None) -> None:
        """Take note of it. `file`: written to, and closed, in place of one at `path`, which names it."""
        super().__init__(path)
        self._given = file
        self._file: BinaryIO | None = None
        self._wav: wave.Wave_write | None = None
        self._seekable = True
        self._frames = 0
        self._failure: SinkError | None = None
        """Why a file that holds something was not written to its end."""
        self._floats: Samples = np.empty(SCRATCH, np.float32)
        self._integers: NDArray[np.int16] = np.empty(SCRATCH, "<i2")

    def open(self) -> None:
        """See `Sink.open`."""
        if self._wav is not None:
            return
        if self._failure is not None:
            raise SinkError(self.description, self._failure.reason, "make room, move it away, and start speakd again")
        file = self._file = cast("BinaryIO", self._given) or open_output(self._path)
        self._frames = 0
        self._wav = wave.open(file, "wb")  # noqa: SIM115  close() closes it
        self._wav.setnchannels(CHANNELS)
        self._wav.setsampwidth(SAMPLE_BYTES)
        self._wav.setframerate(RATE)
        self._seekable = self._file.seekable()
        if not self._seekable:
            self._wav.setnframes(MOST_FRAMES)
        try:
            self.drain()
        except SinkError:
            self.close()
            raise

    def check(self) -> None:
        """See `Sink.check`."""
        self._opened()

    def write(self, samples: Samples) -> None:
        """See `Sink.write`."""
        wav, _ = self._opened()
        with self._kept():
            if self._frames + len(samples) > MOST_FRAMES:
                raise SinkError(self.description, "a WAV file holds no more than 12 hours", "start another file")
            for start in range(0, len(samples), SCRATCH):
                wav.writeframesraw(self._convert(samples[start : start + SCRATCH]))
        self._frames += len(samples)

    def drain(self) -> None:
        """See `Sink.drain`. Brings the header up to date."""
        wav, file = self._opened()
        with self._kept():
            if self._seekable:
                wav.writeframes(b"")
            else:
                wav.writeframesraw(b"")
            file.flush()

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Raise what goes wrong as SinkError; a file that holds something is not begun anew after that."""
        try:
            with output_errors(self._path):
                yield
        except SinkError as error:
            if self._seekable and self._frames:
                self._failure = error
            raise

    def drop(self) -> None:
        """See `Sink.drop`. A file has played what it has taken, so there is nothing to forget."""
        self._opened()

    def close(self) -> None:
        """See `Sink.close`."""
        wav, self._wav = self._wav, None
        file, self._file = self._file, None
        if wav is None or file is None:
            return
        # On a pipe wave fails where it would correct the header; on a full disk drain has said so.
        with suppress(OSError):
            wav.close()
        with suppress(OSError):
            file.close()

    def _opened(self) -> tuple[wave.Wave_write, BinaryIO]:
        if self._wav is None or self._file is None:
            raise SinkError(self.description, "is not open")
        return self._wav, self._file

    def _convert(self, samples: Samples) -> memoryview:
        """Give the 16-bit form of at most SCRATCH frames, valid until the next call."""
        floats = self._floats[: len(samples)]
        integers = self._integers[: len(samples)]
        np.clip(samples, -1, 1, out=floats)
        np.nan_to_num(floats, copy=False)  # casting NaN is undefined
        np.rint(np.multiply(floats, FULL_SCALE, out=floats), out=floats)
        np.minimum(floats, FULL_SCALE - 1, out=floats)
        integers[:] = floats
        return integers.data

"""Opus: the encoder, and the file it fills. The only module that knows opuslib_next."""

from __future__ import annotations

import ctypes
import io
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from device.errors import DeviceError, EncoderError, SinkError
from device.files import open_output, output_errors
from device.format import CHANNELS, RATE, Samples, is_samples
from device.ogg import OggOpusWriter

FRAME_MS: Final = (10, 20, 40, 60)
"""Opus also has 2.5 and 5 ms, in which its speech coder cannot work; nobody wants those for speech."""

BITRATE: Final = range(6_000, 510_001)
"""Bits per second, the span RFC 6716 names. libopus silently bends other values."""

COMPLEXITY: Final = range(11)

LARGEST_PACKET: Final = 4_000
"""Bytes. What libopus's manual recommends; the largest packet of 60 ms takes 3,832."""


class OpusEncoder:
    """A libopus encoder for mono speech at 48 kHz that reads samples where they lie. One thread at a time.

    `frame` is the number of frames per packet; `lookahead` the frames by which the decoder lags (RFC 7845's
    pre-skip). DTX stays off, so that every packet stands for its time.
    """

    def __init__(self, *, bitrate: int = 24_000, complexity: int = 5, frame_ms: int = 20) -> None:
        """Allocate the encoder. `bitrate` in bit/s; EncoderError where a setting or the library is wrong."""
        if frame_ms not in FRAME_MS:
            raise EncoderError(f"packets of {frame_ms} ms are not possible: choose one of {FRAME_MS}")
        if bitrate not in BITRATE:
            raise EncoderError(f"{bitrate} bit/s is out of range: {BITRATE.start} to {BITRATE.stop - 1}")
        if complexity not in COMPLEXITY:
            raise EncoderError(f"complexity {complexity} is out of range: 0 to {COMPLEXITY.stop - 1}")
        self.frame: Final = RATE * frame_ms // 1000
        self._library = _Library()
        self._state: int | None = self._library.create()
        constants = self._library.constants
        self._library.control(self._state, constants.SET_BITRATE_REQUEST, ctypes.c_int32(bitrate))
        self._library.control(self._state, constants.SET_COMPLEXITY_REQUEST, ctypes.c_int32(complexity))
        lookahead = ctypes.c_int32()
        self._library.control(self._state, constants.GET_LOOKAHEAD_REQUEST, ctypes.byref(lookahead))
        self.lookahead: Final = lookahead.value
        self.version: Final = self._library.version
        self._packet = ctypes.create_string_buffer(LARGEST_PACKET)
        self._packet_view = memoryview(self._packet).cast("B")

    def encode(self, samples: Samples) -> memoryview:
        """Encode exactly `frame` frames; give the packet, whose memory the next call overwrites."""
        if self._state is None:
            raise EncoderError("the encoder is closed")
        if not is_samples(samples):
            raise EncoderError("takes contiguous mono float32 only")
        if len(samples) != self.frame:
            raise EncoderError(f"takes {self.frame} frames at a time, not {len(samples)}")
        size = self._library.encode_float(
            self._state, samples.ctypes.data, self.frame, ctypes.addressof(self._packet), LARGEST_PACKET
        )
        if size < 0:
            raise EncoderError(self._library.error_text(size))
        return self._packet_view[:size]

    def close(self) -> None:
        """Free the encoder. Idempotent."""
        state, self._state = self._state, None
        if state is not None:
            self._library.destroy(state)

    def __del__(self) -> None:
        """Free what nobody closed: the collector does not know C memory."""
        if getattr(self, "_state", None) is not None:
            self.close()


class _Library:
    """libopus's functions, taking addresses. A state is the address of libopus's encoder."""

    def __init__(self) -> None:
        try:
            import opuslib_next.api  # noqa: PLC0415  a machine that streams nothing needs no libopus
            import opuslib_next.constants  # noqa: PLC0415
        except Exception as error:  # raised as plain Exception where it does not find libopus
            raise EncoderError(f"no encoder: {error} (install opuslib-next and libopus0)") from error
        self.constants: Final[Any] = opuslib_next.constants
        # Indexing gives function objects of our own. opuslib's declare the packet as `bytes` and are shared.
        functions: Any = opuslib_next.api.libopus
        address, count, length = ctypes.c_void_p, ctypes.c_int, ctypes.c_int32
        self._create = functions["opus_encoder_create"]
        self._create.argtypes = (length, count, count, ctypes.POINTER(ctypes.c_int))
        self._create.restype = address
        self._control = functions["opus_encoder_ctl"]
        self._control.argtypes = (address, count)
        self._control.restype = count
        self.encode_float = functions["opus_encode_float"]
        self.encode_float.argtypes = (address, address, count, address, length)
        self.encode_float.restype = length
        self.destroy = functions["opus_encoder_destroy"]
        self.destroy.argtypes = (address,)
        self.destroy.restype = None
        self._strerror = functions["opus_strerror"]
        self._strerror.argtypes = (count,)
        self._strerror.restype = ctypes.c_char_p
        version = functions["opus_get_version_string"]
        version.restype = ctypes.c_char_p
        self.version: Final[str] = version().decode()

    def create(self) -> int:
        result = ctypes.c_int()
        # VOIP is libopus's word for speech. Measured on 8 s of the default voice at 24 kbit/s and complexity 5: mean
        # log-spectral distance to the original 2.51 dB, against 2.98 dB with AUDIO, which took it for music (2.54 dB
        # when told that it is a voice).
        state: int | None = self._create(RATE, CHANNELS, self.constants.APPLICATION_VOIP, ctypes.byref(result))
        if state is None:
            raise EncoderError(self.error_text(result.value))
        return state

    def control(self, state: int, request: int, argument: object) -> None:
        result: int = self._control(state, request, argument)
        if result < 0:
            raise EncoderError(f"request {request}: {self.error_text(result)}")

    def error_text(self, code: int) -> str:
        text: bytes = self._strerror(code)
        return text.decode()


class OpusSink:
    """A `Sink` that writes an Ogg Opus file. Each opening starts the file anew.

    A file read while it grows lacks at most half a second, after `drain` at most one packet: the frames that do not
    fill one wait for more or for `close`, which completes the file to the sample.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        bitrate: int = 24_000,
        complexity: int = 5,
        frame_ms: int = 20,
        file: io.RawIOBase | None = None,
    ) -> None:
        """Take note of it. `file`: written to, page by page, and closed in place of one at `path`, which names it."""
        self._given = file
        self._path = Path(path)
        self._settings = {"bitrate": bitrate, "complexity": complexity, "frame_ms": frame_ms}
        self._encoder: OpusEncoder | None = None
        self._file: BinaryIO | io.RawIOBase | None = None
        self._ogg: OggOpusWriter | None = None
        self._carry: Samples = np.zeros(0, np.float32)
        self._carried = 0
        self._encoded = 0  # frames in all packets so far

    @property
    def description(self) -> str:
        """The file's path."""
        return str(self._path)

    @property
    def pending(self) -> int:
        """See `Sink.pending`: a file has played what it has taken."""
        return 0

    @property
    def period(self) -> int:
        """See `Sink.period`."""
        return 0

    @property
    def underruns(self) -> int:
        """See `Sink.underruns`."""
        return 0

    def open(self) -> None:
        """See `Sink.open`."""
        if self._ogg is not None:
            return
        try:
            with output_errors(self._path):
                encoder = self._encoder = OpusEncoder(**self._settings)
                file = self._file = self._given or open_output(self._path)
                self._ogg = OggOpusWriter(file, pre_skip=encoder.lookahead, vendor=encoder.version)
        except SinkError:
            self.close()
            raise
        self._carry = np.zeros(encoder.frame, np.float32)
        self._carried = 0
        self._encoded = 0

    def check(self) -> None:
        """See `Sink.check`."""
        self._opened()

    def write(self, samples: Samples) -> None:
        """See `Sink.write`. Whole packets are encoded from the given memory itself."""
        encoder, ogg = self._opened()
        if not is_samples(samples):
            raise SinkError(self.description, "takes contiguous mono float32 only")
        rest = samples
        with output_errors(self._path):
            if self._carried:
                rest = self._fill_carry(rest)
                if self._carried == encoder.frame:
                    self._encode(encoder, ogg, self._carry)
                    self._carried = 0
            while len(rest) >= encoder.frame:
                self._encode(encoder, ogg, rest[: encoder.frame])
                rest = rest[encoder.frame :]
            self._fill_carry(rest)

    def drain(self) -> None:
        """See `Sink.drain`."""
        _, ogg = self._opened()
        with output_errors(self._path):
            ogg.flush()

    def drop(self) -> None:
        """See `Sink.drop`. Only the frames that do not fill a packet yet can still be forgotten."""
        self._opened()
        self._carried = 0

    def close(self) -> None:
        """See `Sink.close`. Completes the file."""
        encoder, self._encoder = self._encoder, None
        ogg, self._ogg = self._ogg, None
        file, self._file = self._file, None
        if encoder is not None:
            if ogg is not None:
                with suppress(OSError, DeviceError):
                    self._complete(encoder, ogg)
            encoder.close()
        if file is not None:
            with suppress(OSError):
                file.close()

    def _opened(self) -> tuple[OpusEncoder, OggOpusWriter]:
        if self._encoder is None or self._ogg is None:
            raise SinkError(self.description, "is not open")
        return self._encoder, self._ogg

    def _encode(self, encoder: OpusEncoder, ogg: OggOpusWriter, samples: Samples) -> None:
        ogg.packet(encoder.encode(samples), encoder.frame)
        self._encoded += encoder.frame

    def _fill_carry(self, samples: Samples) -> Samples:
        """Move what fits into the carry buffer; give what did not."""
        end = min(self._carried + len(samples), len(self._carry))
        taken = end - self._carried
        self._carry[self._carried : end] = samples[:taken]
        self._carried = end
        return samples[taken:]

    def _complete(self, encoder: OpusEncoder, ogg: OggOpusWriter) -> None:
        # The last frame leaves a decoder one lookahead later, so there is always a packet to add, and the mark of
        # the last page stands on one with sound.
        length = self._encoded + self._carried
        self._carry[self._carried :] = 0
        while self._encoded < length + encoder.lookahead:
            self._encode(encoder, ogg, self._carry)
            self._carry[:] = 0
        ogg.finish(length)

"""Opus: the encoder, and those that are there to be used again. The only module that knows opuslib_next."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from typing import Any, Final

from device.errors import EncoderError
from device.format import CHANNELS, RATE, Samples, is_samples

FRAME_MS: Final = (10, 20, 40, 60)
"""Opus also has 2.5 and 5 ms, in which its speech coder cannot work; nobody wants those for speech."""

BITRATE: Final = range(6_000, 510_001)
"""Bits per second, the span RFC 6716 names. libopus silently bends other values."""

COMPLEXITY: Final = range(11)

LARGEST_PACKET: Final = 4_000
"""Bytes. What libopus's manual recommends; the largest packet of 60 ms takes 3,832."""


RATES: Final = (24_000, 48_000)
"""Hertz that a listener may have. For 24,000 the encoder leaves out what is above 12 kHz; it takes 48 kHz for both."""

_RESET_STATE: Final = 4028
_BANDWIDTHS: Final = {24_000: 1104, 48_000: 1105}
"""libopus's OPUS_BANDWIDTH_SUPERWIDEBAND and _FULLBAND."""


@dataclass(frozen=True, slots=True)
class OpusSettings:
    """What an encoder shall do. EncoderError where a value is not possible."""

    bitrate: int = 24_000
    """Bits per second."""
    complexity: int = 5
    frame_ms: int = 20
    rate: int = RATE
    loss_percent: int = 0
    """Packets that are expected to be lost: above 0 each may carry a coarse copy of the one before, in its own bits.

    libopus decides. Measured with 1.3.1 on the default voice at 48 kHz: up to 5 % only from 34 kbit/s on; above that
    always, for which it narrows the band, at 24 kbit/s to 8 kHz. With 10 % of packets lost that was nearer to the
    original (mean log-spectral distance 4.90 dB against 5.10), with none lost farther (4.66 against 4.27).
    """
    dtx: bool = False
    """Whether silence may take no packets' worth of bits. Off, each packet stands for its time."""

    def __post_init__(self) -> None:
        """Check it."""
        if self.frame_ms not in FRAME_MS:
            raise EncoderError(f"packets of {self.frame_ms} ms are not possible: choose one of {FRAME_MS}")
        if self.bitrate not in BITRATE:
            raise EncoderError(f"{self.bitrate} bit/s is out of range: {BITRATE.start} to {BITRATE.stop - 1}")
        if self.complexity not in COMPLEXITY:
            raise EncoderError(f"complexity {self.complexity} is out of range: 0 to {COMPLEXITY.stop - 1}")
        if self.rate not in RATES:
            raise EncoderError(f"a rate of {self.rate} Hz is not possible: choose one of {RATES}")
        if self.loss_percent not in range(101):
            raise EncoderError(f"a loss of {self.loss_percent} % is not possible")

    @property
    def frame(self) -> int:
        """Frames per packet, at 48 kHz."""
        return RATE * self.frame_ms // 1000


class OpusEncoder:
    """A libopus encoder for mono speech at 48 kHz that reads samples where they lie. One thread at a time.

    `frame` is the number of frames per packet; `lookahead` the frames by which the decoder lags (RFC 7845's pre-skip).
    """

    def __init__(self, settings: OpusSettings | None = None) -> None:
        """Allocate the encoder. EncoderError where the library is missing or refuses."""
        self._library = _Library()
        self._state: int | None = self._library.create()
        lookahead = ctypes.c_int32()
        self._control("GET_LOOKAHEAD_REQUEST", ctypes.byref(lookahead))
        self.lookahead: Final = lookahead.value
        self.version: Final = self._library.version
        self._packet = ctypes.create_string_buffer(LARGEST_PACKET)
        self._packet_view = memoryview(self._packet).cast("B")
        self.settings = OpusSettings()
        self.tune(settings or self.settings)

    @property
    def frame(self) -> int:
        """Frames that `encode` takes."""
        return self.settings.frame

    def tune(self, settings: OpusSettings) -> None:
        """Do as `settings` say, from the next packet on."""
        for request, value in (
            ("SET_BITRATE_REQUEST", settings.bitrate),
            ("SET_COMPLEXITY_REQUEST", settings.complexity),
            ("SET_MAX_BANDWIDTH_REQUEST", _BANDWIDTHS[settings.rate]),
            ("SET_INBAND_FEC_REQUEST", int(settings.loss_percent > 0)),
            ("SET_PACKET_LOSS_PERC_REQUEST", settings.loss_percent),
            ("SET_DTX_REQUEST", int(settings.dtx)),
        ):
            self._control(request, ctypes.c_int32(value))
        self.settings = settings

    def reset(self) -> None:
        """Forget what was encoded: the next packet begins another stream, to the bit as a new encoder would."""
        if self._state is not None:
            self._library.control(self._state, _RESET_STATE)

    def _control(self, request: str, argument: object) -> None:
        if self._state is None:
            raise EncoderError("the encoder is closed")
        self._library.control(self._state, getattr(self._library.constants, request), argument)

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

    def control(self, state: int, request: int, *argument: object) -> None:
        result: int = self._control(state, request, *argument)
        if result < 0:
            raise EncoderError(f"request {request}: {self.error_text(result)}")

    def error_text(self, code: int) -> str:
        text: bytes = self._strerror(code)
        return text.decode()


class EncoderPool:
    """Encoders that are used again, one stream after another. Thread-safe.

    There are as many as were ever needed at once: one, where one thing is encoded at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[OpusEncoder] = []
        self._closed = False
        self.made = 0
        """Encoders that were allocated since the start."""

    def take(self, settings: OpusSettings) -> OpusEncoder:
        """Give an encoder as new; EncoderError where there can be none."""
        with self._lock:
            encoder = self._idle.pop() if self._idle else None
        if encoder is None:
            encoder = OpusEncoder(settings)
            with self._lock:
                self.made += 1
        else:
            encoder.tune(settings)
        return encoder

    def give_back(self, encoder: OpusEncoder) -> None:
        """Take an encoder back from whoever took it, who has no use for its last packet any more."""
        encoder.reset()
        with self._lock:
            if not self._closed:
                self._idle.append(encoder)
                return
        encoder.close()

    def close(self) -> None:
        """Free those that nobody uses, and each other one once it comes back. Idempotent."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for encoder in idle:
            encoder.close()

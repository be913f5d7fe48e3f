"""Samples of any number in, whole Opus packets out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from device.errors import EncoderError
from device.format import RATE, Samples
from device.opus import FRAME_MS, EncoderPool, OpusEncoder, OpusSettings

_LONGEST: Final = RATE * FRAME_MS[-1] // 1000


class Dial:
    """What an encoder shall do from its next packet on. Set by one thread, read by the one that encodes."""

    def __init__(self, settings: OpusSettings) -> None:
        self.settings = settings


class OpusPackets:
    """One stream of packets: owns an encoder from `begin` to `end`. One thread at a time.

    Whole packets are encoded from the given memory itself; what does not fill one waits for more.
    """

    def __init__(self, encoders: EncoderPool, dial: Dial, emit: Callable[[memoryview, int], None]) -> None:
        """`emit(packet, frames)` takes each packet, whose memory the next one overwrites."""
        self._encoders = encoders
        self._dial = dial
        self._emit = emit
        self._encoder: OpusEncoder | None = None
        self._carry: Samples = np.zeros(_LONGEST, np.float32)
        self._carried = 0
        self._encoded = 0
        self.left: Samples | None = None
        """A copy of what no packet holds, once the encoder has failed: somebody else may go on from there."""
        self.count = 0
        """Packets so far."""

    def begin(self) -> OpusEncoder:
        """Take an encoder; EncoderError where there can be none."""
        self._encoder = self._encoders.take(self._dial.settings)
        self._carried = self._encoded = self.count = 0
        self.left = None
        return self._encoder

    @property
    def encoded(self) -> int:
        """Frames that are in packets."""
        return self._encoded

    @property
    def taken(self) -> int:
        """Frames that were taken in all."""
        return self._encoded + self._carried

    def write(self, samples: Samples) -> None:
        """Take samples. EncoderError; `left` has them then."""
        encoder, start = self._began(), self.taken
        try:
            self._write(encoder, samples)
        except EncoderError:
            self._keep(start, samples)
            raise

    def _write(self, encoder: OpusEncoder, samples: Samples) -> None:
        rest = self._fill(encoder, samples) if self._carried else samples
        while len(rest) and not self._carried:
            self._follow(encoder)
            if len(rest) < encoder.frame:
                rest = self._fill(encoder, rest)
                break
            self._encode(encoder, rest[: encoder.frame])
            rest = rest[encoder.frame :]

    def _keep(self, start: int, samples: Samples) -> None:
        """Copy what no packet holds: of the frames before `start` and of `samples`, which begin there."""
        carried = max(0, start - self._encoded)
        self.left = np.concatenate([self._carry[:carried], samples[max(0, self._encoded - start) :]])

    def forget(self) -> None:
        """Forget what does not fill a packet yet."""
        self._carried = 0

    def finish(self) -> int:
        """Fill up the last packets with silence, until a decoder has given out all; gives the frames taken in all.

        EncoderError; `left` has the rest then.
        """
        encoder = self._began()
        length = self.taken
        # The last frame leaves a decoder one lookahead later, so there is always a packet to add, and the mark of
        # a file's last page stands on one with sound.
        try:
            while self._encoded < length + encoder.lookahead:
                self._carry[self._carried :] = 0
                self._encode(encoder, self._carry[: encoder.frame])
                self._carried = 0
        except EncoderError:
            self._keep(length, self._carry[:0])
            raise
        return length

    def end(self) -> None:
        """Give the encoder back, or free it where it has failed. Idempotent."""
        encoder, self._encoder = self._encoder, None
        if encoder is None:
            return
        if self.left is not None:
            encoder.close()
        else:
            self._encoders.give_back(encoder)

    def _began(self) -> OpusEncoder:
        if self._encoder is None:
            raise EncoderError("the stream has not begun, or is over")
        return self._encoder

    def _follow(self, encoder: OpusEncoder) -> None:
        """Do as the dial says now; between packets, as their length may change."""
        if self._dial.settings != encoder.settings:
            encoder.tune(self._dial.settings)

    def _fill(self, encoder: OpusEncoder, samples: Samples) -> Samples:
        """Fill the packet that has begun, and encode it where it is full; gives what did not fit."""
        end = min(self._carried + len(samples), encoder.frame)
        taken = end - self._carried
        self._carry[self._carried : end] = samples[:taken]
        self._carried = end
        if end == encoder.frame:
            self._encode(encoder, self._carry[:end])
            self._carried = 0
        return samples[taken:]

    def _encode(self, encoder: OpusEncoder, samples: Samples) -> None:
        self._emit(encoder.encode(samples), encoder.frame)
        self._encoded += encoder.frame
        self.count += 1

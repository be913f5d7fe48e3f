"""A sound that comes from outside as the bytes of a WAV file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.errors import ClipError
from device.format import RATE, Samples
from device.resampler import to_house_rate

LONGEST_S: Final = 120.0
"""23 MB of samples. A jingle takes seconds; what lasts longer belongs to a player of its own."""

MOST_CHANNELS: Final = 8
SLOWEST: Final = 4_000
FASTEST: Final = 192_000
"""Hertz, beyond which there is no sound card."""

_PCM: Final = 1
_FLOAT: Final = 3
_EXTENSIBLE: Final = 0xFFFE
"""WAVEFORMATEXTENSIBLE: the format proper stands in the first two bytes of its GUID."""

_HEAD: Final = struct.Struct("<4sI4s")
_CHUNK: Final = struct.Struct("<4sI")
_FORMAT: Final = struct.Struct("<HHIIHH")
_SUBFORMAT_AT: Final = 24


@dataclass(frozen=True, slots=True)
class _Format:
    kind: int
    channels: int
    rate: int
    bits: int

    @property
    def frame_bytes(self) -> int:
        """Bytes of one sample of each channel."""
        return self.channels * self.bits // 8


def read_wav(data: bytes) -> Samples:
    """Give the sound of a WAV file as `Samples`: PCM of 8, 16, 24 or 32 bits or 32 bit float, of any usual rate.

    Several channels become their mean. ClipError where it is something else, broken, or longer than `LONGEST_S`.
    """
    form, body = _parse(data)
    frames = len(body) // form.frame_bytes
    if frames > LONGEST_S * form.rate:
        raise ClipError(f"lasts {frames / form.rate:.0f} s, {LONGEST_S:.0f} are allowed")
    values = _to_float(body[: frames * form.frame_bytes], form)
    if form.channels > 1:
        values = values.reshape(-1, form.channels).mean(axis=1, dtype=np.float32)
    if form.rate != RATE and values.size:
        values = to_house_rate(values, form.rate)
    clipped: Samples = np.clip(np.nan_to_num(values), -1, 1).astype(np.float32, copy=False)
    return clipped


def _parse(data: bytes) -> tuple[_Format, memoryview]:
    """Find the format and the samples. A length of the data beyond its end is that of whoever wrote to a pipe."""
    if len(data) < _HEAD.size or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise ClipError("is no WAV file")
    form: _Format | None = None
    at = _HEAD.size
    while at + _CHUNK.size <= len(data):
        name, size = _CHUNK.unpack_from(data, at)
        at += _CHUNK.size
        if name == b"fmt ":
            form = _read_format(data[at : at + size])
        elif name == b"data":
            if form is None:
                raise ClipError("has its samples before their format")
            streamed = at + size > len(data) or (size == 0 and at < len(data))
            return form, memoryview(data)[at:] if streamed else memoryview(data)[at : at + size]
        at += size + size % 2
    raise ClipError("is a WAV file without samples")


def _read_format(chunk: bytes) -> _Format:
    if len(chunk) < _FORMAT.size:
        raise ClipError("has a broken format")
    kind, channels, rate, _, _, bits = _FORMAT.unpack_from(chunk)
    if kind == _EXTENSIBLE and len(chunk) >= _SUBFORMAT_AT + 2:
        kind = int.from_bytes(chunk[_SUBFORMAT_AT : _SUBFORMAT_AT + 2], "little")
    if (kind, bits) not in {(_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32)}:
        raise ClipError(f"has format {kind} of {bits} bits; PCM of 8, 16, 24 or 32 bits or 32 bit float is needed")
    if not 1 <= channels <= MOST_CHANNELS:
        raise ClipError(f"has {channels} channels, 1 to {MOST_CHANNELS} are allowed")
    if not SLOWEST <= rate <= FASTEST:
        raise ClipError(f"has a rate of {rate} Hz, {SLOWEST} to {FASTEST} are allowed")
    return _Format(kind, channels, rate, bits)


def _to_float(body: memoryview, form: _Format) -> Samples:
    values: Samples
    match form.kind, form.bits:
        case 3, 32:
            return np.frombuffer(body, "<f4").astype(np.float32)
        case 1, 8:
            values = np.frombuffer(body, np.uint8).astype(np.float32) - 128
        case 1, 24:
            # Into the upper three bytes of 32 bits, which keeps the sign.
            wide = np.zeros((len(body) // 3, 4), np.uint8)
            wide[:, 1:] = np.frombuffer(body, np.uint8).reshape(-1, 3)
            values = (wide.view("<i4")[:, 0] >> 8).astype(np.float32)
        case _:
            values = np.frombuffer(body, f"<i{form.bits // 8}").astype(np.float32)
    values /= 2 ** (form.bits - 1)
    return values

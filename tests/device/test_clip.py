from __future__ import annotations

import contextlib
import io
import struct
import wave

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from device.clip import read_wav
from device.errors import ClipError
from device.format import RATE, is_samples

TONE_HZ = 440
SECONDS = 0.5


def tone(rate: int) -> NDArray[np.float64]:
    return 0.5 * np.sin(2 * np.pi * TONE_HZ * np.arange(int(SECONDS * rate)) / rate)


def wav(values: NDArray[np.float64], rate: int, *, bits: int = 16, channels: int = 1) -> bytes:
    scaled = np.repeat(np.round(values * (2 ** (bits - 1) - 1)).astype(np.int64), channels)
    if bits == 8:
        data = (scaled + 128).astype(np.uint8).tobytes()
    else:
        data = scaled.astype("<i8").view(np.uint8).reshape(-1, 8)[:, : bits // 8].tobytes()
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(bits // 8)
        writer.setframerate(rate)
        writer.writeframes(data)
    return file.getvalue()


def chunked(*, kind: int, bits: int, body: bytes, size: int | None = None, extension: bytes = b"") -> bytes:
    form = struct.pack("<HHIIHH", kind, 1, RATE, RATE * bits // 8, bits // 8, bits) + extension
    data = struct.pack("<4sI", b"data", len(body) if size is None else size) + body
    rest = b"WAVE" + struct.pack("<4sI", b"fmt ", len(form)) + form + b"LIST" + struct.pack("<I", 3) + b"abc\0" + data
    return b"RIFF" + struct.pack("<I", len(rest)) + rest


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
@pytest.mark.parametrize("channels", [1, 2])
def test_every_width_and_number_of_channels_sounds_the_same(bits: int, channels: int) -> None:
    samples = read_wav(wav(tone(RATE), RATE, bits=bits, channels=channels))
    assert is_samples(samples)
    np.testing.assert_allclose(samples, tone(RATE), atol=2.0 ** (2 - bits) if bits < 24 else 1e-6)


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 96_000])
def test_every_rate_becomes_ours(rate: int) -> None:
    samples = read_wav(wav(tone(rate), rate))
    assert abs(samples.size - SECONDS * RATE) <= 2
    edge = RATE // 50  # the tone begins and ends suddenly, where resamplers ring
    inside = slice(edge, samples.size - edge)
    assert np.abs(samples - tone(RATE)[: samples.size] if samples.size <= RATE * SECONDS else 0)[inside].max() < 2e-3


def test_float_and_extensible_headers() -> None:
    values = tone(RATE).astype("<f4")
    np.testing.assert_array_equal(read_wav(chunked(kind=3, bits=32, body=values.tobytes())), values)
    guid = struct.pack("<HHIH", 22, 32, 4, 3) + b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    extensible = chunked(kind=0xFFFE, bits=32, body=values.tobytes(), extension=guid)
    np.testing.assert_array_equal(read_wav(extensible), values)


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 10**6])
def test_a_file_that_was_written_to_a_pipe_is_read_to_its_end(size: int) -> None:
    body = np.full(100, 2**14, "<i2").tobytes()
    np.testing.assert_array_equal(read_wav(chunked(kind=1, bits=16, body=body, size=size)), np.full(100, 0.5))


def test_what_is_not_a_number_is_silent_and_what_is_too_loud_is_clipped() -> None:
    body = np.array([np.nan, np.inf, -np.inf, 3], "<f4").tobytes()
    np.testing.assert_array_equal(read_wav(chunked(kind=3, bits=32, body=body)), [0, 1, -1, 1])


def test_a_sound_without_samples_is_empty() -> None:
    assert read_wav(wav(np.zeros(0), 16_000)).size == 0


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "no WAV"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "no WAV"),
        (wav(tone(RATE), RATE)[:30], "without samples|broken format"),
        (b"RIFF\0\0\0\0WAVEdata\x04\0\0\0abcd", "before their format"),
        (chunked(kind=85, bits=16, body=b""), "format 85"),
        (chunked(kind=1, bits=12, body=b""), "of 12 bits"),
        (wav(np.zeros(10), 2_000), "rate of 2000"),
        (wav(np.zeros(130 * 8_000), 8_000, bits=8), "lasts 130 s"),
    ],
)
def test_what_cannot_be_played_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(ClipError, match=complaint):
        read_wav(data)


@given(st.binary(max_size=200), st.integers(0, 60))
@settings(deadline=None)  # soxr is loaded by the first that needs it
def test_whatever_comes_it_is_samples_or_a_refusal(noise: bytes, cut: int) -> None:
    whole = wav(tone(RATE)[:10], RATE)
    for data in (noise, whole[:cut] + noise, whole[:cut] + noise + whole[cut + len(noise) :]):
        with contextlib.suppress(ClipError):
            assert is_samples(read_wav(data))

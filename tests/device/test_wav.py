from __future__ import annotations

import contextlib
import os
import resource
import struct
import threading
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import device.wav
from device.errors import SinkError
from device.wav import SCRATCH, WavSink


def read(path: Path) -> NDArray[np.int16]:
    with wave.open(str(path), "rb") as reader:
        return np.frombuffer(reader.readframes(reader.getnframes()), "<i2")


def floats(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "speech.wav"


def test_loud_samples_saturate_and_wrong_ones_are_silent(path: Path) -> None:
    sink = WavSink(path)
    sink.open()
    sink.write(floats(0, 0.5, -0.5, 1, -1, 1.5, -7, 3e38, -np.inf, np.inf, np.nan, 1 / 32768, -1.4 / 32768))
    sink.close()
    wanted = [0, 16384, -16384, 32767, -32768, 32767, -32768, 32767, -32768, 32767, 0, 1, -1]
    assert read(path).tolist() == wanted


def test_every_16_bit_value_comes_back_as_it_was(path: Path) -> None:
    integers = np.arange(-32768, 32768).astype(np.int16)
    sink = WavSink(path)
    sink.open()
    sink.write((integers / 32768).astype(np.float32))
    sink.close()
    np.testing.assert_array_equal(read(path), integers)


@pytest.mark.parametrize("frames", [SCRATCH - 1, SCRATCH, SCRATCH + 1, 3 * SCRATCH + 7])
def test_lengths_around_the_scratch_buffer_come_out_whole(path: Path, frames: int) -> None:
    ramp = (np.arange(frames) % 1000 / 32768).astype(np.float32)
    sink = WavSink(path)
    sink.open()
    sink.write(ramp)
    sink.close()
    np.testing.assert_array_equal(read(path), np.arange(frames) % 1000)


def test_the_file_is_valid_after_opening_and_after_each_drain(path: Path) -> None:
    sink = WavSink(path)
    sink.open()
    assert len(read(path)) == 0
    for done in (1, 2):
        sink.write(floats(0.25, 0.5))
        sink.drain()
        assert len(read(path)) == 2 * done
        riff_size, data_size = struct.unpack("<4xI32xI", path.read_bytes()[:44])
        assert (riff_size, data_size) == (path.stat().st_size - 8, path.stat().st_size - 44)
    sink.close()


def test_opening_again_starts_anew(path: Path) -> None:
    sink = WavSink(path)
    for value in (0.25, 0.5):
        sink.open()
        sink.write(floats(value))
        sink.close()
    assert read(path).tolist() == [16384]


def test_a_pipe_gets_every_sentence_under_a_header_without_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    sink = WavSink(pipe)
    sink.open()
    for _ in range(2):
        sink.write(floats(*[0.5] * 100))
        sink.drain()
    sink.close()
    reader.join(10)
    (content,) = received
    assert content[:4] == b"RIFF"
    assert struct.unpack("<I", content[40:44])[0] > 2**32 - 100
    assert np.frombuffer(content[44:], "<i2").tolist() == [16384] * 200


def test_a_file_that_cannot_be_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=f"mkdir -p {tmp_path / 'missing'}"):
        WavSink(tmp_path / "missing" / "speech.wav").open()
    with pytest.raises(SinkError, match="is a directory"):
        WavSink(tmp_path).open()


def test_a_full_disk_is_an_error_and_can_be_closed() -> None:
    sink = WavSink("/dev/full")
    for _ in range(2):
        with pytest.raises(SinkError, match="/dev/full: cannot be written: No space left"):
            sink.open()
    sink.close()


@contextlib.contextmanager
def small_disk() -> Iterator[None]:
    """Let no file of this process become longer than 4,000 bytes: neither the one into which pytest may report."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_what_was_said_before_the_disk_was_full_is_not_begun_anew(path: Path) -> None:
    sink = WavSink(path)
    sink.open()
    sink.write(floats(*[0.5] * 1000))
    sink.drain()
    with small_disk(), pytest.raises(SinkError, match="cannot be written: File too large"):
        sink.write(floats(*[0.25] * 10_000))
    sink.close()
    with pytest.raises(SinkError, match=r"cannot be written: File too large .*move it away"):
        sink.open()
    assert (read(path)[:1000] == 16384).all()


def test_a_file_never_outgrows_its_header(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device.wav, "MOST_FRAMES", 10)
    sink = WavSink(path)
    sink.open()
    sink.write(floats(*[0.0] * 10))
    with pytest.raises(SinkError, match="start another file"):
        sink.write(floats(0))
    sink.close()
    assert len(read(path)) == 10

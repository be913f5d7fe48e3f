"""The sinks that the contract runs on, each with a way to find out what came out of it."""

from __future__ import annotations

import shutil
import subprocess
import wave
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from simulators.pulse import PulseServer, Recording

from device.alsa import AlsaSink
from device.format import RATE, Samples
from device.null import NullSink
from device.opus import OpusSettings
from device.opus_sink import OpusSink
from device.sink import Sink
from device.wav import WavSink

EDGE = RATE // 20
"""50 ms: what the ear needs of a first syllable, and what a device that wakes up late takes away."""

QUANTUM = 1.0 / 32768


class Rig(ABC):
    """A sink, and how to find out what came out of it. Subclasses are the sinks that the contract runs on."""

    sink: Sink
    paced = False

    def signal(self, frames: int, seed: int) -> Samples:
        """Give noise: it correlates with nothing but itself, and is loud from its first to its last frame."""
        return np.random.default_rng(seed).uniform(-0.5, 0.5, frames).astype(np.float32)

    def listening(self) -> AbstractContextManager[object]:
        """Give a context manager outside of which nothing needs to be heard."""
        return nullcontext()

    @abstractmethod
    def check(self, segments: Sequence[Samples], *, complete: bool = True) -> None:
        """Assert that these came out whole, in this order, and (`complete`) nothing else did."""


class NullRig(Rig):
    def __init__(self, *, paced: bool) -> None:
        self.sink: NullSink = NullSink(paced=paced)
        self.paced = paced

    def check(self, segments: Sequence[Samples], *, complete: bool = True) -> None:
        frames = sum(map(len, segments))
        assert self.sink.frames == frames if complete else self.sink.frames >= frames


class WavRig(Rig):
    def __init__(self, directory: Path) -> None:
        self.path = directory / "speech.wav"
        self.sink = WavSink(self.path)

    def check(self, segments: Sequence[Samples], *, complete: bool = True) -> None:
        with wave.open(str(self.path), "rb") as reader:
            assert (reader.getframerate(), reader.getnchannels(), reader.getsampwidth()) == (RATE, 1, 2)
            heard = np.frombuffer(reader.readframes(reader.getnframes()), "<i2") * np.float32(QUANTUM)
        check_concatenated(heard, segments, QUANTUM, complete=complete)


class OpusRig(Rig):
    def __init__(self, directory: Path) -> None:
        self.path = directory / "speech.opus"
        self.sink = OpusSink(self.path, OpusSettings(bitrate=128_000))

    def signal(self, frames: int, seed: int) -> Samples:
        """Give a tone that Opus at a high bit rate keeps in shape, phase included, so that a shift would be seen."""
        phase = 2 * np.pi * (800 + 30 * seed) * np.arange(frames) / RATE
        return (0.2 * (np.sin(phase) + np.sin(2 * phase) + np.sin(5 * phase))).astype(np.float32)

    def check(self, segments: Sequence[Samples], *, complete: bool = True) -> None:
        raw = self.path.with_suffix(".raw")
        opusdec = shutil.which("opusdec")
        assert opusdec is not None, "opusdec is not installed: apt-get install opus-tools"
        command = [opusdec, "--quiet", "--float", "--rate", str(RATE), str(self.path), str(raw)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
        assert "WARN" not in done.stderr
        heard = np.fromfile(raw, np.float32)
        wanted = np.concatenate(segments)
        assert len(heard) == len(wanted) if complete else len(heard) >= len(wanted)
        heard = heard[len(heard) - len(wanted) :]
        error = np.sqrt(np.mean((heard - wanted) ** 2) / np.mean(wanted**2))
        assert error < 0.2


class AlsaPulseRig(Rig):
    paced = True

    def __init__(self, server: PulseServer, tolerance: float) -> None:
        self.sink = AlsaSink()
        self.recording: Recording = server.record()
        self.tolerance = tolerance

    def listening(self) -> AbstractContextManager[object]:
        return self.recording

    def check(self, segments: Sequence[Samples], *, complete: bool = True) -> None:
        check_among_silence(self.recording.samples, segments, self.tolerance, complete=complete)


class AlsaFileRig(Rig):
    """alsa-lib's own file plugin: everything ALSA but the clock."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "speech.raw"
        self.sink = AlsaSink("tofile")

    def check(self, segments: Sequence[Samples], *, complete: bool = True) -> None:
        check_among_silence(np.fromfile(self.path, np.float32), segments, 0.0, complete=complete)


def check_concatenated(
    heard: NDArray[np.float32], segments: Sequence[Samples], tolerance: float, *, complete: bool
) -> None:
    wanted = np.concatenate(segments)
    assert len(heard) == len(wanted) if complete else len(heard) >= len(wanted)
    np.testing.assert_allclose(heard[len(heard) - len(wanted) :], wanted, rtol=0, atol=tolerance)


def check_among_silence(
    heard: NDArray[np.float32], segments: Sequence[Samples], tolerance: float, *, complete: bool
) -> None:
    """Find each segment by its first 50 ms, compare all of it, and see that the rest is silence."""
    rest = heard.copy()
    end = 0
    for segment in segments:
        head = segment[:EDGE]
        start = end + int(np.argmax(np.correlate(heard[end:], head, "valid")))
        end = start + len(segment)
        # Both ends first: they are what gets lost, and a short array tells more than a long one.
        np.testing.assert_allclose(heard[start:end][:EDGE], head, rtol=0, atol=tolerance)
        np.testing.assert_allclose(heard[start:end][-EDGE:], segment[-EDGE:], rtol=0, atol=tolerance)
        np.testing.assert_allclose(heard[start:end], segment, rtol=0, atol=tolerance)
        rest[start:end] = 0
    if complete:
        assert not rest.any()

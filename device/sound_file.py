"""A sound from a file of almost any kind: WAV, FLAC, Ogg Opus. The only module that imports soundfile."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from device.clip import FASTEST, MOST_CHANNELS, SLOWEST
from device.errors import SoundFileError
from device.format import RATE, Samples
from device.resampler import to_house_rate

SUFFIXES: Final = (".wav", ".flac", ".opus", ".ogg")


def read_sound(path: Path, *, longest_s: float) -> Samples:
    """Give the sound of a file as `Samples`; several channels become their mean. SoundFileError says what is wrong."""
    import soundfile  # noqa: PLC0415  brings libsndfile, 6 MB, for whom has sounds of their own

    try:
        with soundfile.SoundFile(path) as file:
            rate, channels, frames = file.samplerate, file.channels, file.frames
            if not SLOWEST <= rate <= FASTEST or not 1 <= channels <= MOST_CHANNELS:
                raise SoundFileError(path, f"has {channels} channels at {rate} Hz, which no loudspeaker has")
            if frames > longest_s * rate:
                raise SoundFileError(path, f"lasts {frames / rate:.1f} s, {longest_s:g} are allowed")
            values = file.read(dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        raise SoundFileError(path, f"cannot be read as a sound: {error}") from error
    mono: Samples = values.mean(axis=1, dtype=np.float32)
    if not mono.size or not np.isfinite(mono).all():
        raise SoundFileError(path, "holds no sound")
    return mono if rate == RATE else to_house_rate(mono, rate)

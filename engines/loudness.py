"""How loud a voice is (ITU-R BS.1770-4), and what brings it to a wanted loudness.

Measured once, when a voice is imported; speaking then takes a multiplication that the vocoder graph makes anyway.
"""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

import numpy as np

from device.format import RATE, Samples
from engines.calibration import render_whole, sentence_ids
from engines.corpus import CALIBRATION
from engines.errors import LoudnessError
from engines.pack_info import AnyInfo
from engines.vits import Delivery, VitsVoice

QUIETEST_LUFS: Final = -70.0
"""BS.1770's absolute gate: what is quieter is silence, and no voice."""

_BLOCK_S: Final = 0.4
"""Of the standard."""

_CHILD_S: Final = 60.0
_MOST_SAID: Final = 300
"""Characters of what a process that failed had to say."""

_MOST_GAIN: Final = 10.0
"""Factor, 20 dB: what would need more was measured wrongly or is broken, and noise is all that grew."""

_SENTENCES: Final = CALIBRATION[:12]
"""Single sentences of the default voice lie between -28 and -23 LUFS. The first 4 together are 0.8 LU from all 32 of
the corpus, the first 8 are 0.2, these, 34 s of speech, 0.3."""


def measure_loudness(samples: Samples) -> float | None:
    """Give the integrated loudness of 48 kHz samples in LUFS; None for silence or less than a block of 400 ms."""
    import pyloudnorm  # noqa: PLC0415  brings scipy, 40 MB, which nobody needs who only speaks

    meter = pyloudnorm.Meter(RATE)
    if samples.size < round(_BLOCK_S * RATE):
        return None
    with np.errstate(divide="ignore"):
        loudness = float(meter.integrated_loudness(samples.astype(np.float64)))
    return loudness if math.isfinite(loudness) and loudness > QUIETEST_LUFS else None


def voice_loudness(voice: VitsVoice, sentences: Sequence[str] = _SENTENCES) -> float | None:
    """Speak some sentences as the voice itself would and give their integrated loudness in LUFS; None for silence."""
    info = voice.info
    delivery = Delivery(info.default_speaker, info.noise_scale, info.length_scale, info.noise_w)
    rng = np.random.default_rng(0)
    spoken = []
    for ids in sentence_ids(voice, sentences):
        latents = voice.latents(ids, delivery, voice.noise(len(ids), rng, length_scale=info.length_scale))
        spoken.append(render_whole(voice, latents))
    return measure_loudness(np.concatenate(spoken))


def gain_for(info: AnyInfo, target_lufs: float | None) -> float:
    """Give the factor that brings a voice to `target_lufs`; 1 where either is unknown."""
    if target_lufs is None or info.loudness_lufs is None:
        return 1.0
    return factor_between(info.loudness_lufs, target_lufs)


def factor_between(lufs: float, target_lufs: float) -> float:
    """Give the factor from one loudness to another, at most 20 dB up."""
    gain: float = 10 ** ((target_lufs - lufs) / 20)
    return min(gain, _MOST_GAIN)


def loudness_of_each(sounds: Sequence[Samples]) -> list[float | None]:
    """Measure in a process of its own, which takes half a second and leaves no memory behind. LoudnessError."""
    packed = io.BytesIO()
    np.savez(packed, *sounds)
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__], input=packed.getvalue(), capture_output=True, check=True, timeout=_CHILD_S
        )
        measured: list[float | None] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or b""
        raise LoudnessError(said.decode(errors="replace").strip()[-_MOST_SAID:] or str(error)) from error
    return measured


def _main() -> None:
    """Read an .npz from standard input, write the loudness of each of its arrays as JSON."""
    with np.load(io.BytesIO(sys.stdin.buffer.read())) as sounds:
        print(json.dumps([measure_loudness(_long_enough(sounds[name])) for name in sounds.files]))  # noqa: T201


def _long_enough(samples: Samples) -> Samples:
    """Fill up to one block of the measurement: a short sound is as loud as its 400 ms with silence."""
    return np.pad(samples, (0, max(0, round(_BLOCK_S * RATE) - samples.size)))


if __name__ == "__main__":
    _main()

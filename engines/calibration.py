"""What a voice needs and costs on this device, measured: the margins of its windows, and their speed.

Margins belong to the voice; the speed belongs to voice and device and lies in the pack with the name of the device.
"""

from __future__ import annotations

import bisect
import json
import logging
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from device.format import Samples
from engines.durable import write_whole
from engines.pack import Pack
from engines.pack_info import PackInfo
from engines.pack_store import PackStore
from engines.resampling import HALF_TAPS, block_size
from engines.text.phonemes import Phonemizer, merge_clusters, phoneme_ids, sentences_of
from engines.vits import Delivery, VitsVoice
from engines.vocoder import Latents, Vocoder
from engines.windows import Margins, Speed, Window, output_frames

_LOG = logging.getLogger(__name__)

SPEED_FILE: Final = "speed.json"

_JOIN_ERROR: Final = 5e-6
"""Largest difference, of full scale 1, that a missing margin may make where it is measured.

Other speech may give more: at 2e-5 one sample in some minutes differed by just over 1e-3, which is the target.
"""

_CUTS: Final = 6
_LARGEST_FLOW: Final = 40
"""Latent frames: the flow of Piper's models, 16 convolutions of 5, reaches 32."""
_LARGEST_GAN: Final = 24
"""Latent frames: HiFi-GAN of Piper's models reaches 11 (medium) to 15 (high)."""

_PROBE_TEXT: Final = "1 2 3 4 5 6 7 8 9 10 11 12"
"""About five seconds of speech in any language of espeak-ng."""

_PROBE_TIMEOUT_S: Final = 30.0

_TIMED_FRAMES: Final = (24, 96)
"""Latent frames of the two windows that are timed: about the first and the third one of a sentence."""

_TIMED_RUNS: Final = 7
"""The quickest of these counts: other processes only ever make a run slower."""


_QUICKEST_S: Final = 1e-6
_SLOWEST_S: Final = 10.0
"""What a stored speed may say of a frame or a window; all else is a damaged file."""


def sentence_ids(voice: VitsVoice, texts: Sequence[str]) -> list[list[int]]:
    """Give each text's phoneme ids as one sentence; symbols at random, as many, for a voice that takes characters."""
    info = voice.info
    if info.phoneme_type == "text":
        known = sorted({i for ids in info.phoneme_ids.values() for i in ids})
        rng = np.random.default_rng(0)
        return [[int(i) for i in rng.choice(known, size=len(text))] for text in texts]
    found = []
    with closing(Phonemizer(_PROBE_TIMEOUT_S)) as phonemizer:
        for text in texts:
            clauses = phonemizer.phonemize(text, info.language)
            phonemes = list(chain(*sentences_of(clauses, max_phonemes=1000)))
            found.append(phoneme_ids(merge_clusters(phonemes, info.clusters), info.phoneme_ids)[0])
    return found


def probe_ids(voice: VitsVoice) -> list[int]:
    """Give the phoneme ids of some seconds of speech."""
    return sentence_ids(voice, [_PROBE_TEXT])[0]


def render(voice: VitsVoice, latents: Latents, window: Window) -> Samples:
    """Run one window into memory of its own."""
    output = np.empty(voice.frames_needed(window), np.float32)
    voice.render(latents, window, Delivery(speaker=voice.info.default_speaker), output)
    return output


def render_whole(voice: VitsVoice, latents: Latents) -> Samples:
    """Run a whole sentence as one window."""
    info = voice.info
    total = latents.shape[2]
    block_in = block_size(info.sample_rate)[0]
    starts = np.arange(-(-total * info.hop // block_in)) * block_in
    frames = output_frames(total, info.hop, info.sample_rate)
    return render(voice, latents, Window(0, total, 0, total, starts, frames, last=True))[:frames]


def measure_margins(voice: VitsVoice, latents: Latents) -> Margins:
    """Find the least context, at several cuts through speech, that changes no sample audibly."""
    info = voice.info
    block_in, block_out = block_size(info.sample_rate)
    whole = render_whole(voice, latents)
    total = latents.shape[2]
    probe = -(-4 * info.hop // block_in)  # blocks right at the cut: there the error is largest
    far = probe * block_in // info.hop + 1 + _LARGEST_GAN
    cuts = [int(cut) for cut in np.linspace(0, total, _CUTS + 2)[1:-1]]

    def error(block: int, start: int, stop: int, gan_start: int, gan_stop: int) -> float:
        start, gan_start = max(0, start), max(0, gan_start)
        stop, gan_stop = min(total, stop), min(total, gan_stop)
        starts = np.arange(block, block + probe) * block_in - gan_start * info.hop
        crop = (gan_start - start, gan_stop - start)
        part = render(voice, latents, Window(start, stop, *crop, starts, probe * block_out, last=False))
        expected = whole[block * block_out :][: part.size]
        return float(np.abs(part[: expected.size] - expected).max())

    def left(flow: int, gan: int) -> float:
        return max(
            error(
                -(-(cut * info.hop + HALF_TAPS) // block_in),
                cut - gan - flow,
                cut + far + _LARGEST_FLOW,
                cut - gan,
                cut + far,
            )
            for cut in cuts
        )

    def right(flow: int, gan: int) -> float:
        return max(
            error(
                max(0, (cut * info.hop - HALF_TAPS) // block_in - probe),
                cut - far - _LARGEST_FLOW,
                cut + gan + flow,
                cut - far,
                cut + gan,
            )
            for cut in cuts
        )

    gan_left = _least(lambda gan: left(_LARGEST_FLOW, gan), _LARGEST_GAN)
    gan_right = _least(lambda gan: right(_LARGEST_FLOW, gan), _LARGEST_GAN)
    return Margins(
        flow_left=_least(lambda flow: left(flow, gan_left), _LARGEST_FLOW),
        flow_right=_least(lambda flow: right(flow, gan_right), _LARGEST_FLOW),
        gan_left=gan_left,
        gan_right=gan_right,
    )


def _least(error: Callable[[int], float], most: int) -> int:
    """Bisect for the least margin of which the error is small: it falls as the margin grows."""
    return bisect.bisect_left(range(most), True, key=lambda margin: error(margin) <= _JOIN_ERROR)  # noqa: FBT003


def measure_speed(vocoder: Vocoder, info: PackInfo) -> Speed:
    """Time two sizes of window; takes as long as some 1,500 latent frames."""
    rng = np.random.default_rng(0)
    timed: list[tuple[int, float]] = []
    for window in map(vocoder.trial, _TIMED_FRAMES):
        frames = window.stop - window.start
        latents = rng.standard_normal((1, info.channels, frames), dtype=np.float32)
        output = np.empty(vocoder.frames_needed(window), np.float32)
        times = []
        for _ in range(1 + _TIMED_RUNS):
            begun = time.perf_counter()
            vocoder.render(latents, window, output, gain=1.0, speaker=info.default_speaker)
            times.append(time.perf_counter() - begun)
        timed.append((frames, min(times[1:])))
    (few, short_s), (many, long_s) = timed
    frame_s = max((long_s - short_s) / max(1, many - few), _QUICKEST_S)
    return Speed(max(0.0, short_s - frame_s * few), frame_s)


def calibrate(store: PackStore, name: str, *, threads: int) -> tuple[Margins, Speed]:
    """Measure margins and speed of a voice anew and keep both in its pack."""
    pack = store.get(name)
    with closing(VitsVoice.load(pack, threads=threads)) as voice:
        ids = probe_ids(voice)
        delivery = Delivery(speaker=voice.info.default_speaker)
        latents = voice.latents(ids, delivery, voice.noise(len(ids), np.random.default_rng(0)))
        margins, speed = measure_margins(voice, latents), measure_speed(voice.vocoder, voice.info)
        device = device_name(voice.vocoder, threads)
    pack = store.amend(pack, pack.info.model_copy(update={"margins": margins}))
    keep_speed(pack, device, speed)
    return margins, speed


def device_name(vocoder: Vocoder, threads: int) -> str:
    """Name what a speed was measured on: it holds for no other processor, thread count or backend."""
    return f"{processor(threads)}, {vocoder.backend} {vocoder.precision}"


def processor(threads: int) -> str:
    """Name the processor, and how much of it is used."""
    try:
        models = [
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith(("model name", "Model", "Hardware"))
        ]
    except OSError:
        models = []
    cpu = models[0] if models else platform.machine()
    return f"{cpu}, {len(os.sched_getaffinity(0))} cores, {threads} threads"


def known_speed(pack: Pack, device: str) -> Speed | None:
    """Read the speed that was measured on `device`; None where it was another one, or none."""
    try:
        stored: Any = json.loads((pack.folder / SPEED_FILE).read_bytes())
        if stored["device"] != device:
            return None
        speed = Speed(float(stored["overhead_s"]), float(stored["frame_s"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    plausible = 0 <= speed.overhead_s <= _SLOWEST_S and _QUICKEST_S <= speed.frame_s <= _SLOWEST_S
    return speed if plausible else None


def keep_speed(pack: Pack, device: str, speed: Speed) -> None:
    """Write a measured speed into the pack, whole or not at all; a pack on a read-only disk goes without."""
    content = {"device": device, "overhead_s": speed.overhead_s, "frame_s": speed.frame_s}
    try:
        write_whole(pack.folder / SPEED_FILE, json.dumps(content, indent=1).encode())
    except OSError as error:
        _LOG.warning("the measured speed of voice %s cannot be kept: %s", pack.info.name, error.strerror)

"""`speakd voice build` for the CPU's part: a pack's vocoder in INT8 and FP16, and what each is worth here. Needs onnx.

The graphs are what TensorRT's plans are made from, too: `vocoder.int8.onnx` has INT8 by Q/DQ and FP16 for the rest,
`vocoder.fp16.onnx` has FP16 throughout but for the resampler.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from typing import Final

import onnx

from engines import calibration
from engines.errors import VoiceError
from engines.hearing import Hearing
from engines.pack import Pack, PackStore
from engines.precision_report import Plan, Report, record
from engines.precision_search import Found, Progress, in_half, search
from engines.quality import Quality
from engines.runtime.half import rounded
from engines.runtime.ort import OrtEngine
from engines.runtime.quantize import quantized
from engines.vocoder import FreeVocoder
from engines.voice_plans import graph_file

TYPICAL_FRAMES: Final = 96
"""Latent frames of the window whose time is told: about the second one of a sentence."""

_PERFECT: Final = 4.64


def build(
    store: PackStore,
    name: str,
    *,
    precisions: Collection[str] = ("int8", "fp16", "fp32"),
    threads: int = 0,
    progress: Progress = lambda _what, _share: None,
) -> Report:
    """Write the graphs in `precisions` into the pack `name`, measure them on ONNX Runtime, and keep the report.

    VoiceError where the pack is broken, cannot be written, or INT8 alone was asked for and nothing of it passes.
    """
    pack = store.get(name)
    model = onnx.load(pack.vocoder)
    graphs: dict[str, bytes] = {}
    heard: dict[str, tuple[float, Quality | None]] = {}
    with closing(Hearing(pack)) as hearing:
        if "int8" in precisions:
            found = search(model, hearing, progress)
            if found.quality is None and set(precisions) == {"int8"}:
                raise VoiceError(name, "has no convolution that passes in INT8: use --precision fp16")
            if found.quality is not None:
                graphs["int8"], heard["int8"] = _int8(model, found), (found.share, found.quality)
        if "fp16" in precisions:
            progress("judging FP16", 1.0)
            half = in_half(model)
            graphs["fp16"] = half.SerializeToString()
            heard["fp16"] = 0.0, hearing.quality(rounded(half).SerializeToString())
    if "fp32" in precisions:
        heard["fp32"] = 0.0, None
    pack = store.attach(pack, {graph_file(pack, precision).name: data for precision, data in graphs.items()})
    progress("measuring the speed", 1.0)
    return record(pack, [_plan(pack, precision, *what, threads=threads) for precision, what in heard.items()])


def _int8(model: onnx.ModelProto, found: Found) -> bytes:
    content: bytes = in_half(quantized(model, found.grids)).SerializeToString()
    return content


def _plan(pack: Pack, precision: str, share: float, quality: Quality | None, *, threads: int) -> Plan:
    path = graph_file(pack, precision)
    with closing(FreeVocoder(pack.info, OrtEngine(path, threads=threads, precision=precision))) as vocoder:
        speed = calibration.measure_speed(vocoder, pack.info)
        backend = vocoder.backend
    return Plan(
        precision=precision,
        backend=backend,
        int8_mac_share=round(share, 4),
        quality=round(quality.score, 3) if quality else _PERFECT,
        snr_db=round(quality.snr_db, 2) if quality else None,
        passes=quality.passes if quality else True,
        ms_per_window=round(1000 * (speed.overhead_s + speed.frame_s * TYPICAL_FRAMES), 2),
        bytes=path.stat().st_size,
    )

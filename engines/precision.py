"""`speakd voice build` for the CPU's part: a pack's vocoder in INT8 and FP16, and what each is worth here. Needs onnx.

The graphs are what TensorRT's plans are made from, too: `vocoder.int8.onnx` has INT8 by Q/DQ and FP16 for the rest,
`vocoder.fp16.onnx` has FP16 throughout but for the resampler.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing

import onnx

from engines.errors import VoiceError
from engines.hearing import Hearing
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.precision_report import Plan, Report, measured, record
from engines.precision_search import Progress, in_half, search
from engines.quality import Quality
from engines.runtime.half import rounded
from engines.runtime.ort import OrtEngine
from engines.runtime.quantize import quantized
from engines.vocoder import FreeVocoder
from engines.voice_plans import graph_file


def build(
    store: PackStore,
    name: str,
    *,
    precisions: Collection[str] = ("int8", "fp16", "fp32"),
    threads: int = 0,
    progress: Progress = lambda _what, _share: None,
) -> Report:
    """Write the graphs in `precisions` into the pack `name`, and report how they and the float one do on the CPU.

    What does not pass is not written. VoiceError where the pack is broken or cannot be written, or nothing passes.
    """
    pack = store.get(name)
    model = onnx.load(pack.vocoder)
    graphs: dict[str, bytes] = {}
    heard: dict[str, tuple[float, Quality | None]] = {}
    with closing(Hearing(pack)) as hearing:
        if "int8" in precisions:
            found = search(model, hearing, progress)
            if found.quality is not None:
                graphs["int8"] = in_half(quantized(model, found.grids)).SerializeToString()
                heard["int8"] = found.share, found.quality
        if "fp16" in precisions:
            progress("judging FP16", 1.0)
            half = in_half(model)
            quality = hearing.quality(rounded(half).SerializeToString())
            if quality.passes:
                graphs["fp16"], heard["fp16"] = half.SerializeToString(), (0.0, quality)
    if not heard and "fp32" not in precisions:
        raise VoiceError(name, f"cannot be had in {' or '.join(precisions)}: nothing of it passes the quality gate")
    heard["fp32"] = 0.0, None  # always: what the others are chosen against
    pack = store.attach(pack, {graph_file(pack, precision).name: data for precision, data in graphs.items()})
    progress("measuring the speed", 1.0)
    return record(pack, [_plan(pack, precision, *what, threads=threads) for precision, what in heard.items()])


def _plan(pack: Pack, precision: str, share: float, quality: Quality | None, *, threads: int) -> Plan:
    path = graph_file(pack, precision)
    with closing(FreeVocoder(pack.info, OrtEngine(path, threads=threads, precision=precision))) as vocoder:
        return measured(vocoder, pack, share=share, quality=quality, size=path.stat().st_size)

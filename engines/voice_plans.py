"""A voice's plans: which ones it needs on this machine, and loading them."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Final

from device.cuda import Cuda
from engines.errors import EngineError
from engines.fixed_windows import WindowShape, default_shapes
from engines.pack import VOCODER_FILE, Pack, sha256
from engines.runtime.plans import Machine, PlanCache, PlanKey
from engines.runtime.trt import TensorRt
from engines.runtime.trt_engine import TrtEngine
from engines.runtime.trt_inspect import complaint, layers

_LOG = logging.getLogger(__name__)

PRECISIONS: Final = ("int8", "fp16", "fp32")
"""Narrowest first: the quickest, on most GPUs."""

DERIVATION: Final = 1
"""Counts up with every change to what `fixed_vocoder` makes of a graph: plans of the older graph are then stale."""


def machine_of(cuda: Cuda, tensorrt: str) -> Machine:
    """Say what plans of this machine run on; `tensorrt` is its version."""
    traits = cuda.traits
    return Machine(tensorrt, traits.compute_capability, traits.multiprocessors)


def graph_file(pack: Pack, precision: str) -> Path:
    """Give the vocoder graph that is written in `precision`; only a file of fp32 is sure to exist."""
    return pack.vocoder if precision == "fp32" else pack.vocoder.with_suffix(f".{precision}{pack.vocoder.suffix}")


def available_precisions(pack: Pack) -> list[str]:
    """Give the precisions that the pack has a graph in, narrowest first."""
    return [precision for precision in PRECISIONS if graph_file(pack, precision).is_file()]


def plan_keys(pack: Pack, precision: str, machine: Machine, *, capacity: int) -> dict[WindowShape, PlanKey]:
    """Give the plans that a voice needs for buffers of `capacity` frames, by window shape, smallest first.

    EngineError where the pack has no graph in that precision.
    """
    path, info = graph_file(pack, precision), pack.info
    try:
        content = info.files[VOCODER_FILE] if precision == "fp32" else sha256(path)
    except OSError as error:
        raise EngineError(
            str(path),
            f"cannot be read: {error.strerror}; `speakd voice build {info.name} --precision {precision}` makes it",
        ) from error
    shapes = default_shapes(hop=info.hop, rate=info.sample_rate, margins=info.margins, capacity=capacity)
    return {shape: PlanKey(_derived(content, shape), precision, shape.frames, machine) for shape in shapes}


def missing_plans(keys: dict[WindowShape, PlanKey], cache: PlanCache) -> list[WindowShape]:
    """Give the shapes that there is no whole plan for; a damaged one is set aside by the way."""
    return [shape for shape, key in keys.items() if cache.get(key) is None]


def load_engines(
    pack: Pack, keys: dict[WindowShape, PlanKey], cache: PlanCache, tensorrt: TensorRt
) -> dict[WindowShape, TrtEngine]:
    """Load all plans of a voice. EngineError, nothing loaded, where one is missing or cannot be."""
    engines: dict[WindowShape, TrtEngine] = {}
    try:
        for shape, key in keys.items():
            engines[shape] = _load_plan(pack.info.name, key, cache, tensorrt)
    except EngineError:
        for engine in engines.values():
            engine.close()
        raise
    return engines


def _load_plan(voice: str, key: PlanKey, cache: PlanCache, tensorrt: TensorRt) -> TrtEngine:
    plan = cache.get(key)
    if plan is None:
        failure = cache.failure(key)
        raise EngineError(
            f"voice {voice}",
            f"has no {key.precision} plan for this machine ({key.machine.name})"
            + (f", as building it has failed: {failure}. Try again: " if failure else ": ")
            + f"`speakd voice build {voice} --backend trt --precision {key.precision}`",
        )
    with cache.loading(key):
        engine = TrtEngine(tensorrt, plan, name=key.name, precision=key.precision)
    short = complaint(layers(engine.layers()), key.precision)
    if short:
        _LOG.warning("plan %s: %s", key.name, short)
    return engine


def _derived(content: str, shape: WindowShape) -> str:
    """Name what `fixed_vocoder` makes of a graph, without making it: that needs onnx, and seconds."""
    return hashlib.sha256(f"{content} {shape} {DERIVATION}".encode()).hexdigest()

"""A voice's plans: which ones it needs on this machine, and loading them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from device.cuda import Cuda
from device.format import RATE
from engines.acoustic import BUCKETS
from engines.digest import sha256
from engines.errors import EngineError
from engines.fixed_windows import WindowShape, default_shapes
from engines.pack import ACOUSTIC_FILE, VOCODER_FILE, Pack
from engines.pack_info import PackInfo
from engines.precision_report import read_report
from engines.resampling import block_size
from engines.runtime.plans import Machine, PlanCache, PlanKey
from engines.runtime.trt import TensorRt
from engines.runtime.trt_engine import TrtEngine
from engines.runtime.trt_inspect import complaint, layers

_LOG = logging.getLogger(__name__)

PRECISIONS: Final = ("int8", "fp16", "fp32")
"""Narrowest first: the quickest, on most GPUs."""

Size = TypeVar("Size")

DERIVATION: Final = 1
"""Counts up with each change to what `fixed_vocoder` or `static_acoustic` makes: older plans are stale then."""


def machine_of(cuda: Cuda, tensorrt: str) -> Machine:
    """Say what plans of this machine run on; `tensorrt` is its version."""
    traits = cuda.traits
    return Machine(tensorrt, traits.compute_capability, traits.multiprocessors)


def graph_file(pack: Pack, precision: str) -> Path:
    """Give the vocoder graph that is written in `precision`; only a file of fp32 is sure to exist."""
    return pack.vocoder if precision == "fp32" else pack.vocoder.with_suffix(f".{precision}{pack.vocoder.suffix}")


def available_precisions(pack: Pack) -> list[str]:
    """Give the precisions that the pack has a graph in that has not failed the quality gate, narrowest first."""
    report = read_report(pack)
    failed = {plan.precision for plan in report.plans if not plan.passes} if report else set()
    return [one for one in PRECISIONS if one not in failed and graph_file(pack, one).is_file()]


def require_graph(pack: Pack, precision: str) -> Path:
    """Give the vocoder graph that is written in `precision`; EngineError with what to do where there is none."""
    path, name = graph_file(pack, precision), pack.info.name
    if not path.is_file():
        raise EngineError(str(path), f"is missing: `speakd voice build {name} --precision {precision}` makes it")
    return path


RENDER_FRAMES: Final = 2 * RATE
"""Of a render's buffer, the largest window: four seconds would gain 2 % on the CPU and take 40 MB more per thread, one
would cost 13 %. On a GPU too, windows of 352 latent frames, which four seconds hold, would hardly be less work than
those of 176: the default voice's sentences of 2 to 3 seconds take one or two of them, shorter ones half as much. And a
run of several would take twice as long, behind which speech may have to wait.
"""

RENDER_ROWS: Final = 4
"""Windows in one run: as many as there are threads that render, so that more would never be filled.

Two or three of them leave rows idle. Plans of 2, 3 and 8 rows would each hold the voice's weights again, 8 to 30 MB on
the disk and in memory, and take minutes to build. One window alone is computed by the plan for speech.
"""


@dataclass(frozen=True, slots=True)
class VoicePlans:
    """The plans that a voice needs on one machine, in one precision."""

    voice: str
    precision: str
    """As was asked for: the vocoder's."""
    vocoder: Mapping[WindowShape, PlanKey]
    """By shape of window, smallest first."""
    acoustic: Mapping[int, PlanKey]
    """By phoneme ids, fewest first. In fp32 or fp16."""
    renders: Mapping[tuple[WindowShape, int], PlanKey]
    """By shape of window and windows in one run. That of one window is one of the `vocoder`'s."""

    @property
    def every(self) -> list[PlanKey]:
        """All of them, each once."""
        return list(dict.fromkeys([*self.vocoder.values(), *self.acoustic.values(), *self.renders.values()]))


def plans_of(pack: Pack, precision: str, machine: Machine, *, capacity: int) -> VoicePlans:
    """Say which plans a voice needs for buffers of `capacity` frames.

    EngineError where the pack has no vocoder graph in that precision, or its margins leave nothing of a buffer.
    """
    path, info = require_graph(pack, precision), pack.info
    try:
        content = info.files[VOCODER_FILE] if precision == "fp32" else sha256(path)
    except OSError as error:
        raise EngineError(str(path), f"cannot be read: {error.strerror}") from error
    shapes = window_shapes(info, capacity=capacity)
    vocoder = {shape: PlanKey(_derived(content, shape), precision, shape.frames, machine) for shape in shapes}
    renders = {(shape, 1): vocoder[shape] for shape in render_shapes(info, capacity=capacity)}
    for shape, _ in tuple(renders):
        several = _derived(f"{content} {RENDER_ROWS}", shape)
        renders[shape, RENDER_ROWS] = PlanKey(several, precision, shape.frames, machine)
    encoder, acoustic = info.files[ACOUSTIC_FILE], "fp32" if precision == "fp32" else "fp16"
    return VoicePlans(
        info.name,
        precision,
        vocoder,
        {size: PlanKey(_derived(encoder, size), acoustic, size, machine) for size in BUCKETS},
        renders,
    )


def window_shapes(info: PackInfo, *, capacity: int) -> list[WindowShape]:
    """Give the sizes of a voice's windows, smallest first. EngineError where its margins leave nothing of a buffer."""
    try:
        return default_shapes(hop=info.hop, rate=info.sample_rate, margins=info.margins, capacity=capacity)
    except ValueError as error:
        raise EngineError(f"voice {info.name}", f"cannot be computed in windows of fixed sizes: {error}") from error


def render_shapes(info: PackInfo, *, capacity: int) -> list[WindowShape]:
    """Give the largest of `window_shapes` that a render's buffer holds; none where all are larger."""
    block_out = block_size(info.sample_rate)[1]
    shapes = window_shapes(info, capacity=capacity)
    return [shape for shape in shapes if shape.blocks * block_out <= RENDER_FRAMES][-1:]


def missing_plans(keys: Iterable[PlanKey], cache: PlanCache) -> list[PlanKey]:
    """Give those that there is no whole plan for; a damaged one is set aside by the way."""
    return [key for key in keys if cache.get(key) is None]


def load_engines(
    plans: VoicePlans, keys: Mapping[Size, PlanKey], cache: PlanCache, tensorrt: TensorRt
) -> dict[Size, TrtEngine]:
    """Load one part of a voice's plans. EngineError, nothing loaded, where one is missing or cannot be."""
    engines: dict[Size, TrtEngine] = {}
    try:
        for size, key in keys.items():
            engines[size] = _load_plan(plans, key, cache, tensorrt)
    except EngineError:
        for engine in engines.values():
            engine.close()
        raise
    return engines


def _load_plan(plans: VoicePlans, key: PlanKey, cache: PlanCache, tensorrt: TensorRt) -> TrtEngine:
    plan = cache.get(key)
    if plan is None:
        failure = cache.failure(key)
        raise EngineError(
            f"voice {plans.voice}",
            f"has no {key.precision} plan for this machine ({key.machine.name})"
            + (f", as building it has failed: {failure}. Try again: " if failure else ": ")
            + f"`speakd voice build {plans.voice} --backend trt --precision {plans.precision}`",
        )
    with cache.loading(key):
        engine = TrtEngine(tensorrt, plan, name=key.name, precision=key.precision)
    short = complaint(layers(engine.layers()), key.precision)
    if short:
        _LOG.warning("plan %s: %s", key.name, short)
    return engine


def _derived(content: str, size: WindowShape | int) -> str:
    """Name what `fixed_vocoder` or `static_acoustic` makes of a graph, without making it: that takes onnx, and time."""
    return hashlib.sha256(f"{content} {size} {DERIVATION}".encode()).hexdigest()

"""A voice's plans built, one per window size. Needs onnx, minutes and memory: for a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx

from engines.errors import EngineError, GraphError
from engines.fixed_windows import WindowShape
from engines.pack import Pack
from engines.runtime.plans import PlanCache, PlanKey
from engines.runtime.trt_build import Progress, build
from engines.vits_fixed import fixed_vocoder
from engines.voice_plans import graph_file, missing_plans


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """How far the plans of a voice are."""

    plan: int
    """Which one is being built, from 1."""
    plans: int
    share: float
    """Of all of them, 0 to 1."""
    left_s: float | None
    """Seconds until all are there, as far as that can be told."""
    phase: str


def build_plans(
    pack: Pack,
    keys: dict[WindowShape, PlanKey],
    cache: PlanCache,
    *,
    again: bool = False,
    progress: Callable[[PlanProgress], None] = lambda _: None,
) -> int:
    """Build what is missing of a voice's plans, all of them where `again`; gives how many.

    Each is kept as soon as it is there, so that an interrupted build goes on where it was. What TensorRT refuses is
    remembered (`PlanCache.failure`) and raised as EngineError.
    """
    shapes = list(keys) if again else missing_plans(keys, cache)
    if not shapes:
        return 0
    path = graph_file(pack, keys[shapes[0]].precision)
    model = onnx.load(path)
    for number, shape in enumerate(shapes):
        key = keys[shape]

        def tell(one: Progress, number: int = number) -> None:
            share = (number + one.share) / len(shapes)
            left = (
                None if one.left_s is None else one.left_s + (one.elapsed_s + one.left_s) * (len(shapes) - number - 1)
            )
            progress(PlanProgress(number + 1, len(shapes), share, left, one.phase))

        try:
            with cache.building(key):
                graph = fixed_vocoder(model, shape).SerializeToString()
                plan, timing = build(graph, name=key.name, progress=tell, timing=cache.timing(key.machine))
        except (EngineError, GraphError) as error:
            cache.fail(key, str(error))
            if isinstance(error, GraphError):
                raise EngineError(str(path), f"cannot be made static: {error}") from error
            raise
        cache.put(key, plan)
        cache.keep_timing(key.machine, timing)
    return len(shapes)

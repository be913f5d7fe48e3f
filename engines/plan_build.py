"""A voice's plans built, one per size. Needs onnx, minutes and memory: for a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import onnx

from engines.errors import EngineError, GraphError
from engines.fixed_windows import WindowShape
from engines.pack import Pack
from engines.runtime.plans import PlanCache, PlanKey
from engines.runtime.trt_build import Progress, build
from engines.vits_fixed import fixed_vocoder
from engines.vits_static import static_acoustic
from engines.voice_plans import VoicePlans, graph_file, missing_plans


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
    plans: VoicePlans,
    cache: PlanCache,
    *,
    again: bool = False,
    progress: Callable[[PlanProgress], None] = lambda _: None,
) -> int:
    """Build what is missing of a voice's plans, all of them where `again`; gives how many.

    Each is kept as soon as it is there, so that an interrupted build goes on where it was. What TensorRT refuses is
    remembered (`PlanCache.failure`) and raised as EngineError, after all the others.
    """
    wanted = plans.every if again else missing_plans(plans.every, cache)
    makers = dict(_graphs(pack, plans))
    errors: list[EngineError] = []
    for number, key in enumerate(wanted):
        error = _build_one(key, makers[key], cache, partial(_tell, progress, number, len(wanted)))
        if error is not None:
            errors.append(error)
    if errors:
        raise errors[0]
    return len(wanted)


def _build_one(
    key: PlanKey, make: Callable[[], bytes], cache: PlanCache, progress: Callable[[Progress], None]
) -> EngineError | None:
    """Build and keep one plan; gives what stands against it, which is remembered."""
    try:
        with cache.building(key):
            plan, timing = build(make(), name=key.name, progress=progress, timing=cache.timing(key.machine))
    except (EngineError, GraphError) as error:
        cache.fail(key, str(error))
        return error if isinstance(error, EngineError) else EngineError(key.name, f"cannot be built: {error}")
    cache.put(key, plan)
    cache.keep_timing(key.machine, timing)
    return None


def _graphs(pack: Pack, plans: VoicePlans) -> Iterator[tuple[PlanKey, Callable[[], bytes]]]:
    """Give what makes the graph of each plan."""

    def vocoder(shape: WindowShape, rows: int) -> bytes:
        model = fixed_vocoder(onnx.load(graph_file(pack, plans.precision)), shape, batch=rows)
        return bytes(model.SerializeToString())

    for shape, key in plans.vocoder.items():
        yield key, partial(vocoder, shape, 1)
    for (shape, rows), key in plans.renders.items():
        yield key, partial(vocoder, shape, rows)
    for size, key in plans.acoustic.items():
        yield key, lambda size=size, key=key: static_acoustic(pack, [size], in_half=key.precision == "fp16")[size]  # type: ignore[misc]


def _tell(progress: Callable[[PlanProgress], None], number: int, count: int, one: Progress) -> None:
    left = one.left_s
    if left is not None:  # the further ones take about as long, each
        left += (one.elapsed_s + left) * (count - number - 1)
    progress(PlanProgress(number + 1, count, (number + one.share) / count, left, one.phase))

"""`speakd voice build`: a voice's plans for this machine's GPU."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from daemon.config import Config, packs_folder, plans_folder
from daemon.engine_room import BUFFER_FRAMES
from device.errors import DeviceError
from engines.backends import Gpu
from engines.errors import EngineError, SpeechError
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.plan_build import PlanProgress, build_plans
from engines.precision_report import record_plan
from engines.runtime.trt_engine import TrtEngine
from engines.runtime.trt_inspect import complaint, layers
from engines.vocoder_fixed import FixedVocoder
from engines.voice_plans import VoicePlans, available_precisions, load_engines, plans_of

_LOG = logging.getLogger(__name__)

_STEP: Final = 0.1
"""Of a build, between two lines in a log."""

_MINUTE_S: Final = 60

_NICE: Final = 30
"""Over the service's own -10, to the least there is: speech is computed on the same processor meanwhile."""


def build(config: Config, name: str, precision: str, *, for_sm: int | None = None, again: bool = False) -> None:
    """Build a voice's plans in `precision`, 'auto' for all that its pack has graphs in; tells progress on stderr.

    EngineError or DeviceError where there is no GPU with TensorRT, or it refuses. VoiceError where there is no voice.
    """
    store = PackStore(packs_folder(config))
    pack = store.get(store.default_name(name or config.voice.default))
    with closing(_open(config, pack, for_sm)) as gpu:
        for one in available_precisions(pack) if precision == "auto" else [precision]:
            plans = plans_of(pack, one, gpu.machine, capacity=gpu.capacity)
            built = build_plans(pack, plans, gpu.cache, again=again, progress=_teller(one))
            _report(pack, plans, built, gpu)
        gpu.cache.prune(gpu.machine, _graphs_in_use(store, gpu).__contains__)


def _open(config: Config, pack: Pack, for_sm: int | None) -> Gpu:
    if for_sm is None:
        return Gpu(plans_folder(config), capacity=BUFFER_FRAMES)
    elsewhere = EngineError(
        f"plans for SM {for_sm}",
        "can be built on such a GPU only, as TensorRT measures on it what is quickest: run "
        f"`speakd voice build {pack.info.name}` there",
    )
    try:
        gpu = Gpu(plans_folder(config), capacity=BUFFER_FRAMES)
    except (EngineError, DeviceError) as error:
        raise elsewhere from error
    major, minor = gpu.machine.compute_capability
    if 10 * major + minor != for_sm:
        gpu.close()
        raise elsewhere
    return gpu


def _report(pack: Pack, plans: VoicePlans, built: int, gpu: Gpu) -> None:
    """Say what the plans are like, and keep it; they are loaded for that, as they will be by the daemon."""
    kept = len(plans.every) - built
    print(f"{plans.voice} in {plans.precision}: {built} plans built" + (f", {kept} were there" if kept else ""))
    windows = load_engines(plans, plans.vocoder, gpu.cache, gpu.tensorrt)
    with closing(FixedVocoder(pack.info, windows)) as vocoder:
        _tell_layers("vocoder", plans.precision, windows)
        record_plan(pack, vocoder, size=sum(len(gpu.cache.get(key) or b"") for key in plans.vocoder.values()))
    buckets = load_engines(plans, plans.acoustic, gpu.cache, gpu.tensorrt)
    _tell_layers("acoustic part", next(iter(plans.acoustic.values())).precision, buckets)
    renders = load_engines(plans, plans.renders, gpu.cache, gpu.tensorrt)
    if renders:
        _tell_layers(f"{max(rows for _, rows in renders)} windows at once", plans.precision, renders)
    for engine in (*buckets.values(), *renders.values()):
        engine.close()


def _tell_layers(part: str, precision: str, engines: Mapping[Any, TrtEngine]) -> None:
    found = [layers(engine.layers()) for engine in engines.values()]
    print(f"  {part}: layers in {found[-1]}")
    for short in sorted({complaint(one, precision) for one in found} - {""}):
        print(f"  beware: {short}")


def _graphs_in_use(store: PackStore, gpu: Gpu) -> set[str]:
    packs = [pack for pack in store.list() if isinstance(pack, Pack)]
    return {
        key.graph
        for pack in packs
        for precision in available_precisions(pack)
        for key in plans_of(pack, precision, gpu.machine, capacity=gpu.capacity).every
    }


def _teller(precision: str) -> Callable[[PlanProgress], None]:
    """Give what prints progress: in one line of a terminal, in a line now and then of a log."""
    told = -1.0

    def tell(progress: PlanProgress) -> None:
        nonlocal told
        terminal = sys.stderr.isatty()
        if progress.share < told + (0.01 if terminal else _STEP) and progress.share < 1:
            return
        told = progress.share
        line = f"{precision}, plan {progress.plan} of {progress.plans}: {progress.share:.0%}{_left(progress.left_s)}"
        print(f"\r{line:<60}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True)
        if terminal and progress.share >= 1:
            print(file=sys.stderr)

    return tell


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f", {seconds / _MINUTE_S:.0f} min left" if seconds >= 1.5 * _MINUTE_S else f", {seconds:.0f} s left"


def main(arguments: Sequence[str]) -> int:
    """Build in the background, as nobody's first concern: a voice's name, a precision; the configuration on stdin."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    os.nice(_NICE)
    voice, precision = arguments
    try:
        build(Config.model_validate_json(sys.stdin.buffer.read()), voice, precision)
    except (SpeechError, DeviceError) as error:
        _LOG.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

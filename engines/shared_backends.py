"""What renders are computed on: in batches on TensorRT where speech is there too, else on the CPU."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from device.errors import DeviceError
from engines.backends import Gpu
from engines.batching import Batcher, MakeEngine
from engines.errors import EngineError
from engines.pack import Pack
from engines.precedence import Precedence
from engines.runtime.trt import NAME as TENSORRT
from engines.shared_voices import BatchedVoice, ConcurrentVoice, SharedVoice
from engines.vits import VitsVoice
from engines.voice import Voice
from engines.voice_plans import RENDER_ROWS, load_engines, plans_of, render_shapes

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RenderOn:
    """Where TensorRT is to render, and how."""

    plans: Path
    """Folder of plans."""
    capacity: int
    """Frames per buffer of speech, which the plans are for."""
    backend: str
    precision: str


def beside(voice: Voice, plans: Path, *, capacity: int) -> RenderOn | None:
    """Let renders be computed by what computes the vocoder part of `voice`; None: on the CPU."""
    if not isinstance(voice, VitsVoice) or not voice.vocoder.backend.startswith(TENSORRT):
        return None
    return RenderOn(plans, capacity, voice.vocoder.backend, voice.vocoder.precision)


def load_shared(pack: Pack, precedence: Precedence, on: RenderOn | None) -> SharedVoice:
    """Load a pack for renders: as wanted `on` a GPU, else on the CPU, which is logged if it was not wanted.

    EngineError where the CPU fails too.
    """
    if on is not None:
        try:
            return _batched(pack, precedence, on)
        except (EngineError, DeviceError) as error:
            _LOG.warning("%s. Renders of voice %s are computed on the CPU", error, pack.info.name)
    return ConcurrentVoice(pack, precedence)


def _batched(pack: Pack, precedence: Precedence, on: RenderOn) -> BatchedVoice:
    """Make a voice whose batches are computed on a stream of ordinary priority.

    So speech waits for no batch: once it begins to be computed, `precedence` lets none begin, and the GPU takes up
    blocks of threads of the one under way only where the stream of speech has none to run.
    """
    shapes = render_shapes(pack.info, capacity=on.capacity)
    if not shapes:
        raise EngineError(f"voice {pack.info.name}", "has windows too long for the buffers of renders")
    batcher = Batcher(
        partial(_engines, pack, precedence, on),
        precedence,
        backend=on.backend,
        precision=on.precision,
        sizes=[RENDER_ROWS],
    )
    try:
        return BatchedVoice(pack, precedence, batcher, shapes)
    except EngineError:
        batcher.close()
        raise


@contextmanager
def _engines(pack: Pack, precedence: Precedence, on: RenderOn) -> Iterator[MakeEngine]:
    """Open the GPU for the calling thread and load all engines, so that what fails does so before the first window."""
    precedence.wait_turn()  # memory that is allocated for them may hold up what the GPU computes
    gpu = Gpu(on.plans, capacity=on.capacity, urgent=False)
    try:
        plans = plans_of(pack, on.precision, gpu.machine, capacity=on.capacity)
        engines = load_engines(plans, plans.renders, gpu.cache, gpu.tensorrt)
        try:
            yield lambda shape, rows: engines[shape, rows]
        finally:
            for engine in engines.values():
                engine.close()
    finally:
        try:
            gpu.close()
        except DeviceError as error:  # a GPU gone bad refuses this too; speech tells of it
            _LOG.warning("the GPU of renders of voice %s: %s", pack.info.name, error)

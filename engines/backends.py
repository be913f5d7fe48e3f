"""Which engine computes a voice: what is wanted, what there is, and what is quickest, measured."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from device.cuda import Cuda
from device.errors import DeviceError
from device.memory import BufferPool
from engines import calibration
from engines.errors import EngineError
from engines.pack import Pack
from engines.precision_report import chosen_precision
from engines.runtime.ort import OrtEngine
from engines.runtime.plans import Machine, PlanCache
from engines.runtime.trt import TensorRt
from engines.vits import VitsVoice
from engines.vocoder import FreeVocoder, Vocoder
from engines.vocoder_checked import CheckedVocoder
from engines.vocoder_fixed import FixedVocoder
from engines.voice_plans import available_precisions, graph_file, load_engines, machine_of, plan_keys
from engines.windows import Speed

_LOG = logging.getLogger(__name__)

_TYPICAL_FRAMES: Final = 96
"""Latent frames of the window that is compared: about the second one of a sentence."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the owner wants to compute voices."""

    backend: str = "auto"
    """'ort', 'trt', or 'auto' for the quickest of those that work."""
    precision: str = "auto"
    threads: int = 0
    """Of the CPU, per engine; 0: one per core."""


class Gpu:
    """A GPU with TensorRT, and the plans for it. Made, used and closed by one thread."""

    def __init__(self, plans: Path, *, capacity: int) -> None:
        """Open the first GPU; `plans`: the folder of plans; `capacity`: frames per buffer.

        EngineError or DeviceError where there is no GPU, no driver or no TensorRT.
        """
        self.capacity: Final = capacity
        self.cache: Final = PlanCache(plans)
        self._cuda = Cuda()
        try:
            self.tensorrt: Final = TensorRt(self._cuda)
        except EngineError:
            self._cuda.close()
            raise
        self.machine: Final[Machine] = machine_of(self._cuda, self.tensorrt.version)

    def buffer_pool(self, *, buffers: int, limit_bytes: int) -> BufferPool:
        """Make buffers that TensorRT writes into directly. DeviceError where memory is lacking."""
        return self._cuda.buffer_pool(buffers=buffers, capacity=self.capacity, limit_bytes=limit_bytes)

    def close(self) -> None:
        """Free all of the GPU's memory. Engines and buffers are closed before. Idempotent."""
        self._cuda.close()


def open_gpu(wanted: Wanted, plans: Path, *, capacity: int) -> Gpu | None:
    """Give the GPU if there is one to be used; None where it is not wanted, or 'auto' finds none, and says why.

    EngineError where TensorRT is a must and cannot be.
    """
    if wanted.backend == "ort":
        return None
    try:
        return Gpu(plans, capacity=capacity)
    except (EngineError, DeviceError) as error:
        if wanted.backend == "trt":
            raise EngineError('engine.backend = "trt"', f"is not possible here: {error}") from error
        _LOG.info("voices are computed on the CPU: %s", error)
        return None


def load_voice(pack: Pack, wanted: Wanted, gpu: Gpu | None = None) -> VitsVoice:
    """Load a pack on the quickest of what is wanted and works here; where there is a choice, it is measured now.

    The acoustic part runs on ONNX Runtime. EngineError where nothing that is wanted works; it tells all the reasons.
    """
    best: tuple[Vocoder, Speed] | None = None
    reasons: list[str] = []
    makers = _makers(pack, wanted, gpu)
    for make in makers:
        try:
            vocoder = make()
        except EngineError as error:
            reasons.append(str(error))
            continue
        speed = _speed(pack, vocoder, wanted.threads, known=len(makers) == 1)
        loser: Vocoder | None = vocoder
        if best is None or _typical_s(speed) < _typical_s(best[1]):
            loser = best[0] if best else None
            best = vocoder, speed
        if loser is not None:
            loser.close()
    if best is None:
        raise EngineError(
            f"voice {pack.info.name}",
            "; ".join(reasons) or f"cannot be computed by {wanted.backend} in {wanted.precision}: it is not built in",
        )
    vocoder, speed = best
    for reason in reasons:
        _LOG.warning("%s. %s in %s is used instead", reason, vocoder.backend, vocoder.precision)
    voice = VitsVoice(pack.info, OrtEngine(pack.acoustic, threads=wanted.threads), vocoder)
    voice.speed = speed
    return voice


def _makers(pack: Pack, wanted: Wanted, gpu: Gpu | None) -> list[Callable[[], Vocoder]]:
    """Give what can make a vocoder as wanted, what is probably quickest first. EngineError is for those to raise."""

    def on_cpu(precision: str = "fp32") -> FreeVocoder:
        path = graph_file(pack, precision)
        return FreeVocoder(pack.info, OrtEngine(path, threads=wanted.threads, precision=precision))

    def on_gpu(gpu: Gpu, precision: str) -> Vocoder:
        keys = plan_keys(pack, precision, gpu.machine, capacity=gpu.capacity)
        return CheckedVocoder(FixedVocoder(pack.info, load_engines(pack, keys, gpu.cache, gpu.tensorrt)), on_cpu)

    makers: list[Callable[[], Vocoder]] = []
    if gpu is not None and wanted.backend != "ort":
        precisions = available_precisions(pack) if wanted.precision == "auto" else [wanted.precision]
        makers = [partial(on_gpu, gpu, precision) for precision in precisions]
    if wanted.backend != "trt":
        auto = wanted.precision == "auto"
        makers.append(partial(on_cpu, chosen_precision(pack, OrtEngine.backend) if auto else wanted.precision))
    return makers


def _speed(pack: Pack, vocoder: Vocoder, threads: int, *, known: bool) -> Speed:
    """Give the speed of a vocoder: the `known` one of earlier, if it was measured on this device, or measured now."""
    device = calibration.device_name(vocoder, threads)
    speed = calibration.known_speed(pack, device) if known else None
    if speed is None:
        speed = calibration.measure_speed(vocoder, pack.info)
        _LOG.info("a window of %d frames takes %.1f ms on %s", _TYPICAL_FRAMES, 1000 * _typical_s(speed), device)
        if known:
            calibration.keep_speed(pack, device, speed)
    return speed


def _typical_s(speed: Speed) -> float:
    return speed.overhead_s + speed.frame_s * _TYPICAL_FRAMES

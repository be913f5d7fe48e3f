"""Which engine computes a voice: what is wanted, what there is, and what is quickest, measured."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from device.cuda import Cuda
from device.errors import DeviceError
from device.memory import BufferPool
from engines import calibration
from engines.acoustic import Acoustic, BucketedAcoustic, WholeAcoustic
from engines.errors import EngineError
from engines.pace import Pace
from engines.pack import Pack
from engines.precision_report import chosen_precision
from engines.runtime.ort import OrtEngine
from engines.runtime.plans import Machine, PlanCache
from engines.runtime.trt import NAME as TENSORRT
from engines.runtime.trt import TensorRt
from engines.vits import Delivery, VitsVoice, acoustic_on_cpu
from engines.vocoder import FreeVocoder, Vocoder
from engines.vocoder_checked import CheckedVocoder
from engines.vocoder_fixed import FixedVocoder
from engines.voice_plans import (
    PRECISIONS,
    available_precisions,
    load_engines,
    machine_of,
    plans_of,
    require_graph,
)
from engines.windows import Speed

_LOG = logging.getLogger(__name__)

_TYPICAL_FRAMES: Final = 96
"""Latent frames of the window that is compared: about the second one of a sentence."""

_TYPICAL_IDS: Final = 138
"""Phoneme ids of a sentence of kiosks and robots, the median."""

_SENTENCES: Final = 3
"""The quickest of so many counts, after a first one."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the owner wants to compute voices."""

    backend: str = "auto"
    """'ort', 'trt', or 'auto' for the quickest of those that work."""
    precision: str = "auto"
    threads: int = 0
    """Of the CPU, per engine; 0: one per core."""
    int8: bool = True
    """False: not even where it is the quickest; it has crashed too often."""
    learns: bool = True
    """Whether the sizes of windows follow what computing takes; False where the same is to come out to the sample."""

    def without(self, put_aside: str) -> Wanted:
        """Give what is still wanted where 'int8' or 'trt' must not be used; whoever wanted just that gets the next."""
        precision = "auto" if self.precision == "int8" else self.precision
        match put_aside:
            case "int8":
                return replace(self, precision=precision, int8=False)
            case "trt":
                return replace(self, backend="ort", precision=precision, int8=False)
        return self


class Gpu:
    """A GPU with TensorRT, and the plans for it. Made, used and closed by one thread."""

    def __init__(self, plans: Path, *, capacity: int, urgent: bool = True) -> None:
        """Open the first GPU; `plans`: the folder of plans; `capacity`: frames per buffer.

        `urgent`: its work goes before that of others that are not, also when it comes later.

        EngineError or DeviceError where there is no GPU, no driver or no TensorRT.
        """
        self.capacity: Final = capacity
        self.cache: Final = PlanCache(plans)
        self._cuda = Cuda()
        try:
            self.tensorrt: Final = TensorRt(self._cuda, urgent=urgent)
        except EngineError:
            self._cuda.close()
            raise
        self.machine: Final[Machine] = machine_of(self._cuda, self.tensorrt.version)

    def buffer_pool(self, *, buffers: int, limit_bytes: int) -> BufferPool:
        """Make buffers that TensorRT writes into directly. DeviceError where memory is lacking."""
        return self._cuda.buffer_pool(buffers=buffers, capacity=self.capacity, limit_bytes=limit_bytes)

    def memory(self) -> tuple[int, int]:
        """Give how many bytes of the GPU's memory are free, and how many there are. DeviceError where it is gone."""
        return self._cuda.memory()

    def close(self) -> None:
        """Free all of the GPU's memory. Engines and buffers are closed before. Idempotent."""
        self.tensorrt.close()
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

    EngineError where nothing that is wanted works; it tells all the reasons.
    """
    vocoder, speed = _Vocoders(pack, wanted, gpu).quickest()
    try:
        acoustic = _acoustic(pack, wanted, gpu, vocoder)
    except EngineError:
        vocoder.close()
        raise
    voice = VitsVoice(pack.info, acoustic, vocoder)
    voice.speed, voice.pace = speed, Pace() if wanted.learns else None
    return voice


class _Vocoders:
    """What could compute the vocoder part of a voice."""

    def __init__(self, pack: Pack, wanted: Wanted, gpu: Gpu | None) -> None:
        self._pack, self._wanted, self._gpu = pack, wanted, gpu

    def quickest(self) -> tuple[Vocoder, Speed]:
        """Load what is quickest, and say how quick."""
        best: tuple[Vocoder, Speed] | None = None
        reasons: list[str] = []
        makers = self._makers()
        for make in makers:
            try:
                vocoder = make()
            except EngineError as error:
                reasons.append(str(error))
                continue
            speed = self._speed(vocoder, known=len(makers) == 1)
            loser: Vocoder | None = vocoder
            if best is None or _typical_s(speed) < _typical_s(best[1]):
                loser = best[0] if best else None
                best = vocoder, speed
            if loser is not None:
                loser.close()
        if best is None:
            nothing = f"cannot be computed by {self._wanted.backend} in {self._wanted.precision}: it is not built in"
            raise EngineError(f"voice {self._pack.info.name}", "; ".join(reasons) or nothing)
        for reason in reasons:
            _LOG.warning("%s. %s in %s is used instead", reason, best[0].backend, best[0].precision)
        return best

    def _makers(self) -> list[Callable[[], Vocoder]]:
        """Give what can make a vocoder as wanted, what is probably quickest first; EngineError is theirs to raise."""
        wanted = self._wanted
        makers: list[Callable[[], Vocoder]] = []
        if self._gpu is not None and wanted.backend != "ort":
            precisions = available_precisions(self._pack) if wanted.precision == "auto" else [wanted.precision]
            makers += [partial(self._on_gpu, self._gpu, one) for one in precisions if wanted.int8 or one != "int8"]
        if wanted.backend != "trt":
            auto = wanted.precision == "auto"
            precision = chosen_precision(self._pack, OrtEngine.backend) if auto else wanted.precision
            makers.append(partial(self._on_cpu, precision if wanted.int8 or precision != "int8" else "fp32"))
        return makers

    def _on_cpu(self, precision: str = "fp32") -> FreeVocoder:
        path = require_graph(self._pack, precision)
        return FreeVocoder(self._pack.info, OrtEngine(path, threads=self._wanted.threads, precision=precision))

    def _on_gpu(self, gpu: Gpu, precision: str) -> Vocoder:
        plans = plans_of(self._pack, precision, gpu.machine, capacity=gpu.capacity)
        engines = load_engines(plans, plans.vocoder, gpu.cache, gpu.tensorrt)
        return CheckedVocoder(FixedVocoder(self._pack.info, engines), self._on_cpu)

    def _speed(self, vocoder: Vocoder, *, known: bool) -> Speed:
        """Give the speed of a vocoder: the `known` one of earlier, if it was measured on this device, or a new one."""
        device = calibration.device_name(vocoder, self._wanted.threads)
        speed = calibration.known_speed(self._pack, device) if known else None
        if speed is None:
            speed = calibration.measure_speed(vocoder, self._pack.info)
            _LOG.info("a window of %d frames takes %.1f ms on %s", _TYPICAL_FRAMES, 1000 * _typical_s(speed), device)
            if known:
                calibration.keep_speed(self._pack, device, speed)
        return speed


def _acoustic(pack: Pack, wanted: Wanted, gpu: Gpu | None, vocoder: Vocoder) -> Acoustic:
    """Load the acoustic part: on the GPU if the vocoder is there, all plans are too, and it is quicker."""

    def on_cpu() -> WholeAcoustic:
        return WholeAcoustic(acoustic_on_cpu(pack, threads=wanted.threads))

    if gpu is None or vocoder.precision not in PRECISIONS or not vocoder.backend.startswith(TENSORRT):
        return on_cpu()
    plans = plans_of(pack, vocoder.precision, gpu.machine, capacity=gpu.capacity)
    try:
        buckets = BucketedAcoustic(load_engines(plans, plans.acoustic, gpu.cache, gpu.tensorrt), on_cpu)
    except EngineError as error:
        _LOG.warning("%s. The acoustic part is computed on the CPU", error)
        return on_cpu()
    whole = on_cpu()
    on_gpu_s, on_cpu_s = (_sentence_s(VitsVoice(pack.info, one, vocoder)) for one in (buckets, whole))
    _LOG.info("a sentence's acoustic part takes %.1f ms there, %.1f on the CPU", 1000 * on_gpu_s, 1000 * on_cpu_s)
    if on_cpu_s < on_gpu_s:
        buckets.close()
        return whole
    whole.close()
    return buckets


def _sentence_s(voice: VitsVoice) -> float:
    """Time the acoustic part on a sentence of ordinary length."""
    known = sorted({i for ids in voice.info.phoneme_ids.values() for i in ids})
    rng = np.random.default_rng(0)
    ids = [int(i) for i in rng.choice(known, size=_TYPICAL_IDS)]
    delivery, noise = Delivery(speaker=voice.info.default_speaker), voice.noise(len(ids), rng)
    times = []
    for _ in range(1 + _SENTENCES):
        begun = time.perf_counter()
        voice.latents(ids, delivery, noise)
        times.append(time.perf_counter() - begun)
    return min(times[1:])


def _typical_s(speed: Speed) -> float:
    return speed.overhead_s + speed.frame_s * _TYPICAL_FRAMES

"""TensorRT's engine on the real `device.cuda`: on the simulated driver here, with `-m gpu` on a real GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from simulators import graphs
from simulators.cuda_driver import SimulatedDriver
from simulators.driver_gpu import DriverGpu
from simulators.tensorrt import World

from device.cuda import Cuda
from engines import calibration
from engines.acoustic import WholeAcoustic
from engines.fixed_windows import default_shapes
from engines.pack_store import PackStore
from engines.runtime.ort import OrtEngine
from engines.runtime.trt import TensorRt
from engines.runtime.trt_build import build
from engines.runtime.trt_engine import TrtEngine
from engines.runtime.trt_inspect import complaint, layers
from engines.vits import Delivery, VitsVoice
from engines.vits_fixed import fixed_vocoder
from engines.vocoder_fixed import FixedVocoder

N = 64


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.gpu)])
def cuda(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cuda]:
    if request.param == "simulated":
        driver: SimulatedDriver = request.getfixturevalue("cuda_driver")
        monkeypatch.setitem(sys.modules, "tensorrt", World(gpu=DriverGpu(driver)).module())  # type: ignore[arg-type]
    with closing(Cuda()) as cuda:
        yield cuda


def test_an_engine_writes_into_the_buffers_of_a_pool(cuda: Cuda) -> None:
    plan, _ = build(graphs.double(N), name="double")
    engine = TrtEngine(TensorRt(cuda), plan, name="double", precision="fp32")
    pool = cuda.buffer_pool(buffers=3, capacity=1024, limit_bytes=2**20)
    assert all(engine._reachable(buffer._samples[:N]) for buffer in pool._buffers), "nothing is copied"
    for turn in range(4):
        buffers = [pool.acquire(1) for _ in range(3)]
        for number, buffer in enumerate(buffers):
            offset = np.array([10 * turn + number], np.float32)
            engine.run_into({"x": np.arange(N, dtype=np.float32), "offset": offset}, buffer.samples[:N])
        for number, buffer in enumerate(buffers):
            np.testing.assert_array_equal(buffer.samples[:N], 2 * np.arange(N) + 10 * turn + number)
            buffer.release()
    assert len(engine._recorded) == 3, "recorded once for each buffer"
    engine.close()
    pool.close()


def test_ordinary_memory_is_copied_to(cuda: Cuda) -> None:
    plan, _ = build(graphs.double(N), name="double")
    with closing(TrtEngine(TensorRt(cuda), plan, name="double", precision="fp32")) as engine:
        for offset in (1.0, 2.0, 3.0):
            output = np.zeros(N, np.float32)
            feeds = {"x": np.arange(N, dtype=np.float32), "offset": np.array([offset], np.float32)}
            engine.run_into(feeds, output)
            np.testing.assert_array_equal(output, 2 * np.arange(N) + np.float32(offset))


@pytest.mark.gpu
@pytest.mark.parametrize("cuda", ["real"], indirect=True)
@pytest.mark.timeout(1800)  # TensorRT takes minutes for each size
def test_the_default_voice_on_a_gpu(cuda: Cuda, voice_packs: Path) -> None:
    """Streamed from TensorRT against the whole pass on ONNX Runtime, and in the types that were asked for."""
    pack = PackStore(voice_packs).get("en_US-joe-medium")
    info = pack.info
    owner = TensorRt(cuda)
    engines = {}
    timing = b""
    for shape in default_shapes(hop=info.hop, rate=info.sample_rate, margins=info.margins, capacity=192_000):
        graph = fixed_vocoder(onnx.load(pack.vocoder), shape).SerializeToString()
        plan, timing = build(graph, name="vocoder", timing=timing)
        engines[shape] = TrtEngine(owner, plan, name="vocoder", precision="fp32")
        assert complaint(layers(engines[shape].layers()), "fp32") == ""
    voice = VitsVoice(info, WholeAcoustic(OrtEngine(pack.acoustic)), FixedVocoder(info, engines))
    latents = np.random.default_rng(0).standard_normal((1, info.channels, 400), dtype=np.float32)
    parts = []
    for window in voice.windows(latents, 192_000):
        output = cuda.empty((voice.frames_needed(window),), np.float32)
        voice.render(latents, window, Delivery(), output)
        parts.append(output[: window.frames].copy())
    with closing(VitsVoice.load(pack)) as reference:
        np.testing.assert_allclose(
            np.concatenate(parts), calibration.render_whole(reference, latents), rtol=0, atol=1e-3
        )
    voice.close()

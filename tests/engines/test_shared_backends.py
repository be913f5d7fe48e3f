"""What renders are computed on: a tiny voice, the real GPU context on a simulated driver, a simulated TensorRT."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from simulators.cuda_driver import SimulatedDriver
from simulators.driver_gpu import DriverGpu
from simulators.tensorrt import World

from device import cuda
from device.errors import CudaError
from device.format import Samples
from engines import shared_backends
from engines.backends import Gpu, Wanted, load_voice
from engines.batching import Batcher
from engines.pack import Pack
from engines.plan_build import build_plans
from engines.precedence import Precedence
from engines.runtime.engine import Feeds
from engines.runtime.trt_engine import TrtEngine
from engines.shared_backends import RenderOn, beside, load_shared
from engines.shared_voices import BatchedVoice, ConcurrentVoice, SharedVoice
from engines.vits import Delivery, VitsVoice
from engines.voice_plans import RENDER_FRAMES, RENDER_ROWS, plans_of

TIMEOUT_S = 60
CAPACITY = 192_000


@pytest.fixture
def machine(cuda_driver: SimulatedDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Give a machine with a GPU, and see that the test leaves nothing on it."""
    world = World(gpu=DriverGpu(cuda_driver))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "tensorrt", world.module())
    before = cuda_driver.objects, cuda_driver.context_references
    yield world
    assert (cuda_driver.objects, cuda_driver.context_references) == before


@pytest.fixture
def plans(machine: World, tiny_pack: Pack, tmp_path: Path) -> Path:
    """Build them; gives their folder."""
    with closing(Gpu(tmp_path / "plans", capacity=CAPACITY)) as gpu:
        build_plans(tiny_pack, plans_of(tiny_pack, "fp32", gpu.machine, capacity=CAPACITY), gpu.cache)
    return tmp_path / "plans"


def on(plans: Path) -> RenderOn:
    return RenderOn(plans, CAPACITY, "tensorrt 10.3.0", "fp32")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch wait for whoever may still come, however busy this machine is."""
    monkeypatch.setattr(shared_backends, "Batcher", partial(Batcher, wait_s=TIMEOUT_S))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the windows that each run of TensorRT has room for."""
    rows: list[int] = []
    run_into = TrtEngine.run_into

    def recording(engine: TrtEngine, feeds: Feeds, output: Samples) -> None:
        rows.append(len(feeds["latents"]))
        run_into(engine, feeds, output)

    monkeypatch.setattr(TrtEngine, "run_into", recording)
    return rows


def render(voice: VitsVoice, seed: int) -> Samples:
    """Render an utterance of 40 latent frames, one window of a render."""
    latents = np.random.default_rng(seed).standard_normal((1, voice.info.channels, 40), dtype=np.float32)
    window = next(iter(voice.windows(latents, RENDER_FRAMES)))
    output = np.empty(voice.frames_needed(window), np.float32)
    voice.render(latents, window, Delivery(), output)
    return output[: window.frames]


def at_once(shared: SharedVoice, count: int) -> list[Samples]:
    """Render so many utterances, each in a thread, none of which begins before all could."""
    together = threading.Barrier(count)

    def speak(seed: int) -> Samples:
        with shared.speaking() as voice:
            together.wait(TIMEOUT_S)
            return render(voice, seed)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(speak, range(count)))


def check(pack: Pack, sounds: list[Samples]) -> None:
    """Compare with what the CPU gives, one after another."""
    with closing(VitsVoice.load(pack, threads=1)) as voice:
        for seed, sound in enumerate(sounds):
            np.testing.assert_allclose(sound, render(voice, seed), rtol=0, atol=1e-4)


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (2, RENDER_ROWS), (RENDER_ROWS, RENDER_ROWS)])
@pytest.mark.usefixtures("patient")
def test_those_at_once_are_one_run(
    count: int, rows: int, tiny_pack: Pack, plans: Path, runs: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    with closing(load_shared(tiny_pack, Precedence(), on(plans))) as shared:
        assert isinstance(shared, BatchedVoice)
        for _ in range(3):  # the second one is recorded, the third launched
            sounds = at_once(shared, count)
        with shared.speaking() as voice:
            assert voice.backend == "tensorrt 10.3.0 + onnxruntime-cpu"
    assert runs == [rows] * 3
    assert caplog.messages == [], "none was computed again"
    check(tiny_pack, sounds)


def test_speech_has_the_higher_priority(tiny_pack: Pack, plans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    priorities: list[int] = []
    run_into = TrtEngine.run_into

    def recording(engine: TrtEngine, feeds: Feeds, output: Samples) -> None:
        priorities.append(engine._owner.stream.priority)
        run_into(engine, feeds, output)

    with (
        closing(Gpu(plans, capacity=CAPACITY)) as gpu,
        closing(load_voice(tiny_pack, Wanted(backend="trt", threads=1), gpu)) as speaking,
        closing(load_shared(tiny_pack, Precedence(), beside(speaking, plans, capacity=CAPACITY))) as shared,
    ):
        monkeypatch.setattr(TrtEngine, "run_into", recording)
        at_once(shared, 1)
        render(speaking, 0)
    ordinary, urgent = priorities
    assert urgent < ordinary == 0, "the lower number goes first"


def test_none_begins_while_speech_is_computed(tiny_pack: Pack, plans: Path, runs: list[int]) -> None:
    precedence = Precedence()
    with closing(load_shared(tiny_pack, precedence, on(plans))) as shared, ThreadPoolExecutor(1) as pool:
        with precedence.urgent():
            done = pool.submit(at_once, shared, 1)
            assert not wait([done], 0.1).done
            assert runs == []
        check(tiny_pack, done.result(TIMEOUT_S))
        assert runs == [1]


@pytest.mark.parametrize("bad", [float("nan"), 0.0])
@pytest.mark.usefixtures("patient")
def test_a_bad_row_is_computed_again_alone(
    bad: float, tiny_pack: Pack, plans: Path, machine: World, runs: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    machine.faults.output = lambda place: place[0].fill(bad)
    with closing(load_shared(tiny_pack, Precedence(), on(plans))) as shared:
        check(tiny_pack, at_once(shared, 2))
        machine.faults.output = None
        check(tiny_pack, at_once(shared, 2))
    assert runs == [RENDER_ROWS, RENDER_ROWS], "the next utterances are computed there again"
    assert [m.endswith("onnxruntime-cpu fp32 takes over") for m in caplog.messages] == [True]


@pytest.mark.usefixtures("patient")
def test_where_no_run_succeeds_the_cpu_computes(
    tiny_pack: Pack, plans: Path, machine: World, runs: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    with closing(load_shared(tiny_pack, Precedence(), on(plans))) as shared:
        machine.faults.enqueue = True
        check(tiny_pack, at_once(shared, 2))
    assert runs == [RENDER_ROWS, 1, 1], "once together, once each"
    assert sum("takes over" in message for message in caplog.messages) == 2


def no_driver() -> None:
    raise CudaError("import pycuda", "libcuda.so.1: cannot open", "is NVIDIA's driver installed?")


class TestFallback:
    @pytest.fixture
    def told(self, caplog: pytest.LogCaptureFixture, tiny_pack: Pack) -> Callable[[RenderOn, str], None]:
        def check_told(where: RenderOn, reason: str) -> None:
            with closing(load_shared(tiny_pack, Precedence(), where)) as shared:
                assert isinstance(shared, ConcurrentVoice)
                check(tiny_pack, at_once(shared, 2))
            (message,) = [r.message for r in caplog.records if r.name == shared_backends.__name__]
            assert reason in message
            assert message.endswith("Renders of voice tiny are computed on the CPU")

        return check_told

    def test_no_plans(self, told: Callable[..., None], machine: World, tmp_path: Path) -> None:
        told(on(tmp_path / "none"), "`speakd voice build tiny --backend trt --precision fp32`")

    def test_no_plan_of_several_windows(self, told: Callable[..., None], plans: Path, tiny_pack: Pack) -> None:
        with closing(Gpu(plans, capacity=CAPACITY)) as gpu:
            keys = plans_of(tiny_pack, "fp32", gpu.machine, capacity=CAPACITY).renders
        ((key,),) = [[key for (_, rows), key in keys.items() if rows > 1]]
        (plans / f"{key.name}.plan").unlink()
        told(on(plans), "has no fp32 plan for this machine")

    def test_a_precision_that_this_voice_has_not(self, told: Callable[..., None], plans: Path) -> None:
        told(RenderOn(plans, CAPACITY, "tensorrt 10.3.0", "int8"), "int8.onnx is missing")

    def test_no_memory(self, told: Callable[..., None], plans: Path, machine: World) -> None:
        machine.faults.loading = True
        told(on(plans), "memory for its layers is lacking")

    def test_no_driver(self, told: Callable[..., None], plans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cuda, "load_driver", no_driver)
        told(on(plans), "libcuda.so.1")

    def test_no_tensorrt(self, told: Callable[..., None], plans: Path, machine: World) -> None:
        machine.faults.starting = True
        told(on(plans), "CUDA initialization failure")

    def test_windows_too_long_for_a_render(
        self, told: Callable[..., None], plans: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("engines.voice_plans.RENDER_FRAMES", 960)
        told(on(plans), "has windows too long")


def test_where_speech_is_computed_on_the_cpu_no_gpu_is_opened(
    tiny_pack: Pack, plans: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cuda, "load_driver", no_driver)
    with closing(load_voice(tiny_pack, Wanted(backend="ort", threads=1))) as speaking:
        assert beside(speaking, plans, capacity=CAPACITY) is None
    with closing(load_shared(tiny_pack, Precedence(), None)) as shared:
        check(tiny_pack, at_once(shared, 1))
    assert caplog.messages == []

"""Which engine computes a voice: a tiny voice, the real GPU context on a simulated driver, a simulated TensorRT."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from simulators import graphs
from simulators.cuda_driver import SimulatedDriver
from simulators.driver_gpu import DriverGpu
from simulators.tensorrt import World

from device import cuda
from device.errors import CudaError
from engines import backends, calibration
from engines.backends import Gpu, Wanted, load_voice, open_gpu
from engines.errors import EngineError, VoiceError
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.plan_build import PlanProgress, build_plans
from engines.runtime.half import half
from engines.runtime.plans import PlanCache, PlanKey
from engines.vits import Delivery, VitsVoice
from engines.vocoder import Vocoder
from engines.voice_plans import graph_file, missing_plans, plans_of
from engines.windows import Speed

CAPACITY = 192_000


@pytest.fixture
def pack(tiny_pack: Pack, tmp_path: Path) -> Pack:
    """A copy, which may be changed."""
    shutil.copytree(tiny_pack.folder.parent, tmp_path / "packs", symlinks=True)
    return PackStore(tmp_path / "packs").get("tiny")


@pytest.fixture
def machine(cuda_driver: SimulatedDriver, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(gpu=DriverGpu(cuda_driver))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "tensorrt", world.module())
    return world


@pytest.fixture
def gpu(machine: World, tmp_path: Path) -> Iterator[Gpu]:
    with closing(Gpu(tmp_path / "plans", capacity=CAPACITY)) as gpu:
        yield gpu


def build(pack: Pack, gpu: Gpu, precision: str = "fp32") -> int:
    return build_plans(pack, plans_of(pack, precision, gpu.machine, capacity=CAPACITY), gpu.cache)


PLANS = 8
"""Of the tiny voice: four sizes of windows, three of phoneme ids, one of several windows."""


def halved(pack: Pack) -> None:
    """Give the pack a graph in FP16, all of it but the resampler."""
    model = half(onnx.load(pack.vocoder), keep=lambda node: node.output[0].startswith(("resample/", "pcm")))
    graph_file(pack, "fp16").write_bytes(model.SerializeToString())


def quicker(backend: str) -> Callable[..., Speed]:
    """Let one backend come out as the quickest, whatever this machine is like."""

    def measure(vocoder: Vocoder, _info: object) -> Speed:
        return Speed(0.001, 0.0001 if vocoder.backend.startswith(backend) else 0.001)

    return measure


def file_of(gpu: Gpu, key: PlanKey) -> Path:
    return gpu.cache.folder / f"{key.name}.plan"


class TestChoice:
    @pytest.mark.parametrize(("backend", "precision"), [("tensorrt", "fp32"), ("onnxruntime", "fp32")])
    def test_auto_takes_what_is_measured_as_quickest(
        self, backend: str, precision: str, pack: Pack, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build(pack, gpu)
        monkeypatch.setattr(calibration, "measure_speed", quicker(backend))
        with closing(load_voice(pack, Wanted(threads=1), gpu)) as voice:
            assert voice.backend.startswith(backend)
            assert voice.precision == precision
            assert voice.speed.frame_s == 0.0001

    def test_precisions_are_measured_too(self, pack: Pack, gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
        halved(pack)
        assert build(pack, gpu, "fp16") == build(pack, gpu) == PLANS

        def measure(vocoder: Vocoder, _info: object) -> Speed:
            return Speed(0.0, 0.0001 if vocoder.precision == "fp16" else 0.001)

        monkeypatch.setattr(calibration, "measure_speed", measure)
        with closing(load_voice(pack, Wanted(threads=1), gpu)) as voice:
            assert (voice.vocoder.backend, voice.precision) == ("tensorrt 10.3.0", "fp16")
        with closing(load_voice(pack, Wanted(precision="fp32", backend="trt", threads=1), gpu)) as voice:
            assert (voice.vocoder.backend, voice.precision) == ("tensorrt 10.3.0", "fp32")

    @pytest.mark.parametrize(
        ("on_gpu_s", "backend"), [(1, "tensorrt 10.3.0"), (3, "tensorrt 10.3.0 + onnxruntime-cpu")]
    )
    def test_the_acoustic_part_is_where_it_is_quicker(
        self, on_gpu_s: float, backend: str, pack: Pack, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build(pack, gpu)
        monkeypatch.setattr(
            backends, "_sentence_s", lambda voice: on_gpu_s if voice.backend == "tensorrt 10.3.0" else 2
        )
        with closing(load_voice(pack, Wanted(backend="trt", threads=1), gpu)) as voice:
            assert voice.backend == backend
            ids = [1, 2, 3, 4, 5] * 20
            noise = voice.noise(len(ids), np.random.default_rng(0))
            with closing(load_voice(pack, Wanted(backend="ort", threads=1))) as reference:
                expected = reference.latents(ids, Delivery(), noise)
            np.testing.assert_allclose(voice.latents(ids, Delivery(), noise), expected, rtol=0, atol=1e-3)

    def test_it_is_really_measured(self, pack: Pack, gpu: Gpu, caplog: pytest.LogCaptureFixture) -> None:
        build(pack, gpu)
        with caplog.at_level(logging.INFO), closing(load_voice(pack, Wanted(threads=1), gpu)):
            told = [message for message in caplog.messages if "a window of 96 frames takes" in message]
        assert len(told) == 2
        assert "tensorrt 10.3.0 fp32" in told[0]
        assert "onnxruntime-cpu fp32" in told[1]

    def test_a_voice_on_tensorrt_says_the_same(self, pack: Pack, gpu: Gpu) -> None:
        build(pack, gpu)
        rng = np.random.default_rng(0)
        with (
            closing(load_voice(pack, Wanted(backend="trt", threads=1), gpu)) as voice,
            closing(load_voice(pack, Wanted(backend="ort", threads=1))) as reference,
        ):
            ids = [1, 2, 3, 4, 5] * 20
            latents = voice.latents(ids, Delivery(), voice.noise(len(ids), rng))
            heard = [_render(voice, latents, window)[: window.frames] for window in voice.windows(latents, CAPACITY)]
            whole = calibration.render_whole(reference, latents)
            np.testing.assert_allclose(np.concatenate(heard), whole, rtol=0, atol=1e-4)


def _render(voice: VitsVoice, latents: np.ndarray, window: object) -> np.ndarray:
    return calibration.render(voice, latents, window)  # type: ignore[arg-type]


class TestWithoutPlans:
    def test_auto_falls_back_and_says_how_to_get_them(
        self, pack: Pack, gpu: Gpu, caplog: pytest.LogCaptureFixture
    ) -> None:
        with closing(load_voice(pack, Wanted(threads=1), gpu)) as voice:
            assert (voice.backend, voice.precision) == ("onnxruntime-cpu", "fp32")
        assert "has no fp32 plan for this machine" in caplog.text
        assert "`speakd voice build tiny --backend trt --precision fp32`" in caplog.text
        assert "onnxruntime-cpu in fp32 is used instead" in caplog.text

    def test_trt_fails(self, pack: Pack, gpu: Gpu) -> None:
        with pytest.raises(EngineError, match="voice tiny has no fp32 plan for this machine"):
            load_voice(pack, Wanted(backend="trt"), gpu)

    def test_a_precision_that_the_voice_has_no_graph_in(self, pack: Pack, gpu: Gpu) -> None:
        with pytest.raises(EngineError, match=r"int8\.onnx is missing: .*voice build tiny --precision int8"):
            load_voice(pack, Wanted(backend="trt", precision="int8"), gpu)

    @pytest.mark.parametrize("damage", [lambda f: f[:1000], lambda f: f[:-1] + bytes([f[-1] ^ 1]), lambda f: b""])
    def test_a_damaged_plan_is_set_aside_and_built_again(
        self, damage: Callable[[bytes], bytes], pack: Pack, gpu: Gpu
    ) -> None:
        build(pack, gpu)
        path = file_of(gpu, next(iter(plans_of(pack, "fp32", gpu.machine, capacity=CAPACITY).vocoder.values())))
        path.write_bytes(damage(path.read_bytes()))
        with closing(load_voice(pack, Wanted(threads=1), gpu)) as voice:
            assert voice.backend == "onnxruntime-cpu"
        assert path.with_suffix(".aside").exists()
        assert build(pack, gpu) == 1, "the others are still there"
        with closing(load_voice(pack, Wanted(backend="trt", threads=1), gpu)) as voice:
            assert voice.backend.startswith("tensorrt")

    def test_the_acoustic_part_may_do_without(self, pack: Pack, gpu: Gpu, caplog: pytest.LogCaptureFixture) -> None:
        build(pack, gpu)
        plans = plans_of(pack, "fp32", gpu.machine, capacity=CAPACITY)
        file_of(gpu, plans.acoustic[480]).unlink()
        with closing(load_voice(pack, Wanted(backend="trt", threads=1), gpu)) as voice:
            assert voice.backend == "tensorrt 10.3.0 + onnxruntime-cpu"
        assert "The acoustic part is computed on the CPU" in caplog.text

    def test_after_an_update_of_tensorrt(
        self, pack: Pack, gpu: Gpu, cuda_driver: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build(pack, gpu)
        newer = World(gpu=DriverGpu(cuda_driver), version="10.16.2")  # type: ignore[arg-type]
        monkeypatch.setitem(sys.modules, "tensorrt", newer.module())
        with closing(Gpu(gpu.cache.folder, capacity=CAPACITY)) as after:
            with closing(load_voice(pack, Wanted(threads=1), after)) as voice:
                assert voice.backend == "onnxruntime-cpu"
            assert build(pack, after) == PLANS
            with closing(load_voice(pack, Wanted(backend="trt", threads=1), after)) as voice:
                assert voice.vocoder.backend == "tensorrt 10.16.2"
            assert len(after.cache.prune(after.machine)) == PLANS + 1, "the plans and a timing cache"

    def test_memory_that_runs_out(self, pack: Pack, gpu: Gpu, machine: World, caplog: pytest.LogCaptureFixture) -> None:
        build(pack, gpu)
        machine.faults.loading = True
        with closing(load_voice(pack, Wanted(threads=1), gpu)) as voice:
            assert voice.backend == "onnxruntime-cpu"
        assert "memory for its layers is lacking" in caplog.text
        with pytest.raises(EngineError, match="memory for its layers is lacking"):
            load_voice(pack, Wanted(backend="trt"), gpu)

    def test_a_plan_that_silently_became_fp32_is_told(
        self, pack: Pack, gpu: Gpu, machine: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        halved(pack)
        build(pack, gpu, "fp16")
        load_voice(pack, Wanted(backend="trt", precision="fp16", threads=1), gpu).close()
        assert not caplog.records
        machine.faults.all_float = True
        load_voice(pack, Wanted(backend="trt", precision="fp16", threads=1), gpu).close()
        assert "compute in fp32, not in fp16" in caplog.text


class TestWithoutGpu:
    """The real machine that the tests run on: it has no driver, or the simulated one and no TensorRT."""

    def test_trt_fails_loudly(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        def no_driver() -> None:
            raise CudaError("import pycuda", "libcuda.so.1: cannot open shared object file", "is the driver installed?")

        monkeypatch.setattr(cuda, "load_driver", no_driver)
        with pytest.raises(EngineError, match=r'engine.backend = "trt" is not possible here: .*libcuda'):
            open_gpu(Wanted(backend="trt"), tmp_path, capacity=CAPACITY)

    def test_auto_says_why_and_goes_on(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        def no_driver() -> None:
            raise CudaError("import pycuda", "not installed", "pip install 'speakd[jetson]'")

        monkeypatch.setattr(cuda, "load_driver", no_driver)
        with caplog.at_level(logging.INFO):
            assert open_gpu(Wanted(), tmp_path, capacity=CAPACITY) is None
        assert "voices are computed on the CPU: " in caplog.text

    def test_a_gpu_without_tensorrt(
        self, cuda_driver: SimulatedDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setitem(sys.modules, "tensorrt", None)
        before = cuda_driver.objects, cuda_driver.context_references
        with pytest.raises(EngineError, match=r'engine.backend = "trt" is not possible here: TensorRT cannot be'):
            open_gpu(Wanted(backend="trt"), tmp_path, capacity=CAPACITY)
        assert (cuda_driver.objects, cuda_driver.context_references) == before, "the GPU is given back"

    def test_ort_does_not_even_look(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(cuda, "load_driver", lambda: pytest.fail("it looked"))
        assert open_gpu(Wanted(backend="ort"), tmp_path, capacity=CAPACITY) is None

    def test_a_precision_that_the_cpu_has_not(self, pack: Pack) -> None:
        with pytest.raises(EngineError, match=r"int8\.onnx is missing: .*voice build tiny --precision int8"):
            load_voice(pack, Wanted(precision="int8"))


class TestBuilding:
    def test_progress_is_told_over_all_plans(self, pack: Pack, gpu: Gpu) -> None:
        told: list[PlanProgress] = []
        plans = plans_of(pack, "fp32", gpu.machine, capacity=CAPACITY)
        assert build_plans(pack, plans, gpu.cache, progress=told.append) == PLANS
        shares = [progress.share for progress in told]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0, 1)
        assert [progress.plan for progress in told] == sorted(progress.plan for progress in told)
        assert {progress.plans for progress in told} == {PLANS}
        assert told[-1].left_s == pytest.approx(0, abs=0.01)

    def test_only_what_is_missing_is_built(self, pack: Pack, gpu: Gpu, machine: World) -> None:
        assert build(pack, gpu) == PLANS
        assert build(pack, gpu) == 0
        plans = plans_of(pack, "fp32", gpu.machine, capacity=CAPACITY)
        assert build_plans(pack, plans, gpu.cache, again=True) == PLANS
        assert machine.builds == 2 * PLANS
        assert machine.faults.timings_used == [b"", *[b"timing of sm87"] * (2 * PLANS - 1)]

    def test_a_refusal_is_remembered(
        self, pack: Pack, gpu: Gpu, machine: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        machine.faults.building = "no implementation"
        with pytest.raises(EngineError, match="no implementation"):
            build(pack, gpu)
        with closing(load_voice(pack, Wanted(threads=1), gpu)):
            pass
        assert "as building it has failed" in caplog.text
        assert "no implementation" in caplog.text

    def test_a_graph_that_cannot_be_made_static(self, pack: Pack, gpu: Gpu) -> None:
        graph_file(pack, "int8").write_bytes(graphs.double(8))
        with pytest.raises(EngineError, match="cannot be built: it is no pack's vocoder part"):
            build(pack, gpu, "int8")

    def test_killed_in_the_middle_it_goes_on_where_it_was(self, pack: Pack, gpu: Gpu, tmp_path: Path) -> None:
        script = f"""
            import os, signal, sys
            from pathlib import Path
            sys.path.insert(0, "tests")
            from simulators.tensorrt import World
            from engines.pack_store import PackStore
            from engines.plan_build import build_plans
            from engines.runtime.plans import Machine, PlanCache
            from engines.voice_plans import plans_of
            world = World()
            sys.modules["tensorrt"] = world.module()
            def die():
                if world.builds == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
            world.faults.during_build = die
            pack = PackStore(Path({str(pack.folder.parent)!r})).get("tiny")
            plans = plans_of(pack, "fp32", {gpu.machine!r}, capacity={CAPACITY})
            build_plans(pack, plans, PlanCache(Path({str(gpu.cache.folder)!r})))
        """
        command = [sys.executable, "-c", textwrap.dedent(script)]
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        assert subprocess.run(command, check=False, timeout=120, env=environment).returncode == -signal.SIGKILL
        plans = plans_of(pack, "fp32", gpu.machine, capacity=CAPACITY)
        assert len(missing_plans(plans.every, PlanCache(gpu.cache.folder))) == PLANS - 2
        with closing(load_voice(pack, Wanted(threads=1), gpu)) as voice:
            assert voice.backend == "onnxruntime-cpu"
        assert build(pack, gpu) == PLANS - 2
        with closing(load_voice(pack, Wanted(backend="trt", threads=1), gpu)) as voice:
            assert voice.backend.startswith("tensorrt")

    def test_other_margins_are_other_plans(self, pack: Pack, gpu: Gpu) -> None:
        build(pack, gpu)
        margins = pack.info.margins
        wider = pack.info.model_copy(update={"margins": type(margins)(13, 15, 10, 12)})
        store = PackStore(pack.folder.parent)
        other = store.amend(pack, wider)
        assert wider.margins != margins
        assert build(other, gpu) > 0

    def test_margins_that_leave_nothing_of_a_buffer(self, pack: Pack, gpu: Gpu) -> None:
        margins = type(pack.info.margins)(900, 900, 900, 900)
        odd = PackStore(pack.folder.parent).amend(pack, pack.info.model_copy(update={"margins": margins}))
        with closing(load_voice(odd, Wanted(threads=1), gpu)) as voice:
            assert voice.backend == "onnxruntime-cpu"
        with pytest.raises(EngineError, match="voice tiny cannot be computed in windows of fixed sizes"):
            load_voice(odd, Wanted(backend="trt"), gpu)

    def test_a_changed_graph_is_no_voice(self, pack: Pack) -> None:
        pack.vocoder.write_bytes(pack.vocoder.read_bytes() + b"x")
        with pytest.raises(VoiceError, match="has changed since its import"):
            PackStore(pack.folder.parent).get("tiny")

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from simulators import graphs
from simulators.gpu import Gpu
from simulators.tensorrt import World

from engines.errors import EngineError
from engines.runtime.trt import TensorRt
from engines.runtime.trt_build import build
from engines.runtime.trt_engine import TrtEngine

N = 64
VERSIONS = ["10.3.0", "10.13.3.9", "10.16.2", "11.4.1"]


def feeds(offset: float = 0.5) -> dict[str, NDArray[Any]]:
    return {"x": np.arange(N, dtype=np.float32), "offset": np.array([offset], np.float32)}


def expected(offset: float = 0.5) -> NDArray[Any]:
    return 2 * np.arange(N, dtype=np.float32) + np.float32(offset)


def load(world: World, graph: bytes | None = None) -> TrtEngine:
    plan, _ = build(graph or graphs.double(N), name="double")
    return TrtEngine(TensorRt(world.gpu), plan, name="double", precision="fp16")


@pytest.fixture
def engine(world: World) -> Iterator[TrtEngine]:
    engine = load(world)
    yield engine
    engine.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_one_path_for_all_versions(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(version=version)
    monkeypatch.setitem(sys.modules, "tensorrt", world.module())
    engine = load(world)
    np.testing.assert_array_equal(engine.run(feeds())["y"], expected())
    assert (engine.backend, engine.precision) == (f"tensorrt {version}", "fp16")


def test_a_later_version_without_the_flag_for_strong_typing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(version="11.9.0", typed_flag=False)
    monkeypatch.setitem(sys.modules, "tensorrt", world.module())
    np.testing.assert_array_equal(load(world).run(feeds())["y"], expected())


class TestAddresses:
    def test_it_writes_straight_into_the_pools_memory(self, world: World, engine: TrtEngine) -> None:
        buffer = world.gpu.empty((256,), np.float32)
        engine.run_into(feeds(), buffer[:N])
        np.testing.assert_array_equal(buffer[:N], expected())
        assert np.isnan(buffer[N:]).all(), "nothing beyond its own"
        assert engine._context is not None
        assert engine._context._addresses["y"] == world.gpu.address_of(buffer)  # type: ignore[attr-defined]

    @pytest.mark.parametrize("start", [0, 1, 3])
    def test_memory_that_the_gpu_cannot_reach_or_is_not_aligned(
        self, start: int, world: World, engine: TrtEngine
    ) -> None:
        for memory in (np.full(N + 8, 7, np.float32), world.gpu.empty((N + 8,), np.float32)):
            memory.fill(7)
            engine.run_into(feeds(), memory[start : start + N])
            np.testing.assert_array_equal(memory[start : start + N], expected())
            assert (memory[:start] == 7).all()
            assert (memory[start + N :] == 7).all()

    def test_every_second_sample_of_a_buffer(self, world: World, engine: TrtEngine) -> None:
        memory = np.zeros((N, 2), np.float32)
        engine.run_into(feeds(), memory[:, 0])
        np.testing.assert_array_equal(memory[:, 0], expected())
        assert not memory[:, 1].any()


class TestRecording:
    def test_each_buffer_is_recorded_once_after_a_first_run(self, world: World, engine: TrtEngine) -> None:
        buffers = [world.gpu.empty((N,), np.float32) for _ in range(3)]
        for turn in range(4):
            for number, buffer in enumerate(buffers):
                offset = 10.0 * turn + number
                engine.run_into(feeds(offset), buffer)
                np.testing.assert_array_equal(buffer, expected(offset))
        assert len(world.gpu.graphs) == 3
        assert world.gpu.launches == 11, "all runs but the very first"

    def test_where_recording_is_refused_it_is_not_tried_again(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        world = World(gpu=Gpu(capturable=False))
        monkeypatch.setitem(sys.modules, "tensorrt", world.module())
        engine = load(world)
        with caplog.at_level("INFO"):
            for offset in (1.0, 2.0, 3.0, 4.0):
                np.testing.assert_array_equal(engine.run(feeds(offset))["y"], expected(offset))
        assert world.gpu.launches == 0
        assert sum("CUDA graph" in message for message in caplog.messages) == 1

    def test_the_number_of_recordings_is_bounded(self, world: World, engine: TrtEngine) -> None:
        for offset in range(40):
            buffer = world.gpu.empty((N,), np.float32)
            engine.run_into(feeds(offset), buffer)
            np.testing.assert_array_equal(buffer, expected(offset))
        assert len(world.gpu.graphs) == 16

    def test_closing_frees_them(self, world: World) -> None:
        engine = load(world)
        engine.run(feeds())
        engine.run(feeds())
        engine.close()
        assert world.gpu.graphs
        assert all(graph.closed for graph in world.gpu.graphs)


def test_engines_share_their_memory(world: World) -> None:
    owner = TensorRt(world.gpu)
    plan, _ = build(graphs.double(N), name="double")
    engines = [TrtEngine(owner, plan, name="double", precision="fp32")]
    before = world.gpu.allocated
    engines += [TrtEngine(owner, plan, name="double", precision="fp32") for _ in range(5)]
    assert world.gpu.allocated == before
    for offset, engine in enumerate(engines * 2):
        np.testing.assert_array_equal(engine.run(feeds(offset))["y"], expected(offset))


class TestFailures:
    def test_a_failed_launch(self, world: World, engine: TrtEngine) -> None:
        world.faults.enqueue = True
        with pytest.raises(EngineError, match=r"failed.*API Usage Error"):
            engine.run(feeds())
        world.faults.enqueue = False
        np.testing.assert_array_equal(engine.run(feeds())["y"], expected())

    def test_a_gpu_that_has_gone_bad(self, world: World, engine: TrtEngine) -> None:
        engine.run(feeds())
        engine.run(feeds())
        world.gpu.broken = "an illegal memory access was encountered"
        with pytest.raises(EngineError, match="illegal memory access"):
            engine.run(feeds())
        engine.close()
        with pytest.raises(EngineError, match="is closed"):
            engine.run(feeds())

    @pytest.mark.parametrize("spoil", [lambda p: p[:20], lambda p: p[:-1], lambda p: b"", lambda p: b"\xff" + p[1:]])
    def test_a_damaged_plan(self, spoil: Any, world: World) -> None:  # noqa: ANN401
        plan, _ = build(graphs.double(N), name="double")
        with pytest.raises(EngineError, match=r"double cannot be loaded: Error Code 1: Serialization"):
            TrtEngine(TensorRt(world.gpu), spoil(plan), name="double", precision="fp16")

    @pytest.mark.parametrize("other", [World(version="10.7.0"), World(sm="sm110")], ids=["version", "gpu"])
    def test_a_plan_of_another_machine(self, other: World, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        plan, _ = build(graphs.double(N), name="double")
        monkeypatch.setitem(sys.modules, "tensorrt", other.module())
        with pytest.raises(EngineError, match=r"double cannot be loaded: .*10\.3\.0"):
            TrtEngine(TensorRt(other.gpu), plan, name="double", precision="fp16")

    def test_no_memory_for_the_layers(self, world: World) -> None:
        world.faults.loading = True
        with pytest.raises(EngineError, match=r"memory for its layers is lacking: .*OutOfMemory"):
            load(world)

    def test_no_memory_for_inputs_and_outputs(self, world: World) -> None:
        world.gpu.limit = 100
        with pytest.raises(EngineError, match="double failed: out of memory"):
            load(world)

    def test_graphs_of_another_kind(self, world: World) -> None:
        same = helper.make_node("Identity", ["x"], ["y"])
        plain, odd = graphs.value("x", [4]), graphs.value("host/x", [4])
        cases = {
            "decides on one": graphs.model(
                [helper.make_node("Identity", ["host/x"], ["y"])], [odd], [graphs.value("y", [4])]
            ),
            "no fixed shape": graphs.model([same], [plain], [graphs.value("y", ["n"])]),
            "of type BF16": graphs.model(
                [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.DOUBLE)],
                [plain],
                [graphs.value("y", [4], TensorProto.DOUBLE)],
            ),
        }
        for words, graph in cases.items():
            with pytest.raises(EngineError, match=words):
                load(world, graph)

    def test_of_two_outputs_the_first_is_written_where_it_is_wanted(self, world: World) -> None:
        nodes = [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
        graph = graphs.model(nodes, [graphs.value("x", [4])], [graphs.value("y", [4]), graphs.value("z", [4])])
        engine = load(world, graph)
        x = np.arange(4, dtype=np.float32)
        output = np.zeros(4, np.float32)
        engine.run_into({"x": x}, output)
        np.testing.assert_array_equal(output, x)
        outputs = engine.run({"x": x})
        np.testing.assert_array_equal(outputs["y"], x)
        np.testing.assert_array_equal(outputs["z"], -x)


class TestWithoutTensorRt:
    def test_it_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "tensorrt", None)
        with pytest.raises(EngineError, match=r"cannot be imported.*python3-libnvinfer"):
            TensorRt(Gpu())

    def test_only_its_type_stubs_are_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "tensorrt", ModuleType("tensorrt"))
        with pytest.raises(EngineError, match="not installed"):
            TensorRt(Gpu())

    def test_there_is_no_driver(self, world: World) -> None:
        world.faults.starting = True
        for start in (lambda: TensorRt(Gpu()), lambda: build(graphs.double(8), name="voice")):
            with pytest.raises(EngineError, match="TensorRT does not start: CUDA initialization failure"):
                start()

    def test_it_is_closed(self, world: World) -> None:
        owner = TensorRt(world.gpu)
        owner.close()
        with pytest.raises(EngineError, match="voice cannot be loaded: TensorRT is closed"):
            TrtEngine(owner, b"", name="voice", precision="fp32")

    def test_it_is_too_old(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "tensorrt", World(version="8.5.2").module())
        with pytest.raises(EngineError, match=r"version 8\.5\.2; 10 or 11 is needed"):
            TensorRt(Gpu())

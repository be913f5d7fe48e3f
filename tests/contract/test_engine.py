"""What every Engine does; TensorRT's on a simulated GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing

import numpy as np
import pytest
from numpy.typing import NDArray
from simulators.graphs import double
from simulators.tensorrt import World

from engines.errors import EngineError
from engines.runtime.engine import Engine, Feeds
from engines.runtime.ort import OrtEngine
from engines.runtime.trt import TensorRt
from engines.runtime.trt_build import build
from engines.runtime.trt_engine import TrtEngine

WORLD = World()


def on_onnxruntime() -> Engine:
    return OrtEngine(double("n"))


class EachSize:
    """TensorRT's engines take one size each; the contract is about all of them together."""

    def __init__(self) -> None:
        owner = TensorRt(WORLD.gpu)
        self._engines = {}
        for size in (1, 3, 5, 8, 200, 1000):
            plan, _ = build(double(size), name="double")
            self._engines[size] = TrtEngine(owner, plan, name="double", precision="fp32")
        self.backend = self._engines[1].backend
        self.precision = self._engines[1].precision

    def run(self, feeds: Feeds) -> dict[str, NDArray[np.float32]]:
        return self._of(feeds).run(feeds)

    def run_into(self, feeds: Feeds, output: NDArray[np.float32]) -> None:
        self._of(feeds).run_into(feeds, output)

    def abandon(self) -> None:
        for engine in self._engines.values():
            engine.abandon()

    def close(self) -> None:
        for engine in self._engines.values():
            engine.close()

    def _of(self, feeds: Feeds) -> TrtEngine:
        return self._engines[feeds["x"].shape[0] if "x" in feeds else 1]


def load_onnxruntime(content: bytes) -> Engine:
    return OrtEngine(content)


def load_tensorrt(content: bytes) -> Engine:
    return TrtEngine(TensorRt(WORLD.gpu), content, name="voice", precision="fp32")


@pytest.fixture(autouse=True)
def tensorrt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", WORLD.module())


@pytest.fixture(params=[on_onnxruntime, EachSize])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    make: Callable[[], Engine] = request.param
    with closing(make()) as engine:
        yield engine


def feeds(count: int, offset: float = 0.5) -> dict[str, np.ndarray]:
    return {"x": np.arange(count, dtype=np.float32), "offset": np.array([offset], dtype=np.float32)}


class TestEngine:
    def test_it_says_who_it_is(self, engine: Engine) -> None:
        assert engine.backend
        assert engine.precision

    def test_it_computes(self, engine: Engine) -> None:
        np.testing.assert_array_equal(engine.run(feeds(5))["y"], 2 * np.arange(5) + 0.5)

    def test_every_output_has_its_name(self, engine: Engine) -> None:
        outputs = engine.run(feeds(5))
        assert list(outputs) == ["y", "xx"]
        np.testing.assert_array_equal(outputs["xx"], 2 * np.arange(5))

    def test_a_run_is_none_the_worse_for_another_one_abandoned(self, engine: Engine) -> None:
        engine.abandon()
        assert engine.run(feeds(5))["y"].size == 5
        engine.abandon()
        assert engine.run(feeds(5))["y"].size == 5

    def test_a_result_stays_the_callers(self, engine: Engine) -> None:
        first = engine.run(feeds(5))["y"]
        engine.run(feeds(5, offset=9))
        np.testing.assert_array_equal(first, 2 * np.arange(5) + 0.5)

    def test_it_writes_into_the_memory_it_is_given_and_no_further(self, engine: Engine) -> None:
        memory = np.full(12, 7, dtype=np.float32)
        engine.run_into(feeds(8), memory[2:10])
        np.testing.assert_array_equal(memory, [7, 7, *(2 * np.arange(8) + 0.5), 7, 7])

    def test_sizes_may_change_from_run_to_run(self, engine: Engine) -> None:
        for count in (1, 1000, 3, 200):
            output = np.zeros(count, np.float32)
            engine.run_into(feeds(count), output)
            np.testing.assert_array_equal(output, engine.run(feeds(count))["y"])

    @pytest.mark.parametrize(
        "wrong",
        [
            {},
            {"x": np.zeros(3, np.float32)},
            {"x": np.zeros(3), "offset": np.zeros(1, np.float32)},
            {"x": np.zeros((3, 3), np.float32), "offset": np.zeros(1, np.float32)},
            {**feeds(3), "z": np.zeros(1, np.float32)},
        ],
        ids=["nothing", "one missing", "wrong type", "wrong rank", "one too many"],
    )
    def test_wrong_inputs_are_an_engine_error(self, engine: Engine, wrong: dict[str, np.ndarray]) -> None:
        with pytest.raises(EngineError):
            engine.run(wrong)
        with pytest.raises(EngineError):
            engine.run_into(wrong, np.zeros(3, np.float32))
        np.testing.assert_array_equal(engine.run(feeds(3))["y"], 2 * np.arange(3) + 0.5)

    def test_an_output_of_another_size_is_an_engine_error(self, engine: Engine) -> None:
        with pytest.raises(EngineError):
            engine.run_into(feeds(8), np.zeros(5, np.float32))

    def test_closed_twice_and_then_refused(self, engine: Engine) -> None:
        engine.close()
        engine.close()
        with pytest.raises(EngineError, match="closed"):
            engine.run(feeds(1))
        with pytest.raises(EngineError, match="closed"):
            engine.run_into(feeds(1), np.zeros(1, np.float32))


@pytest.mark.parametrize("load", [load_onnxruntime, load_tensorrt])
@pytest.mark.parametrize("content", [b"", b"not a graph", double("n")[:50]])
def test_what_is_no_graph_is_an_engine_error(load: Callable[[bytes], Engine], content: bytes) -> None:
    with pytest.raises(EngineError, match="cannot be loaded"):
        load(content)

from __future__ import annotations

import logging
from contextlib import suppress

import numpy as np
import pytest
from numpy.typing import NDArray
from simulators import graphs
from simulators.tensorrt import World

from device.format import Samples
from engines.errors import EngineError
from engines.runtime.checked import CheckedEngine
from engines.runtime.engine import Engine, Feeds
from engines.runtime.ort import OrtEngine
from engines.runtime.sized import SizedEngines
from engines.runtime.trt import TensorRt
from engines.runtime.trt_build import build
from engines.runtime.trt_engine import TrtEngine

FEEDS: Feeds = {"x": np.arange(8, dtype=np.float32), "offset": np.ones(1, np.float32)}
RIGHT = 2 * np.arange(8) + 1


def on_gpu(world: World) -> TrtEngine:
    plan, _ = build(graphs.double(8), name="double")
    return TrtEngine(TensorRt(world.gpu), plan, name="double", precision="int8")


@pytest.fixture
def engine(world: World) -> CheckedEngine:
    return CheckedEngine(on_gpu(world), lambda: OrtEngine(graphs.double(8)))


def test_a_good_output_is_passed_on(engine: CheckedEngine) -> None:
    output = np.zeros(8, np.float32)
    engine.run_into(FEEDS, output)
    np.testing.assert_array_equal(output, RIGHT)
    np.testing.assert_array_equal(engine.run(FEEDS), RIGHT)
    assert (engine.backend, engine.precision) == ("tensorrt 10.3.0", "int8")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
def test_a_bad_output_is_computed_again_and_from_then_on_elsewhere(
    value: float, world: World, engine: CheckedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    def spoil(place: NDArray[np.float32]) -> None:
        place[3 if value else slice(None)] = value

    world.faults.output = spoil
    output = np.zeros(8, np.float32)
    for _ in range(3):
        engine.run_into(FEEDS, output)
        np.testing.assert_array_equal(output, RIGHT)
        np.testing.assert_array_equal(engine.run(FEEDS), RIGHT)
    assert world.runs == 1, "it is never asked again"
    assert (engine.backend, engine.precision) == ("onnxruntime-cpu", "fp32")
    assert [record.levelno for record in caplog.records if record.name.endswith("checked")] == [logging.ERROR]


def test_a_failed_run_is_computed_again(world: World, engine: CheckedEngine) -> None:
    world.gpu.broken = "the launch timed out and was terminated"
    np.testing.assert_array_equal(engine.run(FEEDS), RIGHT)
    assert engine.backend == "onnxruntime-cpu"


def test_silence_that_was_asked_for_is_right(world: World) -> None:
    engine = CheckedEngine(
        on_gpu(world), lambda: OrtEngine(graphs.double(8)), audible=lambda feeds: bool(feeds["offset"][0])
    )
    silent: Feeds = {"x": np.zeros(8, np.float32), "offset": np.zeros(1, np.float32)}
    assert not engine.run(silent).any()
    assert engine.backend == "tensorrt 10.3.0"


class Wrong:
    backend = precision = "wrong"

    def run(self, feeds: Feeds) -> NDArray[np.float32]:
        return np.full(8, np.nan, np.float32)

    def run_into(self, feeds: Feeds, output: Samples) -> None:
        output.fill(np.nan)

    def close(self) -> None: ...


def test_when_the_safer_one_is_bad_too_it_is_an_error_and_no_loop() -> None:
    made: list[Engine] = []

    def safer() -> Engine:
        made.append(Wrong())
        return made[-1]

    engine = CheckedEngine(Wrong(), safer)
    for _ in range(3):
        with pytest.raises(EngineError, match="wrong wrong gave values that are no numbers"):
            engine.run(FEEDS)
    assert len(made) == 1


def test_wrong_inputs_condemn_nobody(engine: CheckedEngine) -> None:
    with pytest.raises(EngineError):
        engine.run({"x": np.zeros(8, np.float32)})
    np.testing.assert_array_equal(engine.run(FEEDS), RIGHT)
    assert engine.backend == "tensorrt 10.3.0"


def test_a_safer_engine_that_cannot_be_made_leaves_the_first() -> None:
    def safer() -> Engine:
        raise EngineError("voice", "cannot be loaded")

    engine = CheckedEngine(Wrong(), safer)
    for _ in range(2):
        with pytest.raises(EngineError, match="cannot be loaded"):
            engine.run(FEEDS)
    with suppress(EngineError):
        engine.close()


def test_sizes_that_there_are_no_engines_for() -> None:
    engine = SizedEngines({n: OrtEngine(graphs.double(n)) for n in (4, 8)}, by="x")
    np.testing.assert_array_equal(engine.run(FEEDS), RIGHT)
    with pytest.raises(EngineError, match="has engines for x of size 4, 8, not 5"):
        engine.run({"x": np.zeros(5, np.float32), "offset": np.zeros(1, np.float32)})
    engine.close()

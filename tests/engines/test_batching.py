"""Runs of several threads joined: who gets what, who waits for whom, and who fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field

import numpy as np
import pytest
from onnx import TensorProto, helper

from device.format import Samples
from engines.batching import Batcher, RowEngine
from engines.errors import EngineError
from engines.fixed_windows import WindowShape
from engines.precedence import Precedence
from engines.runtime.engine import Feeds
from engines.runtime.ort import OrtEngine

TIMEOUT_S = 60
SMALL = WindowShape(4, (0, 0), 1)
LARGE = WindowShape(6, (0, 0), 1)
POISON = 666.0


def doubling(frames: int, rows: int) -> bytes:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, frames])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, frames])
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8).SerializeToString()


class Engines:
    """Real engines, whose runs are remembered, and which fail where a row holds what they cannot take."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, int]] = []
        self.threads: set[int] = set()
        self.closed = 0
        self.entered = threading.Semaphore(0)
        self.proceed = threading.Event()
        self.proceed.set()
        self.raising: type[BaseException] = EngineError

    def make(self, shape: WindowShape, rows: int) -> OrtEngine:
        outer = self

        class Watched(OrtEngine):
            def run_into(self, feeds: Feeds, output: Samples) -> None:
                outer.runs.append((shape.frames, rows))
                outer.threads.add(threading.get_ident())
                outer.entered.release()
                assert outer.proceed.wait(TIMEOUT_S)
                if (feeds["x"] == POISON).any():
                    raise outer.raising("x", "cannot be computed")
                super().run_into(feeds, output)

            def close(self) -> None:
                outer.closed += 1
                super().close()

        return Watched(doubling(shape.frames, rows), threads=1)


@dataclass
class Row:
    """A thread that has one row computed."""

    engine: RowEngine
    value: float
    frames: int
    result: Samples | None = None
    error: BaseException | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._go, daemon=True)
        self.thread.start()

    def _go(self) -> None:
        try:
            self.result = self.engine.run({"x": np.full((1, self.frames), self.value, np.float32)})["pcm"]
        except BaseException as error:  # noqa: BLE001  looked at by the test
            self.error = error

    def wait(self) -> Row:
        self.thread.join(TIMEOUT_S)
        assert not self.thread.is_alive()
        return self


@pytest.fixture
def engines() -> Engines:
    return Engines()


Make = Callable[..., Batcher]


@pytest.fixture
def make(engines: Engines) -> Iterator[Make]:
    with ExitStack() as stack:

        def batcher(*, wait_s: float = TIMEOUT_S, members: int = 0, precedence: Precedence | None = None) -> Batcher:
            made = Batcher(
                lambda: nullcontext(engines.make),
                precedence or Precedence(),
                backend="test",
                precision="fp32",
                sizes=[2, 4],
                wait_s=wait_s,
            )
            stack.enter_context(closing(made))
            for _ in range(members):
                stack.enter_context(made.member())
            return made

        yield batcher
        engines.proceed.set()


def rows(batcher: Batcher, values: list[float], shape: WindowShape = SMALL) -> list[Row]:
    engine = RowEngine(batcher, shape, shape.frames)
    return [Row(engine, value, shape.frames) for value in values]


def check(row: Row) -> None:
    assert row.error is None
    np.testing.assert_array_equal(row.result, np.full((1, row.frames), 2 * row.value))


def test_all_that_may_come_are_one_batch(make: Make, engines: Engines) -> None:
    for row in rows(make(members=4), [1, 2, 3, 4]):
        check(row.wait())
    assert engines.runs == [(4, 4)]
    assert threading.get_ident() not in engines.threads


def test_a_batch_has_the_smallest_engine_that_holds_it(make: Make, engines: Engines) -> None:
    for row in rows(make(members=3), [1, 2, 3]):
        check(row.wait())
    assert engines.runs == [(4, 4)]


def test_one_alone_waits_for_nobody(make: Make, engines: Engines) -> None:
    check(rows(make(members=1), [5])[0].wait())
    assert engines.runs == [(4, 1)]


def test_whoever_does_not_come_is_waited_for_only_a_little(make: Make, engines: Engines) -> None:
    for row in rows(make(members=3, wait_s=0.02), [5]):
        check(row.wait())
    assert engines.runs == [(4, 1)]


def test_a_member_that_leaves_is_waited_for_no_longer(make: Make) -> None:
    batcher = make(members=1)
    with batcher.member():
        row = rows(batcher, [5])[0]
        row.thread.join(0.05)
        assert row.thread.is_alive()
    check(row.wait())


def test_more_than_fits_comes_in_several_batches(make: Make, engines: Engines) -> None:
    for row in rows(make(members=9, wait_s=0.2), [float(i) for i in range(9)]):
        check(row.wait())
    assert sum(count for _, count in engines.runs) >= 9
    assert len(engines.runs) == 3


def test_windows_of_another_size_are_a_batch_of_their_own(make: Make, engines: Engines) -> None:
    batcher = make(members=4, wait_s=0.2)
    for row in rows(batcher, [1, 2]) + rows(batcher, [3, 4], LARGE):
        check(row.wait())
    assert sorted(engines.runs) == [(4, 2), (6, 2)]


def test_a_row_that_cannot_be_computed_fails_alone(make: Make, engines: Engines) -> None:
    batcher = make(members=4)
    good, bad, *others = (row.wait() for row in rows(batcher, [1, POISON, 3, 4]))
    assert isinstance(bad.error, EngineError)
    for row in (good, *others):
        check(row)
    assert engines.runs == [(4, 4), (4, 1), (4, 1), (4, 1), (4, 1)]
    for row in rows(batcher, [1, 2, 3, 4]):
        check(row.wait())


def test_an_error_that_nobody_expected_reaches_all_who_wait(make: Make, engines: Engines) -> None:
    engines.raising = lambda *_: MemoryError()  # type: ignore[assignment]
    batcher = make(members=2)
    assert all(isinstance(row.wait().error, MemoryError) for row in rows(batcher, [POISON, 1]))
    assert isinstance(rows(batcher, [1])[0].wait().error, EngineError), "the thread is gone"


def test_nobody_is_forgotten_where_a_second_try_ends_it_all(make: Make, engines: Engines) -> None:
    errors = iter([EngineError("x", "cannot be computed"), MemoryError()])
    engines.raising = lambda *_: next(errors)  # type: ignore[assignment]
    waited = [row.wait() for row in rows(make(members=3), [POISON] * 3)]
    assert all(isinstance(row.error, MemoryError) for row in waited)


def test_a_batch_lets_urgent_ones_go_first(make: Make, engines: Engines) -> None:
    precedence = Precedence()
    batcher = make(members=2, precedence=precedence)
    with precedence.urgent():
        waiting = rows(batcher, [1, 2])
        assert not engines.entered.acquire(timeout=0.05)
    for row in waiting:
        check(row.wait())


def test_closing_ends_those_that_wait_after_the_batch_under_way(make: Make, engines: Engines) -> None:
    engines.proceed.clear()
    batcher = make(members=1)
    computed = rows(batcher, [1])[0]
    assert engines.entered.acquire(timeout=TIMEOUT_S)
    waiting = rows(batcher, [2])[0]
    closer = threading.Thread(target=batcher.close)
    closer.start()
    engines.proceed.set()
    closer.join(TIMEOUT_S)
    check(computed.wait())
    # It may have come before the closing: then it was computed, or else it was told.
    late = waiting.wait()
    assert late.result is not None or isinstance(late.error, EngineError)
    assert engines.closed == 1
    assert isinstance(rows(batcher, [3])[0].wait().error, EngineError)
    batcher.close()


def test_an_output_of_another_size_is_refused(make: Make) -> None:
    engine = RowEngine(make(members=1), SMALL, 4)
    with pytest.raises(EngineError, match="gives 4 samples"):
        engine.run_into({"x": np.zeros((1, 4), np.float32)}, np.zeros((1, 5), np.float32))

"""Windows of several utterances in one run of an engine.

Threads that render call an engine of one row each, as if it were theirs alone. One thread, which owns the engines of
several rows, collects what they ask for and gives each its row of the result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from device.format import Samples
from engines.errors import EngineError, SpeechError
from engines.fixed_windows import WindowShape
from engines.precedence import Precedence
from engines.runtime.engine import Engine, Feeds

BATCH_SIZES: Final = (1, 2, 4, 8)
"""Rows that there are engines for: a batch takes the smallest that holds it."""

WAIT_S: Final = 0.02
"""How long the first window waits for others; it is a hundred times as long when it is heard."""

MakeEngine = Callable[[WindowShape, int], Engine]
"""Makes the engine for windows of a shape and a number of rows. It is made and used in the batcher's thread."""

OpenEngines = Callable[[], AbstractContextManager[MakeEngine]]
"""Opens what engines are made on, such as a GPU: entered and left in the batcher's thread, engines closed before."""


@dataclass(slots=True, eq=False)
class _Request:
    shape: WindowShape
    feeds: Feeds
    output: Samples
    done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class Batcher:
    """Joins runs of one row, in a thread of its own. Thread-safe.

    As many windows wait as there are threads that render. Each gets its own result or error: a batch that fails is
    computed again row by row, so that a window which no engine can compute fails alone.
    """

    def __init__(
        self,
        engines: OpenEngines,
        precedence: Precedence,
        *,
        backend: str,
        precision: str,
        sizes: Sequence[int] = BATCH_SIZES,
        wait_s: float = WAIT_S,
    ) -> None:
        """Start the thread and open `engines` there; raises what that raises.

        Engines, which are of this backend and precision, are made when they are first needed.
        """
        self.backend: Final = backend
        self.precision: Final = precision
        self._precedence = precedence
        self._sizes = sorted({1, *sizes})
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._waiting: list[_Request] = []
        self._members = 0
        self._closed = False
        self._make: MakeEngine
        self._engines: dict[tuple[WindowShape, int], _Rows] = {}
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(engines, opened), name="batcher", daemon=True)
        self._thread.start()
        opened.result()

    @contextmanager
    def member(self) -> Iterator[None]:
        """Count the calling thread among those that may submit: once all of them have, nobody is waited for."""
        with self._changed:
            self._members += 1
        try:
            yield
        finally:
            with self._changed:
                self._members -= 1
                self._changed.notify_all()

    def compute(self, shape: WindowShape, feeds: Feeds, output: Samples) -> None:
        """Wait until one row is computed into `output`; raises what concerns this row."""
        request = _Request(shape, feeds, output)
        with self._changed:
            if self._closed:
                raise EngineError("batch", "is closed")
            self._waiting.append(request)
            self._changed.notify_all()
        request.done.wait()
        if request.error is not None:
            raise request.error

    def close(self) -> None:
        """End after the batch under way and free the engines; whoever waits gets EngineError. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self, engines: OpenEngines, opened: Future[None]) -> None:
        try:
            with engines() as make:
                self._make = make
                opened.set_result(None)
                self._serve()
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)

    def _serve(self) -> None:
        error: BaseException = EngineError("batch", "is closed")
        batch: list[_Request] = []
        try:
            while batch := self._collect():
                self._precedence.wait_turn()
                self._compute(batch)
        except BaseException as unexpected:  # noqa: BLE001  it is raised in the threads that wait, whose death is heard
            error = unexpected
        with self._changed:
            self._closed = True
            refused, self._waiting = [*batch, *self._waiting], []
        for request in [request for request in refused if not request.done.is_set()]:
            request.error = error
            request.done.set()
        for engine in self._engines.values():
            engine.close()

    def _collect(self) -> list[_Request]:
        """Take the oldest window and those that fit it, which may come a little later; nothing once closed."""
        most = self._sizes[-1]
        with self._changed:
            self._changed.wait_for(lambda: self._closed or bool(self._waiting))
            if self._closed:
                return []
            shape = self._waiting[0].shape

            def complete() -> bool:
                fitting = sum(request.shape == shape for request in self._waiting)
                return self._closed or fitting >= most or len(self._waiting) >= self._members

            self._changed.wait_for(complete, self._wait_s)
            batch = [request for request in self._waiting if request.shape == shape][:most]
            self._waiting = [request for request in self._waiting if request not in batch]
            return batch

    def _compute(self, batch: list[_Request]) -> None:
        try:
            self._engine(batch).run(batch)
        except SpeechError as error:
            if len(batch) > 1:
                for request in batch:
                    self._compute([request])
                return
            batch[0].error = error
        for request in batch:
            request.done.set()

    def _engine(self, batch: list[_Request]) -> _Rows:
        shape = batch[0].shape
        rows = next(size for size in self._sizes if size >= len(batch))
        key = (shape, rows)
        if key not in self._engines:
            self._engines[key] = _Rows(self._make(shape, rows), rows, batch[0])
        return self._engines[key]


class _Rows:
    """An engine of several rows, and memory for what goes in and out."""

    def __init__(self, engine: Engine, rows: int, example: _Request) -> None:
        self._engine = engine
        self._feeds = {name: np.zeros((rows, *row.shape[1:]), row.dtype) for name, row in example.feeds.items()}
        self._output = np.empty((rows, example.output.size), np.float32)

    def run(self, batch: list[_Request]) -> None:
        """Compute a row each; rows that are not used keep what they had, and nobody reads them."""
        for row, request in enumerate(batch):
            for name, array in self._feeds.items():
                array[row] = request.feeds[name][0]
        self._engine.run_into(self._feeds, self._output)
        for row, request in enumerate(batch):
            np.copyto(request.output.reshape(-1), self._output[row])

    def close(self) -> None:
        self._engine.close()


class RowEngine:
    """An `Engine` of one row that computes in a `Batcher`, for any number of threads."""

    def __init__(self, batcher: Batcher, shape: WindowShape, samples: int) -> None:
        """Compute windows of `shape`, which give so many samples."""
        self._batcher = batcher
        self._shape = shape
        self._samples = samples
        self.backend: Final = batcher.backend
        self.precision: Final = batcher.precision

    def run(self, feeds: Feeds) -> dict[str, NDArray[np.float32]]:
        """See `Engine.run`."""
        output = np.empty((1, self._samples), np.float32)
        self.run_into(feeds, output)
        return {"pcm": output}

    def run_into(self, feeds: Feeds, output: Samples) -> None:
        """See `Engine.run_into`."""
        if output.size != self._samples:
            raise EngineError("batch", f"gives {self._samples} samples, not {output.size}")
        self._batcher.compute(self._shape, feeds, output)

    def abandon(self) -> None:
        """See `Engine.abandon`. A batch is others' too."""

    def close(self) -> None:
        """Free nothing: the engines are the batcher's."""

"""Graphs on the CPU through ONNX Runtime: the only module that imports it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from device.format import Samples
from engines.errors import AbandonedError, EngineError

if TYPE_CHECKING:
    from engines.runtime.engine import Feeds


def _onnxruntime() -> Any:  # noqa: ANN401  it has no types
    """Import ONNX Runtime when the first graph is loaded: half a second that no other command shall pay."""
    # From 1.29 on it reports its use to its maker unless this is set before the import. Ours is not to report.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # noqa: PLC0415

    return onnxruntime


@contextmanager
def giving_back() -> Iterator[None]:
    """Have each run of this thread, within, give the memory of its session back to the system."""
    _THREAD.gives_back = True
    try:
        yield
    finally:
        _THREAD.gives_back = False


_THREAD: Final = threading.local()


class OrtEngine:
    """An `Engine` on ONNX Runtime's CPU provider.

    Several threads may run it at once. With `threads=1` a run is computed in the thread that asks for it.
    """

    backend = "onnxruntime-cpu"

    def __init__(
        self, model: Path | bytes, *, threads: int = 0, precision: str = "fp32", usual_bytes: int | None = None
    ) -> None:
        """Load a graph from a file or from its bytes; `threads` 0 means one per core. EngineError where it is none.

        `precision` is what the graph is written in. After a run whose inputs had more than `usual_bytes`, the memory
        that it took goes back to the system.
        """
        self.precision = precision
        onnxruntime = self._ort = _onnxruntime()
        self._name = model.name if isinstance(model, Path) else "graph"
        self._usual_bytes = usual_bytes
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or len(os.sched_getaffinity(0))
        options.inter_op_num_threads = 1
        # A session's threads go on spinning when its run is over, on the cores that the next session needs: without
        # this a vocoder window right after the acoustic part took twice as long (2 cores).
        options.add_session_config_entry("session.force_spinning_stop", "1")
        # Every length of text and window is a shape of its own; a memory plan kept for each is 70 MB after some
        # hundred of them and gains no time.
        options.enable_mem_pattern = False
        options.log_severity_level = 3  # its warnings are about what the exporter left behind; errors raise anyway
        source = str(model) if isinstance(model, Path) else model
        try:
            self._session: Any = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the binding raises bare subclasses of Exception, one per status code
            raise EngineError(self._name, f"cannot be loaded: {error}") from error
        self._outputs: list[str] = [item.name for item in self._session.get_outputs()]
        self._running: Any = None

    def run(self, feeds: Feeds) -> dict[str, NDArray[np.float32]]:
        """See `Engine.run`."""
        session = self._session_or_raise()
        options = self._options(feeds)
        try:
            values = session.run(self._outputs, dict(feeds), options)
        except self._failures() as error:
            raise self._error(error, options) from error
        return dict(zip(self._outputs, values, strict=True))

    def run_into(self, feeds: Feeds, output: Samples) -> None:
        """See `Engine.run_into`. Inputs and output are bound by address: nothing is copied."""
        session = self._session_or_raise()
        options = self._options(feeds)
        try:
            binding = session.io_binding()
            for name, array in feeds.items():
                binding.bind_cpu_input(name, array)
            binding.bind_output(self._outputs[0], "cpu", 0, np.float32, output.shape, output.ctypes.data)
            session.run_with_iobinding(binding, options)
        except self._failures() as error:
            raise self._error(error, options) from error

    def abandon(self) -> None:
        """See `Engine.abandon`. ONNX Runtime looks at this between two nodes, so within a few milliseconds."""
        running = self._running
        if running is not None:
            running.terminate = True

    def close(self) -> None:
        """See `Engine.close`."""
        self._session = None

    def _error(self, error: Exception, options: Any) -> EngineError:  # noqa: ANN401
        return AbandonedError(self._name) if options.terminate else EngineError(self._name, f"failed: {error}")

    def _options(self, feeds: Feeds) -> Any:  # noqa: ANN401
        """Give options for one run, which `abandon` can reach; one that comes between two runs reaches nobody."""
        options = self._running = self._ort.RunOptions()
        unusual = self._usual_bytes is not None and sum(array.nbytes for array in feeds.values()) > self._usual_bytes
        if unusual or getattr(_THREAD, "gives_back", False):
            options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        return options

    def _session_or_raise(self) -> Any:  # noqa: ANN401  onnxruntime has no types
        if self._session is None:
            raise EngineError(self._name, "is closed")
        return self._session

    def _failures(self) -> tuple[type[Exception], ...]:
        state = self._ort.capi.onnxruntime_pybind11_state
        return (RuntimeError, ValueError, TypeError, state.Fail, state.InvalidArgument, state.RuntimeException)


def evaluate(model: bytes, feeds: Feeds, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Run a graph once, as it is written, and give what the tensors `names` held. EngineError where it fails."""
    onnxruntime = _onnxruntime()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        inputs = {item.name for item in session.get_inputs()}
        values = session.run(list(names), {name: array for name, array in feeds.items() if name in inputs})
    except Exception as error:  # the binding raises bare subclasses of Exception, one per status code
        raise EngineError("graph", f"cannot be evaluated: {error}") from error
    return dict(zip(names, values, strict=True))

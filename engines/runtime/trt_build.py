"""Graphs compiled to TensorRT plans. A build takes minutes, and memory: it belongs in a process of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from device import memory_available
from engines.errors import EngineError
from engines.runtime.trt import binding, driver_errors, logger_of, started

if TYPE_CHECKING:
    from engines.runtime.trt import tensorrt

_WORKSPACE_SHARE: Final = 0.25
"""Of the memory that is available: on a Jetson the GPU's memory is the system's, and a greedy builder gets killed."""

_LARGEST_WORKSPACE: Final = 2**30
"""Bytes; the default voice's largest tensor has 12 MB, and more than this only serves wasteful tactics."""

_LEAST_MEMORY: Final = 700 * 2**20
"""Bytes that must be available: a build of the default voice's vocoder took 400 MB (TensorRT for RTX)."""

_TELLING: Final = 0.02
"""Of a build: before that much is done nobody can tell how long the rest takes."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is."""

    share: float
    """Of all steps, 0 to 1; never falls. Steps differ in length."""
    elapsed_s: float
    left_s: float | None
    """Seconds that are left if the rest goes as the beginning did; None while that cannot be told."""
    phase: str
    """TensorRT's own words for what it does."""


def build(
    graph: bytes,
    *,
    name: str,
    progress: Callable[[Progress], None] = lambda _: None,
    timing: bytes = b"",
    configure: Callable[[Any, tensorrt.IBuilderConfig], None] = lambda _trt, _config: None,
) -> tuple[bytes, bytes]:
    """Compile an ONNX graph of static shapes for the GPU of this machine; gives the plan and the timing cache.

    The network is strongly typed: each layer computes in the type that the graph says, quantised ones by Q/DQ.
    `timing` is the cache of an earlier build, which saves measuring the same layers again; one of another GPU or
    TensorRT counts as none. `progress` is called from TensorRT's threads, one call at a time; what it raises, an
    interrupt too, cancels the build and is raised here. `configure` may change the settings before the build.
    EngineError where TensorRT refuses the graph, or there is too little memory.
    """
    trt = binding()
    log = logger_of(trt)
    builder: tensorrt.Builder = started(trt.Builder, log)
    network = _parse(trt, builder, log, graph, name)
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, _workspace(name))
    # Layers that stay float32 do so for their precision, which TF32's ten bits would take away.
    config.clear_flag(trt.BuilderFlag.TF32)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED  # or nobody could tell the layers' types afterwards
    config.max_aux_streams = 0  # a vocoder is a chain; and one stream is what gets recorded
    cache = config.create_timing_cache(timing)
    if not config.set_timing_cache(cache, ignore_mismatch=False):
        cache = config.create_timing_cache(b"")
        config.set_timing_cache(cache, ignore_mismatch=False)
    monitor = _monitor_of(trt, _Watch(progress))
    config.progress_monitor = monitor
    configure(trt, config)
    plan: tensorrt.IHostMemory | None = builder.build_serialized_network(network, config)
    if monitor.watch.stopped_by is not None:
        raise monitor.watch.stopped_by
    if plan is None:
        raise EngineError(name, f"cannot be built by TensorRT {trt.__version__}: {log.reason()}")
    kept: tensorrt.IHostMemory | None = cache.serialize()
    return bytes(memoryview(plan)), b"" if kept is None else bytes(memoryview(kept))


def _parse(trt: Any, builder: tensorrt.Builder, log: Any, graph: bytes, name: str) -> tensorrt.INetworkDefinition:  # noqa: ANN401
    flags = trt.NetworkDefinitionCreationFlag
    # From TensorRT 11 on there are no others, and the flag may go.
    strongly_typed = getattr(flags, "STRONGLY_TYPED", None)
    network = builder.create_network(0 if strongly_typed is None else 1 << int(strongly_typed))
    parser: tensorrt.OnnxParser = trt.OnnxParser(network, log)
    if not parser.parse(graph):
        errors = [parser.get_error(i) for i in range(parser.num_errors)]
        told = "; ".join(f"{e.node_operator() or 'graph'} {e.node_name()}: {e.desc()}" for e in errors[:3])
        raise EngineError(name, f"is refused by TensorRT {trt.__version__}: {told or log.reason()}")
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        if min(tensor.shape[:], default=0) < 0:
            raise EngineError(name, f"cannot be built: its input {tensor.name} has no fixed shape")
    return network


def _workspace(name: str) -> int:
    with driver_errors(name):
        available = memory_available.available_bytes()
    if available < _LEAST_MEMORY:
        raise EngineError(
            name,
            f"cannot be built: it takes {_LEAST_MEMORY >> 20} MiB of memory and {available >> 20} are available; "
            "stop other programs, or add swap that is no zram",
        )
    return min(int(available * _WORKSPACE_SHARE), _LARGEST_WORKSPACE)


class _Watch:
    """Makes one figure of TensorRT's nested phases. Thread-safe."""

    def __init__(self, report: Callable[[Progress], None]) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._steps: dict[str, tuple[str | None, int, int]] = {}
        """Phase that goes on -> its parent, steps done, steps in all."""
        self._share = 0.0
        self.stopped_by: BaseException | None = None

    def start(self, phase: str, parent: str | None, steps: int) -> None:
        with self._lock:
            self._steps[phase] = (parent, 0, max(1, steps))
            self._tell(phase)

    def step(self, phase: str, done: int) -> bool:
        """Note that step `done`, counted from 0, is over. False: stop the build."""
        with self._lock:
            if phase in self._steps:
                parent, _, steps = self._steps[phase]
                self._steps[phase] = (parent, min(done + 1, steps), steps)
                self._tell(phase)
            return self.stopped_by is None

    def finish(self, phase: str) -> None:
        with self._lock:
            parent, _, _ = self._steps.pop(phase, (None, 0, 1))
            if parent is None and not self._steps:
                self._share = 1.0
            self._tell(phase)

    def _tell(self, phase: str) -> None:
        if self.stopped_by is not None:
            return
        roots = [p for p, (parent, _, _) in self._steps.items() if parent not in self._steps]
        done = sum(map(self._done, roots)) / len(roots) if roots else self._share
        self._share = max(self._share, min(1.0, done))
        elapsed = time.monotonic() - self._begun
        left = elapsed / self._share - elapsed if self._share >= _TELLING else None
        try:
            self._report(Progress(self._share, elapsed, left, phase))
        except BaseException as error:  # noqa: BLE001  an interrupt as well: it must not unwind TensorRT's frames
            self.stopped_by = error

    def _done(self, phase: str) -> float:
        _, done, steps = self._steps[phase]
        inside = [self._done(p) for p, (parent, _, _) in self._steps.items() if parent == phase]
        return min(1.0, (done + sum(inside)) / steps)


def _monitor_of(trt: Any, watch: _Watch) -> Any:  # noqa: ANN401  its base exists only once TensorRT is imported
    class Monitor(trt.IProgressMonitor):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self.watch = watch

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            watch.start(phase_name, parent_phase, num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            return watch.step(phase_name, step)

        def phase_finish(self, phase_name: str) -> None:
            watch.finish(phase_name)

    return Monitor()

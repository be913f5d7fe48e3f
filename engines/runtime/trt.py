"""Graphs on NVIDIA's GPUs through TensorRT 10 and 11: the only module that imports it.

A plan is a graph compiled for one GPU and one TensorRT, with static shapes. Inputs are copied into unified memory,
which takes microseconds; the output is written straight to the address that it is wanted at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from device.errors import DeviceError
from engines.errors import EngineError

if TYPE_CHECKING:
    import tensorrt

# `tensorrt` is for annotations elsewhere: the other modules of TensorRT's part import its types from here.
__all__ = ["Gpu", "Launchable", "Stream", "TensorRt", "binding", "driver_errors", "logger_of", "tensorrt"]

_LOG = logging.getLogger(__name__)

_MAJORS: Final = (10, 11)
"""What this code was written against; 8.x knows no strong typing, and its engines differ in much else."""


class Launchable(Protocol):
    """Recorded work of a stream (`device.cuda.Graph`)."""

    def launch(self) -> None:
        """Enqueue it on the stream that it was recorded from."""

    def close(self) -> None:
        """Free it. Idempotent."""


class Stream(Protocol):
    """A stream other than the default one (`device.cuda.Stream`)."""

    @property
    def handle(self) -> int:
        """As the driver knows it; never 0."""

    def synchronize(self) -> None:
        """Wait until all that was enqueued is done. Others run meanwhile."""


class Gpu(Protocol):
    """What an engine needs of one GPU (`device.cuda.Cuda`). DeviceError where the driver fails."""

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Allocate memory that both sides see."""

    def address_of(self, array: NDArray[Any]) -> int:
        """Give the GPU's address of an array in such memory; DeviceError for any other array."""

    def stream(self, *, urgent: bool) -> Stream:
        """Make a stream."""

    def capture(self, stream: Stream, enqueue: Callable[[], None]) -> Launchable | None:
        """Record what `enqueue` puts on `stream`, without running it; None where it cannot be recorded."""


def binding() -> Any:  # noqa: ANN401  a module; what comes out of it is annotated by whoever takes it
    """Import TensorRT when it is first needed. EngineError where there is none, or one that is too old."""
    try:
        import tensorrt as trt  # noqa: PLC0415
    except (ImportError, OSError) as error:
        raise EngineError("TensorRT", f"cannot be imported: {error}. {_INSTALL}") from error
    version = getattr(trt, "__version__", "")
    if not version:  # a folder of that name, such as type stubs leave behind
        raise EngineError("TensorRT", f"is not installed. {_INSTALL}")
    if int(version.split(".")[0]) not in _MAJORS:
        raise EngineError(
            "TensorRT", f"is version {version}; {' or '.join(map(str, _MAJORS))} is needed (JetPack 6 on)"
        )
    return trt


_INSTALL: Final = (
    "On a Jetson: apt install python3-libnvinfer, in a virtual environment made by /usr/bin/python3 with "
    "--system-site-packages"
)


def logger_of(trt: Any) -> Any:  # noqa: ANN401  its base exists only once TensorRT is imported
    """Give TensorRT a logger that passes its words on to ours and keeps the last error in `last_error`.

    TensorRT calls it from threads of its own. It must live as long as what was made with it.
    """

    class Log(trt.ILogger):  # type: ignore[misc, unused-ignore]
        last_error = ""

        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: tensorrt.ILogger.Severity, msg: str) -> None:
            if severity in (trt.ILogger.INTERNAL_ERROR, trt.ILogger.ERROR):
                self.last_error = msg
                _LOG.warning("TensorRT: %s", msg)
            else:
                _LOG.debug("TensorRT: %s", msg)

        def reason(self) -> str:
            """Give the last error for the end of a sentence, once."""
            said, self.last_error = self.last_error, ""
            return said or "TensorRT gives no reason"

    return Log()


class TensorRt:
    """TensorRT's runtime on one GPU. Made, used and closed by the thread that `gpu` belongs to."""

    def __init__(self, gpu: Gpu) -> None:
        """EngineError where there is no TensorRT that can be used."""
        self._trt = binding()
        self.version: Final[str] = self._trt.__version__
        self.gpu: Final = gpu
        with driver_errors("TensorRT"):
            self.stream: Final = gpu.stream(urgent=True)
        self._log = logger_of(self._trt)
        self._runtime: tensorrt.Runtime = self._trt.Runtime(self._log)
        self._room: NDArray[np.uint8] = np.empty(0, np.uint8)

    def room(self, size: int) -> NDArray[np.uint8]:
        """Give `size` bytes of unified memory for inputs and outputs. All engines share it: one runs at a time.

        It grows by doubling, as the driver's memory is freed only with the GPU's context.
        """
        if self._room.size < size:
            self._room = self.gpu.empty((max(size, 2 * self._room.size),), np.uint8)
        return self._room[:size]

    def deserialize(self, plan: bytes, name: str) -> tuple[tensorrt.ICudaEngine, tensorrt.IExecutionContext]:
        """Load a plan. EngineError where it is none for this GPU and version, or memory runs out."""
        engine: tensorrt.ICudaEngine | None = self._runtime.deserialize_cuda_engine(plan)
        if engine is None:
            raise EngineError(name, f"cannot be loaded: {self.reason()}")
        context: tensorrt.IExecutionContext | None = engine.create_execution_context()
        if context is None:
            raise EngineError(name, f"cannot be loaded, as memory for its layers is lacking: {self.reason()}")
        return engine, context

    def describe(self, engine: tensorrt.ICudaEngine) -> str:
        """Give what TensorRT tells of a plan's layers, as JSON (see `trt_inspect`)."""
        inspector: tensorrt.EngineInspector = engine.create_engine_inspector()
        return str(inspector.get_engine_information(self._trt.LayerInformationFormat.JSON))

    def reason(self) -> str:
        """Give TensorRT's last words for the end of a sentence."""
        text: str = self._log.reason()
        return text

    def is_input(self, engine: tensorrt.ICudaEngine, tensor: str) -> bool:
        """Tell an input from an output."""
        return bool(engine.get_tensor_mode(tensor) == self._trt.TensorIOMode.INPUT)

    def is_on_gpu(self, engine: tensorrt.ICudaEngine, tensor: str) -> bool:
        """Tell data from what decides on shapes, which TensorRT wants in ordinary memory."""
        return bool(engine.get_tensor_location(tensor) == self._trt.TensorLocation.DEVICE)


@contextmanager
def driver_errors(name: str) -> Iterator[None]:
    """Let what the driver refuses concern this graph."""
    try:
        yield
    except DeviceError as error:
        raise EngineError(name, f"failed: {error}") from error

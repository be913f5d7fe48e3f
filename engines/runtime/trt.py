"""Graphs on NVIDIA's GPUs through TensorRT 10 and 11: the only module that imports it.

A plan is a graph compiled for one GPU and one TensorRT, with static shapes. Inputs are copied into unified memory,
which takes microseconds; the output is written straight to the address that it is wanted at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from device.cuda import Cuda
from device.errors import DeviceError
from engines.errors import EngineError

if TYPE_CHECKING:
    import tensorrt

# `tensorrt` is for annotations elsewhere: the other modules of TensorRT's part import its types from here.
__all__ = ["ALIGNMENT", "NAME", "TensorRt", "binding", "driver_errors", "logger_of", "started", "tensorrt"]

_LOG = logging.getLogger(__name__)

NAME: Final = "tensorrt"
"""Begins what engines call themselves; the version follows."""

ALIGNMENT: Final = 256
"""Bytes: what TensorRT asks of the address of a tensor."""

_MAJORS: Final = (10, 11)
"""What this code was written against; 8.x knows no strong typing, and its engines differ in much else."""


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
            "TensorRT", f"is version {version}; {' or '.join(map(str, _MAJORS))} is needed (JetPack 6.1 on)"
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


def started(make: Callable[[Any], Any], log: Any) -> Any:  # noqa: ANN401  what it makes is annotated by whoever takes it
    """Make TensorRT's builder or runtime. EngineError where it does not start, as without a driver."""
    try:
        return make(log)
    except TypeError as error:  # all that the binding makes of a null pointer
        raise EngineError("TensorRT", f"does not start: {log.reason()}") from error


class TensorRt:
    """TensorRT's runtime on one GPU. Made, used and closed by the thread that `gpu` belongs to."""

    def __init__(self, gpu: Cuda, *, urgent: bool = True) -> None:
        """`urgent`: for speech that somebody waits for. EngineError where there is no TensorRT that can be used."""
        self._trt = binding()
        self.version: Final[str] = self._trt.__version__
        self.gpu: Final = gpu
        with driver_errors("TensorRT"):
            self.stream: Final = gpu.stream(urgent=urgent)
        self._log = logger_of(self._trt)
        self._runtime: tensorrt.Runtime | None = started(self._trt.Runtime, self._log)
        self._room: NDArray[np.uint8] = np.empty(0, np.uint8)

    def room(self, size: int) -> NDArray[np.uint8]:
        """Give `size` aligned bytes of unified memory for inputs and outputs. All engines share it: one runs at a time.

        It grows by doubling, as engines that are loaded already keep what they were given.
        """
        if self._room.size < size:
            memory = self.gpu.empty((max(size, 2 * self._room.size) + ALIGNMENT,), np.uint8)
            self._room = memory[-self.gpu.address_of(memory) % ALIGNMENT :]
        return self._room[:size]

    def deserialize(self, plan: bytes, name: str) -> tuple[tensorrt.ICudaEngine, tensorrt.IExecutionContext]:
        """Load a plan. EngineError where it is none for this GPU and version, or memory runs out."""
        if self._runtime is None:
            raise EngineError(name, "cannot be loaded: TensorRT is closed")
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

    def close(self) -> None:
        """Let go of TensorRT, after all engines and before the GPU's context. Idempotent."""
        self._runtime = None

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

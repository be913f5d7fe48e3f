"""An engine on TensorRT: a plan that is loaded."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from device.cuda_streams import Graph
from device.errors import DeviceError
from device.format import Samples
from engines.errors import EngineError
from engines.runtime.trt import ALIGNMENT, NAME, TensorRt, driver_errors

if TYPE_CHECKING:
    from engines.runtime.engine import Feeds
    from engines.runtime.trt import tensorrt

_LOG = logging.getLogger(__name__)

_MOST_RECORDED: Final = 16
"""Launches recorded per engine, one per buffer. A pool hands out first what came back last: speech begins in these."""

_ELEMENTS: Final[Mapping[str, DTypeLike]] = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "INT32": np.int32,
    "INT64": np.int64,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "BOOL": np.bool_,
}
"""By name, as the binding's own `nptype` fails with newer numpy."""


class TrtEngine:
    """An `Engine` on TensorRT. For the thread that its `TensorRt` belongs to.

    The first run is an ordinary one. From the second on, what TensorRT enqueues is recorded once per address of the
    output, a buffer of the pool, and then launched as a whole: some hundred kernel launches become one.
    """

    def __init__(self, owner: TensorRt, plan: bytes, *, name: str, precision: str) -> None:
        """Load a plan.

        EngineError where it is none for this GPU and version, its tensors are of a kind that no voice has, or memory
        runs out.
        """
        self.backend: Final = f"{NAME} {owner.version}"
        self.precision: Final = precision
        self._owner, self._name = owner, name
        engine, context = owner.deserialize(plan, name)
        self._engine: tensorrt.ICudaEngine | None = engine
        self._context: tensorrt.IExecutionContext | None = context
        self._inputs: dict[str, NDArray[Any]] = {}
        self._outputs: dict[str, NDArray[Any]] = {}
        with driver_errors(name):
            self._place_all(engine, context)
        self._recorded: dict[int, Graph] = {}
        self._warm = False
        self._recordable = True

    def _place_all(self, engine: tensorrt.ICudaEngine, context: tensorrt.IExecutionContext) -> None:
        tensors = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
        kinds = {tensor: self._kind(engine, tensor) for tensor in tensors}
        sizes = [-(-math.prod(shape) * element.itemsize // ALIGNMENT) * ALIGNMENT for shape, element in kinds.values()]
        room = self._owner.room(sum(sizes))
        for (tensor, (shape, element)), size in zip(kinds.items(), sizes, strict=True):
            array = room[: math.prod(shape) * element.itemsize].view(element).reshape(shape)
            room = room[size:]
            side = self._inputs if self._owner.is_input(engine, tensor) else self._outputs
            side[tensor] = array
            self._place(context, tensor, self._owner.gpu.address_of(array))

    def _kind(self, engine: tensorrt.ICudaEngine, tensor: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        shape, element = tuple(engine.get_tensor_shape(tensor)[:]), engine.get_tensor_dtype(tensor).name
        if min(shape, default=0) < 0 or not self._owner.is_on_gpu(engine, tensor):
            raise EngineError(
                self._name, f"cannot be loaded: its tensor {tensor} has no fixed shape, or decides on one"
            )
        if element not in _ELEMENTS:
            raise EngineError(self._name, f"cannot be loaded: its tensor {tensor} is of type {element}")
        return shape, np.dtype(_ELEMENTS[element])

    def run(self, feeds: Feeds) -> dict[str, NDArray[np.float32]]:
        """See `Engine.run`."""
        self._compute(feeds, *self._first_output())
        return {name: array.copy() for name, array in self._outputs.items()}

    def run_into(self, feeds: Feeds, output: Samples) -> None:
        """See `Engine.run_into`. Nothing is copied where `output` lies in the GPU's memory, as a pool's buffers do."""
        name, array = self._first_output()
        if output.dtype != array.dtype or output.size != array.size:
            raise EngineError(self._name, f"gives {array.size} samples, not {output.size}")
        if self._reachable(output):
            self._compute(feeds, name, output)
            return
        self._compute(feeds, name, array)
        np.copyto(output, array.reshape(output.shape))

    def layers(self) -> str:
        """Give what TensorRT tells of its layers, as JSON (see `trt_inspect`)."""
        if self._engine is None:
            raise EngineError(self._name, "is closed")
        return self._owner.describe(self._engine)

    def abandon(self) -> None:
        """See `Engine.abandon`. A run takes some milliseconds."""

    def close(self) -> None:
        """See `Engine.close`."""
        for recorded in self._recorded.values():
            try:
                recorded.close()
            except DeviceError as error:  # noqa: PERF203  a GPU gone bad refuses this too; it must not keep the rest
                _LOG.warning("%s: %s", self._name, error)
        self._recorded.clear()
        self._context = None  # first: it refers to the engine
        self._engine = None

    def _first_output(self) -> tuple[str, NDArray[Any]]:
        return next(iter(self._outputs.items()))

    def _reachable(self, output: Samples) -> bool:
        """Whether TensorRT may write there: unified memory, contiguous and aligned."""
        if not output.flags.c_contiguous:
            return False
        try:
            return self._owner.gpu.address_of(output) % ALIGNMENT == 0
        except DeviceError:
            return False

    def _compute(self, feeds: Feeds, name: str, output: NDArray[Any]) -> None:
        if self._context is None:
            raise EngineError(self._name, "is closed")
        self._feed(feeds)
        with driver_errors(self._name):
            self._enqueue(self._context, name, self._owner.gpu.address_of(output))
            self._owner.stream.synchronize()
        self._warm = True

    def _feed(self, feeds: Feeds) -> None:
        if feeds.keys() != self._inputs.keys():
            raise EngineError(self._name, f"takes {', '.join(self._inputs)}, not {', '.join(feeds) or 'nothing'}")
        for name, array in feeds.items():
            place = self._inputs[name]
            if array.dtype != place.dtype or array.shape != place.shape:
                raise EngineError(
                    self._name,
                    f"takes {name} as {place.dtype} {list(place.shape)}, not {array.dtype} {list(array.shape)}",
                )
            np.copyto(place, array)

    def _enqueue(self, context: tensorrt.IExecutionContext, name: str, address: int) -> None:
        recorded = self._recorded.get(address)
        if recorded is None:
            self._place(context, name, address)
            recorded = self._record(context, address)
        if recorded is not None:
            recorded.launch()
        elif not context.execute_async_v3(self._owner.stream.handle):
            raise EngineError(self._name, f"failed: {self._owner.reason()}")

    def _record(self, context: tensorrt.IExecutionContext, address: int) -> Graph | None:
        """Record a run, once a first one has let TensorRT allocate what it needs, which cannot be recorded."""
        if not self._warm or not self._recordable or len(self._recorded) >= _MOST_RECORDED:
            return None
        done: list[bool] = []
        recorded = self._owner.gpu.capture(
            self._owner.stream, lambda: done.append(context.execute_async_v3(self._owner.stream.handle))
        )
        if recorded is not None and done == [True]:
            self._recorded[address] = recorded
            return recorded
        if recorded is not None:
            recorded.close()
        self._recordable = False
        _LOG.info("%s cannot be recorded as a CUDA graph and runs without: %s", self._name, self._owner.reason())
        return None

    def _place(self, context: tensorrt.IExecutionContext, tensor: str, address: int) -> None:
        if not context.set_tensor_address(tensor, address):
            raise EngineError(self._name, f"failed: {self._owner.reason()}")

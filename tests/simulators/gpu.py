"""A GPU of ordinary memory: what engines need of `device.cuda`, with its rules and without its speed.

The GPU's addresses differ from the process's, so that one cannot pass for the other; what is put on a stream happens
when somebody waits for it, so that reading too early finds the old values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from device.errors import DeviceError

ALIGNMENT = 256
AWAY = 0x4000_0000_0000_0000
"""Between an address here and the GPU's address of the same byte."""


class SimulatedCudaError(DeviceError):
    """The driver's refusal."""


class Stream:
    def __init__(self, gpu: Gpu, handle: int) -> None:
        self.handle = handle
        self.capturing: list[Callable[[], None]] | None = None
        self.capture_is_valid = True
        self._gpu = gpu
        self._waiting: list[Callable[[], None]] = []

    def put(self, work: Callable[[], None]) -> None:
        """Enqueue, or record while capturing."""
        (self._waiting if self.capturing is None else self.capturing).append(work)

    def synchronize(self) -> None:
        while self._waiting:
            work = self._waiting.pop(0)
            if self._gpu.broken:
                raise SimulatedCudaError(self._gpu.broken)
            work()
        if self._gpu.broken:
            raise SimulatedCudaError(self._gpu.broken)


class Graph:
    def __init__(self, gpu: Gpu, stream: Stream, work: list[Callable[[], None]]) -> None:
        self._gpu, self._stream, self._work = gpu, stream, work
        self.closed = False

    def launch(self) -> None:
        assert not self.closed, "a closed graph was launched"
        self._gpu.launches += 1
        for work in self._work:
            self._stream.put(work)

    def close(self) -> None:
        self.closed = True


class Gpu:
    """Counts what is done with it; refuses memory beyond `limit`."""

    def __init__(self, *, limit: int = 2**30, capturable: bool = True) -> None:
        self.limit = limit
        self.capturable = capturable
        self.allocated = 0
        self.launches = 0
        self.graphs: list[Graph] = []
        self.streams: dict[int, Stream] = {}
        self.broken = ""
        """Why every further call fails, as after an illegal address."""
        self._memory: list[NDArray[np.uint8]] = []

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if self.allocated + size > self.limit:
            raise SimulatedCudaError(f"out of memory: {size} bytes")
        self.allocated += size
        raw = np.full(size + ALIGNMENT, 0xFF, np.uint8)  # NaN in every float
        start = -raw.ctypes.data % ALIGNMENT
        memory = raw[start : start + size]
        self._memory.append(memory)
        return memory.view(dtype).reshape(shape)

    def address_of(self, array: NDArray[Any]) -> int:
        address = array.ctypes.data
        self._find(address, array.nbytes)
        return address + AWAY

    def stream(self, *, urgent: bool) -> Stream:
        stream = Stream(self, handle=0x1000 + len(self.streams))
        self.streams[stream.handle] = stream
        return stream

    def capture(self, stream: Stream, enqueue: Callable[[], None]) -> Graph | None:
        assert not stream._waiting, "a capture began while work was waiting"
        stream.capturing, stream.capture_is_valid = [], self.capturable
        try:
            enqueue()
        finally:
            work, stream.capturing = stream.capturing, None
        if not stream.capture_is_valid:
            return None
        graph = Graph(self, stream, work)
        self.graphs.append(graph)
        return graph

    def bytes_at(self, address: int, size: int) -> NDArray[np.uint8]:
        """Give what lies at one of the GPU's addresses, for whoever runs there."""
        try:
            memory = self._find(address - AWAY, size)
        except SimulatedCudaError:
            self.broken = "an illegal memory access was encountered"
            raise SimulatedCudaError(self.broken) from None
        start = address - AWAY - memory.ctypes.data
        return memory[start : start + size]

    def _find(self, address: int, size: int) -> NDArray[np.uint8]:
        for memory in self._memory:
            start = memory.ctypes.data
            if start <= address and address + size <= start + memory.size:
                return memory
        raise SimulatedCudaError("this array does not lie in unified memory")

"""What the simulated TensorRT needs of a GPU, given by the real `device.cuda` on the simulated driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from cuda.bindings import driver
from numpy.typing import NDArray
from simulators.cuda_driver import SimulatedDriver

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DriverStream:
    """A stream by its handle: work is put on it as a host function, so that the driver orders and records it."""

    def __init__(self, handle: int, library: ctypes.CDLL, kept: list[object]) -> None:
        self.handle = handle
        self._library = library
        self.capture_is_valid = True
        self._kept = kept

    @property
    def capturing(self) -> bool | None:
        _, status = driver.cuStreamIsCapturing(self.handle)
        return True if int(status) else None

    def put(self, work: Callable[[], None]) -> None:
        callback = _CALLBACK(lambda _: work())
        self._kept.append(callback)  # a graph may call it at any later time
        # Not by the binding: up to 13.4 it frees what it keeps of a host function when that has run once.
        error = self._library.cuLaunchHostFunc(ctypes.c_void_p(self.handle), callback, None)
        assert error == 0, error


class DriverGpu:
    """In place of `simulators.gpu.Gpu`, for `World(gpu=...)`; engines are given the real `Cuda`."""

    def __init__(self, simulated: SimulatedDriver) -> None:
        self._driver = simulated
        self._kept: list[object] = []
        self.streams = _Streams(simulated.library, self._kept)

    def bytes_at(self, address: int, size: int) -> NDArray[np.uint8]:
        host = self._driver.host_of(address)
        assert host is not None, f"no memory at {address:#x}"
        assert self._driver.host_of(address + size - 1) == host + size - 1, "beyond the end of the memory"
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(host))


class _Streams(dict[int, DriverStream]):
    def __init__(self, library: ctypes.CDLL, kept: list[object]) -> None:
        super().__init__()
        self._library = library
        self._kept = kept

    def __missing__(self, handle: int) -> DriverStream:
        self[handle] = DriverStream(handle, self._library, self._kept)
        return self[handle]

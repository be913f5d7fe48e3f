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

    def __init__(self, handle: int, kept: list[object]) -> None:
        self.handle = handle
        self.capture_is_valid = True
        self._kept = kept

    @property
    def capturing(self) -> bool | None:
        _, status = driver.cuStreamIsCapturing(self.handle)
        return True if int(status) else None

    def put(self, work: Callable[[], None]) -> None:
        callback = _CALLBACK(lambda _: work())
        self._kept.append(callback)  # a graph may call it at any later time
        address = ctypes.cast(callback, ctypes.c_void_p).value
        (error,) = driver.cuLaunchHostFunc(self.handle, driver.CUhostFn(address), 0)
        assert int(error) == 0, error


class DriverGpu:
    """In place of `simulators.gpu.Gpu`, for `World(gpu=...)`; engines are given the real `Cuda`."""

    def __init__(self, simulated: SimulatedDriver) -> None:
        self._driver = simulated
        self._kept: list[object] = []
        self.streams = _Streams(self._kept)

    def bytes_at(self, address: int, size: int) -> NDArray[np.uint8]:
        host = self._driver.host_of(address)
        assert host is not None, f"no memory at {address:#x}"
        assert self._driver.host_of(address + size - 1) == host + size - 1, "beyond the end of the memory"
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(host))


class _Streams(dict[int, DriverStream]):
    def __init__(self, kept: list[object]) -> None:
        super().__init__()
        self._kept = kept

    def __missing__(self, handle: int) -> DriverStream:
        self[handle] = DriverStream(handle, self._kept)
        return self[handle]

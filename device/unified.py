"""Memory that a GPU and the processor both see, of the kind that suits the device.

* mapped: page-locked and mapped into the GPU's addresses. Works everywhere, needs no upkeep by the driver.
* managed: the driver keeps both sides coherent. Where the GPU has no concurrentManagedAccess (Jetson up to Orin), the
  processor must not touch any managed page while any kernel runs, or the process dies: never used there.
* registered: ordinary memory, page-locked afterwards. On Thor the only one of the three that the GPU's L2 caches.

NVIDIA, "CUDA for Tegra", section on memory types.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device.cuda_calls import Driver, call, errors_of


class MemoryKind(Enum):
    """How memory comes to be seen by both sides."""

    MAPPED = "mapped"
    MANAGED = "managed"
    REGISTERED = "registered"


def kinds_for(driver: Driver, *, concurrent_managed_access: bool) -> list[MemoryKind]:
    """Say which kinds may be used, the one that works everywhere first."""
    # Without cuda.bindings nothing can be registered (PyCUDA's register_host_memory has crashed since 2024.1, its issue
    # 459, as it sets an array's base twice) nor measured.
    several = concurrent_managed_access and driver.bindings is not None
    return list(MemoryKind) if several else [MemoryKind.MAPPED]


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Unified memory. To be freed by the thread that allocated it, once nobody reads `memory` any more."""

    memory: NDArray[np.uint8]
    """All of it, as the processor sees it. Begins at a page."""
    host_address: int
    device_address: int
    free: Callable[[], object]

    def place_of(self, host_address: int, size_bytes: int) -> int | None:
        """Give the device's address of memory that lies in here, else None."""
        offset = host_address - self.host_address
        inside = offset >= 0 and offset + size_bytes <= self.memory.nbytes
        return self.device_address + offset if inside else None


def address(array: NDArray[Any]) -> int:
    """Give the address of an array's first element; quicker than `array.ctypes.data`."""
    place: int = array.__array_interface__["data"][0]
    return place


def allocate(driver: Driver, kind: MemoryKind, size_bytes: int) -> Allocation:
    """Allocate in the current context. CudaError where the driver refuses."""
    if kind is MemoryKind.REGISTERED:
        return _registered(driver.bindings, size_bytes)
    pycuda = driver.pycuda
    with errors_of(pycuda):
        if kind is MemoryKind.MAPPED:
            memory = pycuda.pagelocked_empty(size_bytes, np.uint8, mem_flags=pycuda.host_alloc_flags.DEVICEMAP)
        else:
            memory = pycuda.managed_empty(size_bytes, np.uint8, mem_flags=pycuda.mem_attach_flags.GLOBAL)
        base = memory.base
        # Kept by name: the base of a view is the array, not the allocation. And freed by name: what the garbage
        # collector finds after the context has gone, or in another thread, PyCUDA does not free at all.
        return Allocation(memory, address(memory), *_addressed(base.get_device_pointer, base.free))


def _addressed(device_pointer: Callable[[], Any], free: Callable[[], object]) -> tuple[int, Callable[[], object]]:
    """Give the device's address of new memory, and `free`, which is called at once where there is no address."""
    with ExitStack() as on_error:
        on_error.callback(free)
        place = int(device_pointer())
        on_error.pop_all()
        return place, free


def _registered(bindings: Any, size_bytes: int) -> Allocation:  # noqa: ANN401  a module without types
    # Whole pages, as some drivers insist; private ones, as malloc has them.
    size = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    place = address(pages)
    call(bindings.cuMemHostRegister, place, pages.nbytes, bindings.CU_MEMHOSTREGISTER_DEVICEMAP)
    addressed = _addressed(
        lambda: call(bindings.cuMemHostGetDevicePointer, place, 0), lambda: call(bindings.cuMemHostUnregister, place)
    )
    return Allocation(pages[:size_bytes], place, *addressed)

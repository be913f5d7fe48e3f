"""One GPU for one thread: its primary context, and the memory, streams and graphs in it.

The primary context is the one that TensorRT uses too. PyCUDA keeps a stack of contexts per thread and aborts the
process if that is not empty when the thread ends, so the thread that made a `Cuda` closes it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from device import cuda_probe, memory_available
from device.cuda_calls import Driver, call, errors_of
from device.cuda_streams import Graph, Stream, make_stream, record
from device.errors import CudaError
from device.memory import ALIGNMENT, ArenaPool, arena_bytes
from device.unified import Allocation, MemoryKind, address, allocate, kinds_for

RESERVE_BYTES: Final = 256 * 2**20
"""What an allocation leaves to the rest of the system by default. Linux on a board without a desktop runs in that."""

LAST_READERS_S: Final = 5.0
"""How long `Cuda.close` waits for holders of buffers. A player has stopped within a period, 20 ms, of being told to."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Traits:
    """What the driver says of a GPU."""

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    integrated: bool
    """It shares the system's memory, as on every Jetson."""
    concurrent_managed_access: bool
    """The processor may touch managed memory while a kernel runs."""
    pageable_memory_access: bool
    total_bytes: int


class Cuda:
    """A GPU's primary context. Made, used and closed by one thread; buffers of its pools are for any thread."""

    def __init__(
        self, ordinal: int = 0, *, reserve_bytes: int = RESERVE_BYTES, meminfo: Path = memory_available.MEMINFO
    ) -> None:
        """Take GPU number `ordinal`. CudaError where there is no driver, no such GPU or no PyCUDA.

        No allocation leaves the system less than `reserve_bytes` of the MemAvailable that `meminfo` tells.
        """
        self._driver = load_driver()
        self._owner = threading.get_ident()
        self._reserve_bytes = reserve_bytes
        self._meminfo = meminfo
        self._closed = False
        self._allocations: list[Allocation] = []
        self._pools: list[tuple[ArenaPool, Allocation]] = []
        self._streams: list[Stream] = []
        self._graphs: list[Graph] = []
        self.refusal = self._driver.limits
        """Why the last `capture` gave no graph."""
        if self.refusal:
            _log.warning("%s", self.refusal)
        pycuda = self._driver.pycuda
        with errors_of(pycuda):
            pycuda.init()
            device = pycuda.Device(ordinal)
            self.traits = _traits(pycuda, device)
            self._context = device.retain_primary_context()
            self._context.push()
        with ExitStack() as on_error:
            on_error.callback(self._leave_context)
            self.memory_kind, self.memory_reason = self._choose_kind()
            on_error.pop_all()

    def _choose_kind(self) -> tuple[MemoryKind, str]:
        kinds = kinds_for(self._driver, concurrent_managed_access=self.traits.concurrent_managed_access)
        if len(kinds) == 1:
            return kinds[0], "the only kind that this GPU and these bindings allow"
        try:
            times = cuda_probe.measure(self._driver, kinds)
        except CudaError as error:
            return kinds[0], f"not measured: {error}"
        figures = ", ".join(f"{kind.value} {seconds * 1e6:.0f} us" for kind, seconds in times.items())
        return cuda_probe.choose(times), f"measured: {figures}"

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Allocate an array that the GPU sees too, begun and padded to ALIGNMENT. Contents are undefined.

        It lives until `free` or `close`: whoever touches it later ends the process. MemoryLowError before the driver
        is asked, CudaError where it refuses.
        """
        wanted = np.dtype(dtype)
        size = prod(shape) if isinstance(shape, tuple) else shape
        allocation = self._allocate(size * wanted.itemsize)
        self._allocations.append(allocation)
        return allocation.memory[: size * wanted.itemsize].view(wanted).reshape(shape)

    def free(self, array: NDArray[Any]) -> None:
        """Free an array that `empty` made (not a part of it), once no work of the GPU uses it. CudaError otherwise."""
        self._check()
        start = address(array)
        allocation = next((a for a in self._allocations if a.host_address == start), None)
        if allocation is None:
            raise CudaError("free", "the array is not one of empty()")
        self._allocations.remove(allocation)
        allocation.free()

    def address_of(self, array: NDArray[Any]) -> int:
        """Give the GPU's address of an array, or of a view of one, in memory of ours; CudaError for any other."""
        self._check()
        start = address(array)
        pools = (allocation for _, allocation in self._pools)
        for allocation in (*self._allocations, *pools):
            place = allocation.place_of(start, array.nbytes)
            if place is not None:
                return place
        raise CudaError("address_of", "the array lies outside the memory that the GPU sees")

    def buffer_pool(self, *, buffers: int, capacity: int, limit_bytes: int) -> ArenaPool:
        """Make a `BufferPool` that the GPU writes into; PoolTooLargeError beyond `limit_bytes`, else as `empty`.

        To be closed, and its buffers released, before `close`.
        """
        allocation = self._allocate(arena_bytes(buffers=buffers, capacity=capacity, limit_bytes=limit_bytes))
        allocation.memory.fill(0)  # no page is touched for the first time while somebody listens
        pool = ArenaPool(allocation.memory, buffers=buffers, capacity=capacity)
        self._pools.append((pool, allocation))
        return pool

    def memory(self) -> tuple[int, int]:
        """Give how many bytes are free, and how many there are: by the driver's account, of all programs together."""
        self._check()
        with errors_of(self._driver.pycuda):
            free, total = self._driver.pycuda.mem_get_info()
        return int(free), int(total)

    def stream(self, *, urgent: bool) -> Stream:
        """Make a stream that waits for no other; `urgent` for speech that somebody waits for."""
        self._check()
        stream = make_stream(self._driver, urgent=urgent)
        self._streams = [*(one for one in self._streams if not one.closed), stream]
        return stream

    def capture(self, stream: Stream, enqueue: Callable[[], None]) -> Graph | None:
        """Record what `enqueue` puts on `stream`, without running it; None, and why in `refusal`, where that fails.

        Enqueue the same work once before, and wait for it: what it does only the first time cannot be recorded. What
        `enqueue` raises itself is passed on, but for CudaError, which is a refusal.
        """
        self._check()
        if self._driver.bindings is None:
            return None
        try:
            graph = record(self._driver.bindings, stream, enqueue)
        except CudaError as error:
            self.refusal = str(error)
            return None
        self._graphs = [*(one for one in self._graphs if not one.closed), graph]
        return graph

    def close(self) -> None:
        """Wait for the work of its streams, free everything and leave the context. Idempotent.

        A buffer that is still held after LAST_READERS_S keeps its memory, and the context, until the process ends;
        CudaError tells so. So does a failure of the driver, after all the rest has been done.
        """
        if self._closed:
            return
        self._check()
        self._closed = True
        for pool, _ in self._pools:
            pool.close()
        held = [allocation for pool, allocation in self._pools if not pool.wait_until_unused(LAST_READERS_S)]
        with ExitStack() as last_to_first:
            last_to_first.callback(self._abandon_context if held else self._leave_context)
            for allocation in [*self._allocations, *(a for _, a in self._pools if a not in held)]:
                last_to_first.callback(allocation.free)
            for stream in self._streams:
                last_to_first.callback(stream.close)
            for graph in self._graphs:
                last_to_first.callback(graph.close)
        if held:
            raise CudaError("close", "buffers are still held", "whoever plays or encodes must release them first")

    def _check(self) -> None:
        if threading.get_ident() != self._owner:
            raise CudaError("thread", "called by another thread than the one that made it")
        if self._closed:
            raise CudaError("context", "it is closed")

    def _allocate(self, size_bytes: int) -> Allocation:
        self._check()
        padded = max(1, -(-size_bytes // ALIGNMENT)) * ALIGNMENT
        memory_available.require(padded, reserve_bytes=self._reserve_bytes, meminfo=self._meminfo)
        return allocate(self._driver, self.memory_kind, padded)

    def _leave_context(self) -> None:
        pycuda, bindings = self._driver.pycuda, self._driver.bindings
        with errors_of(pycuda), ExitStack() as last_to_first:
            last_to_first.callback(self._context.detach)
            if bindings is not None:
                # PyCUDA takes for granted that releasing a context pops it. The driver does not pop the primary one.
                call(bindings.cuCtxPopCurrent)

    def _abandon_context(self) -> None:
        with errors_of(self._driver.pycuda):
            self._context.pop()
        _ABANDONED.append(self)


_ABANDONED: Final[list[Cuda]] = []
"""Whose memory somebody may still read."""


def load_driver() -> Driver:
    """Import the bindings when they are first needed. CudaError where there is no PyCUDA or no driver."""
    try:
        from pycuda import driver as pycuda  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CudaError("import pycuda", "not installed", "pip install 'speakd[jetson]'") from error
    except ImportError as error:
        raise CudaError("import pycuda", str(error), _import_advice(str(error))) from error
    try:
        from cuda.bindings import driver as bindings  # noqa: PLC0415
    except ImportError as error:
        return Driver(pycuda, None, f"streams have no priority and work is not recorded as graphs: {error}")
    return Driver(pycuda, bindings)


def _import_advice(reason: str) -> str:
    if "libcuda" in reason:
        return "is NVIDIA's driver installed?"
    return "rebuild it for this driver and numpy: pip install --force-reinstall --no-deps --no-cache-dir pycuda"


def _traits(pycuda: Any, device: Any) -> Traits:  # noqa: ANN401  a module without types
    names = pycuda.device_attribute
    return Traits(
        name=device.name(),
        compute_capability=device.compute_capability(),
        multiprocessors=device.get_attribute(names.MULTIPROCESSOR_COUNT),
        integrated=bool(device.get_attribute(names.INTEGRATED)),
        concurrent_managed_access=bool(device.get_attribute(names.CONCURRENT_MANAGED_ACCESS)),
        pageable_memory_access=bool(device.get_attribute(names.PAGEABLE_MEMORY_ACCESS)),
        total_bytes=device.total_memory(),
    )

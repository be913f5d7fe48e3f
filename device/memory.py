"""Sample memory: allocated once, aligned, bounded, reused for ever.

An engine writes into a `Buffer`; the player and the encoder read the same addresses; when the last of them
has released it, the buffer is free again. A pool that runs dry makes the engine wait: that is the back-pressure.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from device.errors import BufferOwnershipError, PoolClosedError, PoolExhaustedError, PoolTooLargeError
from device.format import Samples

ALIGNMENT: Final = 128
"""Bytes. One cache line of Jetson's GPU: two sides writing into one such line cost Thor's GPU a factor of 2.8."""

SAMPLE_BYTES: Final = 4
"""Of a float32."""


class Buffer:
    """A fixed stretch of sample memory with a reference count.

    `BufferPool.acquire` hands it out with one reference. Each further reader calls `retain` before the buffer
    is passed to it and `release` when done; at zero it returns to its pool. Thread-safe.
    """

    __slots__ = ("_give_back", "_lock", "_references", "_samples", "address")

    def __init__(self, samples: Samples, give_back: Callable[[Buffer], None]) -> None:
        """Own the memory `samples`; call `give_back` at the last release."""
        self._give_back = give_back
        self._samples = samples
        self._references = 0
        self._lock = threading.Lock()
        self.address: Final = int(samples.ctypes.data)
        """Where the first sample lies, in this process's address space."""

    @property
    def samples(self) -> Samples:
        """The whole memory, shape [capacity]. Refused once nobody holds the buffer."""
        if self._references == 0:
            raise BufferOwnershipError("its samples were asked for after the last release")
        return self._samples

    def retain(self) -> None:
        """Add a reader. Only a holder may do so."""
        with self._lock:
            if self._references == 0:
                raise BufferOwnershipError("retained after the last release")
            self._references += 1

    def release(self) -> None:
        """Drop one reference; the last one gives the buffer back."""
        with self._lock:
            if self._references == 0:
                raise BufferOwnershipError("released more often than retained")
            self._references -= 1
            last = self._references == 0
        if last:
            self._give_back(self)

    def hand_out(self) -> None:
        """Give it its first reference. Only its pool may do so, with a buffer that nobody holds."""
        if self._references:
            raise BufferOwnershipError("handed out while somebody holds it")
        self._references = 1


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """Consecutive frames of one utterance: a view into a buffer, never a copy.

    Whoever holds the chunk holds one reference to its buffer and releases it.
    """

    buffer: Buffer
    samples: Samples
    """Shape [frames], inside `buffer`."""

    def release(self) -> None:
        """Give up this holder's reference."""
        self.buffer.release()


class BufferPool(Protocol):
    """Buffers of one size. Implementations: host memory here; unified memory of a GPU (`device.cuda`)."""

    capacity: int
    """Frames per buffer."""
    size: int
    """How many buffers there are."""

    @property
    def free(self) -> int:
        """How many buffers nobody holds."""

    def acquire(self, timeout_s: float) -> Buffer:
        """Wait for a free buffer; PoolExhaustedError after `timeout_s`, PoolClosedError once closed."""

    def close(self) -> None:
        """Wake all who wait, refuse further use. Idempotent."""


def arena_bytes(*, buffers: int, capacity: int, limit_bytes: int) -> int:
    """Say how much aligned memory a pool takes; PoolTooLargeError where that exceeds `limit_bytes`."""
    wanted = buffers * _stride(capacity)
    if wanted > limit_bytes:
        raise PoolTooLargeError(wanted, limit_bytes)
    return wanted


def _stride(capacity: int) -> int:
    """Bytes from one buffer to the next: no cache line holds samples of two."""
    return -(-capacity * SAMPLE_BYTES // ALIGNMENT) * ALIGNMENT


class ArenaPool:
    """A `BufferPool` in one stretch of memory, whatever its kind. Thread-safe."""

    def __init__(self, arena: NDArray[np.uint8], *, buffers: int, capacity: int) -> None:
        """Divide `arena`, which begins at a multiple of ALIGNMENT and has the size that `arena_bytes` says."""
        self.capacity = capacity
        self.size = buffers
        stride = _stride(capacity)
        self._buffers = [
            Buffer(arena[i * stride :][: capacity * SAMPLE_BYTES].view(np.float32), self._take_back)
            for i in range(buffers)
        ]
        self._free = list(self._buffers)
        self._changed = threading.Condition()
        self._closed = False

    @property
    def free(self) -> int:
        """How many buffers nobody holds."""
        return len(self._free)

    def acquire(self, timeout_s: float) -> Buffer:
        """See `BufferPool.acquire`."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._closed or bool(self._free), timeout_s):
                raise PoolExhaustedError(timeout_s)
            if self._closed:
                raise PoolClosedError
            buffer = self._free.pop()
            buffer.hand_out()
            return buffer

    def close(self) -> None:
        """See `BufferPool.close`. The memory stays as long as its owner keeps it."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait_until_unused(self, timeout_s: float) -> bool:
        """Wait, after `close`, until the last holder has released; False after `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._free) == self.size, timeout_s)

    def _take_back(self, buffer: Buffer) -> None:
        with self._changed:
            self._free.append(buffer)
            self._changed.notify()


class HostBufferPool(ArenaPool):
    """A `BufferPool` in ordinary memory, which lives until the last view of it is gone."""

    def __init__(self, *, buffers: int, capacity: int, limit_bytes: int) -> None:
        """Allocate `buffers` buffers of `capacity` frames; PoolTooLargeError where they exceed `limit_bytes`."""
        wanted = arena_bytes(buffers=buffers, capacity=capacity, limit_bytes=limit_bytes)
        memory = np.zeros(wanted + ALIGNMENT, dtype=np.uint8)
        start = -int(memory.ctypes.data) % ALIGNMENT
        super().__init__(memory[start : start + wanted], buffers=buffers, capacity=capacity)

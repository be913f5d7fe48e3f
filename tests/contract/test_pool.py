"""What `device.memory.BufferPool` promises, on every implementation there is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device.cuda import Cuda
from device.errors import BufferOwnershipError, PoolClosedError, PoolExhaustedError, PoolTooLargeError
from device.memory import ALIGNMENT, AudioChunk, Buffer, BufferPool, HostBufferPool
from device.unified import MemoryKind

MakePool: TypeAlias = Callable[..., BufferPool]

BUFFERS = 4
CAPACITY = 1000  # 4000 bytes: not a multiple of the alignment
LIMIT = 1 << 20
FREE_AFTER_S = 0.05


@pytest.fixture(params=["host", "mapped", "managed", "registered"], scope="module")
def make_pool(request: pytest.FixtureRequest) -> Iterator[MakePool]:
    """Give a function that makes a pool: in ordinary memory, or in each kind that a GPU shares."""
    made: list[Any] = []

    def make(*, buffers: int = BUFFERS, capacity: int = CAPACITY, limit_bytes: int = LIMIT) -> BufferPool:
        made.append(implementation(buffers=buffers, capacity=capacity, limit_bytes=limit_bytes))
        pool: BufferPool = made[-1]
        return pool

    if request.param == "host":
        implementation: Callable[..., BufferPool] = HostBufferPool
        yield make
        return
    request.getfixturevalue("cuda_driver")
    with closing(Cuda()) as cuda:
        cuda.memory_kind = MemoryKind(request.param)
        implementation = cuda.buffer_pool
        yield make
        for pool in made:
            give_back(pool)


def give_back(pool: Any) -> None:  # noqa: ANN401  any implementation
    """Release what a test has left held."""
    for buffer in set(pool._buffers) - set(pool._free):
        while buffer not in pool._free:
            buffer.release()


@pytest.fixture
def pool(make_pool: MakePool) -> BufferPool:
    return make_pool()


def take_all(pool: BufferPool) -> list[Buffer]:
    return [pool.acquire(0) for _ in range(pool.size)]


class TestBufferPool:
    def test_tells_its_size(self, pool: BufferPool) -> None:
        assert (pool.size, pool.capacity, pool.free) == (BUFFERS, CAPACITY, BUFFERS)

    def test_buffers_are_aligned_float_memory_of_the_capacity(self, pool: BufferPool) -> None:
        for buffer in take_all(pool):
            assert buffer.samples.shape == (CAPACITY,)
            assert buffer.samples.dtype == np.float32
            assert buffer.address == buffer.samples.ctypes.data
            assert buffer.address % ALIGNMENT == 0

    def test_buffers_share_no_memory(self, pool: BufferPool) -> None:
        buffers = take_all(pool)
        for number, buffer in enumerate(buffers):
            buffer.samples.fill(number)
        for number, buffer in enumerate(buffers):
            assert (buffer.samples == number).all()
        addresses = sorted(buffer.address for buffer in buffers)
        # No cache line of the GPU holds samples of two buffers.
        assert min(np.diff(addresses)) >= -(-CAPACITY * 4 // ALIGNMENT) * ALIGNMENT

    def test_memory_is_reused(self, pool: BufferPool) -> None:
        buffers = take_all(pool)
        addresses = {buffer.address for buffer in buffers}
        for buffer in buffers:
            buffer.release()
        assert {buffer.address for buffer in take_all(pool)} == addresses

    def test_an_empty_pool_says_so_after_the_time_given(self, pool: BufferPool) -> None:
        take_all(pool)
        began = time.monotonic()
        with pytest.raises(PoolExhaustedError) as caught:
            pool.acquire(FREE_AFTER_S)
        assert FREE_AFTER_S <= time.monotonic() - began < FREE_AFTER_S + 5
        assert caught.value.waited_s == FREE_AFTER_S

    def test_who_waits_gets_the_buffer_that_becomes_free(self, pool: BufferPool) -> None:
        buffers = take_all(pool)
        timer = threading.Timer(FREE_AFTER_S, buffers[2].release)
        timer.start()
        began = time.monotonic()
        assert pool.acquire(10).address == buffers[2].address
        assert time.monotonic() - began < 5
        timer.join()

    def test_each_of_several_waiters_gets_one(self, pool: BufferPool) -> None:
        buffers = take_all(pool)
        got: list[int] = []
        threads = [threading.Thread(target=lambda: got.append(pool.acquire(10).address)) for _ in range(BUFFERS)]
        for thread in threads:
            thread.start()
        for buffer in buffers:
            buffer.release()
        for thread in threads:
            thread.join(10)
        assert sorted(got) == sorted(buffer.address for buffer in buffers)

    def test_the_last_holder_frees(self, pool: BufferPool) -> None:
        buffer = pool.acquire(0)
        buffer.retain()
        chunk = AudioChunk(buffer, buffer.samples[:960])
        chunk.release()
        assert pool.free == BUFFERS - 1
        assert chunk.samples.ctypes.data == buffer.address
        buffer.release()
        assert pool.free == BUFFERS

    @pytest.mark.parametrize("misuse", [Buffer.release, Buffer.retain, lambda buffer: buffer.samples])
    def test_refuses_who_holds_nothing(self, pool: BufferPool, misuse: Callable[[Buffer], object]) -> None:
        buffer = pool.acquire(0)
        buffer.release()
        with pytest.raises(BufferOwnershipError):
            misuse(buffer)
        assert pool.free == BUFFERS

    def test_close_wakes_who_waits_and_refuses_who_comes(self, pool: BufferPool) -> None:
        take_all(pool)
        timer = threading.Timer(FREE_AFTER_S, pool.close)
        timer.start()
        began = time.monotonic()
        with pytest.raises(PoolClosedError):
            pool.acquire(10)
        assert time.monotonic() - began < 5
        timer.join()
        pool.close()
        with pytest.raises(PoolClosedError):
            pool.acquire(0)

    def test_a_buffer_outlives_the_closing_of_its_pool(self, pool: BufferPool) -> None:
        buffer = pool.acquire(0)
        pool.close()
        buffer.samples.fill(0.5)
        buffer.release()

    def test_a_closed_pool_refuses_although_buffers_are_free(self, pool: BufferPool) -> None:
        pool.close()
        with pytest.raises(PoolClosedError):
            pool.acquire(0)

    def test_keeps_to_the_memory_limit(self, make_pool: MakePool) -> None:
        aligned = 4096
        make_pool(buffers=2, capacity=1001, limit_bytes=2 * aligned)
        with pytest.raises(PoolTooLargeError) as caught:
            make_pool(buffers=2, capacity=1001, limit_bytes=2 * aligned - 1)
        assert (caught.value.wanted_bytes, caught.value.limit_bytes) == (2 * aligned, 2 * aligned - 1)
        assert "memory.pinned_limit_mb" in str(caught.value)

    @settings(deadline=None)  # to page-lock memory takes as long as the system likes
    @given(steps=st.lists(st.tuples(st.sampled_from(["acquire", "retain", "release"]), st.integers(0, 99))))
    def test_counts_right_in_any_order(self, make_pool: MakePool, steps: list[tuple[str, int]]) -> None:
        pool = make_pool()
        holders: list[Buffer] = []
        for step, choice in steps:
            held = {id(buffer) for buffer in holders}
            if step == "acquire":
                if len(held) == pool.size:
                    with pytest.raises(PoolExhaustedError):
                        pool.acquire(0)
                else:
                    buffer = pool.acquire(0)
                    assert id(buffer) not in held
                    holders.append(buffer)
            elif holders and step == "retain":
                buffer = holders[choice % len(holders)]
                buffer.retain()
                holders.append(buffer)
            elif holders:
                holders.pop(choice % len(holders)).release()
            assert pool.free == pool.size - len({id(buffer) for buffer in holders})
        for buffer in holders:
            buffer.release()
        assert pool.free == pool.size

    def test_counts_right_across_threads(self, pool: BufferPool) -> None:
        def work() -> None:
            for _ in range(200):
                buffer = pool.acquire(10)
                buffer.retain()
                reader = threading.Thread(target=buffer.release)
                reader.start()
                buffer.release()
                reader.join()

        threads = [threading.Thread(target=work) for _ in range(BUFFERS + 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert pool.free == BUFFERS

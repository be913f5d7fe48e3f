"""What `device.cuda` promises, on the simulated driver and (with `-m gpu`) on a real one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from device.cuda import Cuda
from device.cuda_streams import Stream
from device.errors import CudaError, MemoryLowError, PoolClosedError
from device.memory import ALIGNMENT, BufferPool
from device.unified import MemoryKind

FILL = 0x3F800000
"""1.0 as float32."""


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.gpu)])
def cuda(request: pytest.FixtureRequest) -> Iterator[Cuda]:
    if request.param == "simulated":
        request.getfixturevalue("driver")
    with closing(Cuda()) as cuda:
        yield cuda


def fill(cuda: Cuda, stream: Stream, array: NDArray[Any], value: int = FILL) -> None:
    """Let the GPU fill an array of 4-byte numbers: work for a stream that needs no compiler."""
    from cuda.bindings import driver  # noqa: PLC0415

    (error,) = driver.cuMemsetD32Async(cuda.address_of(array), value, array.size, stream.handle)
    assert int(error) == 0, error


def in_another_thread(action: Callable[[], object]) -> object:
    """Give what `action` returns or raises in a thread of its own."""
    result: list[object] = []

    def run() -> None:
        try:
            result.append(action())
        except Exception as error:  # noqa: BLE001  the test looks at it
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    return result[0]


class TestTraits:
    def test_are_the_drivers(self, cuda: Cuda) -> None:
        traits = cuda.traits
        assert traits.name
        assert traits.compute_capability >= (5, 0)
        assert traits.multiprocessors > 0
        assert traits.total_bytes > 2**28


class TestMemory:
    def test_how_much_there_is_and_how_much_is_free(self, cuda: Cuda) -> None:
        free, total = cuda.memory()
        assert 0 < free <= total == cuda.traits.total_bytes
        assert isinstance(in_another_thread(cuda.memory), CudaError)

    def test_is_of_a_kind_that_the_gpu_allows(self, cuda: Cuda) -> None:
        several = cuda.traits.concurrent_managed_access
        assert several or cuda.memory_kind is MemoryKind.MAPPED
        assert cuda.memory_reason.startswith("measured: mapped ") == several

    @pytest.mark.parametrize("shape", [(), (1,), (192, 33), (3, 1, 5), (0, 4)])
    @pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_])
    def test_has_the_shape_and_type_asked_for(self, cuda: Cuda, shape: tuple[int, ...], dtype: type) -> None:
        array = cuda.empty(shape, dtype)
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert array.flags.writeable

    def test_both_sides_are_aligned_and_no_array_shares_a_cache_line(self, cuda: Cuda) -> None:
        arrays = [cuda.empty((5,), np.float32) for _ in range(20)]
        for array in arrays:
            assert array.ctypes.data % ALIGNMENT == 0
            assert cuda.address_of(array) % ALIGNMENT == 0
        for addresses in ([a.ctypes.data for a in arrays], [cuda.address_of(a) for a in arrays]):
            assert min(np.diff(sorted(addresses))) >= ALIGNMENT

    def test_the_gpu_writes_what_the_processor_reads(self, cuda: Cuda) -> None:
        array = cuda.empty((3, 100), np.float32)
        array.fill(0)
        stream = cuda.stream(urgent=True)
        fill(cuda, stream, array[1])
        stream.synchronize()
        assert array.sum(axis=1).tolist() == [0, 100, 0]

    def test_a_view_has_its_own_address(self, cuda: Cuda) -> None:
        array = cuda.empty((4, 100), np.float32)
        assert cuda.address_of(array[1:]) == cuda.address_of(array) + 400
        assert cuda.address_of(array.reshape(-1)[7:9].view(np.int32)) == cuda.address_of(array) + 28

    def test_outlives_the_name_it_had(self, cuda: Cuda) -> None:
        view = cuda.empty((1 << 16,), np.float32)[1000:]
        view.fill(2)
        assert cuda.address_of(view)
        assert (view == 2).all()

    def test_an_array_from_elsewhere_has_no_address(self, cuda: Cuda) -> None:
        cuda.empty((4,), np.float32)
        with pytest.raises(CudaError, match="outside the memory that the GPU sees"):
            cuda.address_of(np.zeros(4, np.float32))

    def test_what_is_freed_has_no_address_any_more(self, cuda: Cuda) -> None:
        arrays = [cuda.empty((100,), np.float32) for _ in range(3)]
        cuda.free(arrays[1])
        with pytest.raises(CudaError):
            cuda.address_of(arrays[1])
        with pytest.raises(CudaError, match="not one of empty"):
            cuda.free(arrays[1])
        with pytest.raises(CudaError, match="not one of empty"):
            cuda.free(arrays[0][1:])
        assert cuda.address_of(arrays[0]) != cuda.address_of(arrays[2])

    def test_buffers_of_a_pool_have_addresses(self, cuda: Cuda) -> None:
        pool = cuda.buffer_pool(buffers=2, capacity=1000, limit_bytes=1 << 20)
        buffer = pool.acquire(0)
        stream = cuda.stream(urgent=True)
        fill(cuda, stream, buffer.samples[10:20])
        stream.synchronize()
        assert buffer.samples.sum() == 10
        assert buffer.samples[10:20].sum() == 10
        buffer.release()


class TestStreams:
    def test_are_never_the_default_one(self, cuda: Cuda) -> None:
        handles = [cuda.stream(urgent=urgent).handle for urgent in (True, False, True)]
        assert len(set(handles)) == 3
        assert not {0, 1, 2} & set(handles)  # NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD

    def test_urgent_work_goes_first(self, cuda: Cuda) -> None:
        from cuda.bindings import driver  # noqa: PLC0415

        urgent, ordinary = cuda.stream(urgent=True), cuda.stream(urgent=False)
        assert urgent.priority < ordinary.priority == 0
        assert driver.cuStreamGetPriority(urgent.handle)[1] == urgent.priority
        assert driver.cuStreamGetPriority(ordinary.handle)[1] == 0

    def test_do_not_wait_for_the_default_stream(self, cuda: Cuda) -> None:
        from cuda.bindings import driver  # noqa: PLC0415

        flags = driver.cuStreamGetFlags(cuda.stream(urgent=True).handle)[1]
        assert int(flags) == int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)

    def test_close_twice(self, cuda: Cuda) -> None:
        stream = cuda.stream(urgent=False)
        stream.close()
        stream.close()


class TestGraphs:
    def test_recording_runs_nothing_and_each_launch_runs_it(self, cuda: Cuda) -> None:
        array = cuda.empty((100,), np.float32)
        array.fill(0)
        stream = cuda.stream(urgent=True)
        graph = cuda.capture(stream, lambda: fill(cuda, stream, array))
        assert graph is not None
        stream.synchronize()
        assert not array.any()
        for _ in range(3):
            array.fill(0)
            graph.launch()
            stream.synchronize()
            assert (array == 1).all()
        graph.close()
        graph.close()

    def test_what_cannot_be_recorded_is_refused_and_the_stream_goes_on(self, cuda: Cuda) -> None:
        array = cuda.empty((100,), np.float32)
        stream = cuda.stream(urgent=True)

        def wait_in_between() -> None:
            fill(cuda, stream, array)
            stream.synchronize()

        assert cuda.capture(stream, wait_in_between) is None
        assert "STREAM_CAPTURE_UNSUPPORTED" in cuda.refusal
        fill(cuda, stream, array)
        stream.synchronize()
        assert (array == 1).all()
        assert cuda.capture(stream, lambda: fill(cuda, stream, array)) is not None

    def test_what_the_recorded_function_raises_is_passed_on(self, cuda: Cuda) -> None:
        array = cuda.empty((100,), np.float32)
        stream = cuda.stream(urgent=True)

        def fail() -> None:
            fill(cuda, stream, array)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            cuda.capture(stream, fail)
        assert cuda.capture(stream, lambda: fill(cuda, stream, array)) is not None

    def test_another_thread_may_allocate_meanwhile(self, cuda: Cuda) -> None:
        array = cuda.empty((100,), np.float32)
        stream = cuda.stream(urgent=True)

        def enqueue() -> None:
            fill(cuda, stream, array)
            result = in_another_thread(allocate_and_free)
            assert result is None, result

        assert cuda.capture(stream, enqueue) is not None, cuda.refusal


def allocate_and_free() -> None:
    with closing(Cuda()) as other:
        other.empty((1000,), np.float32)


class TestThreads:
    @pytest.mark.parametrize(
        "use",
        [
            lambda cuda: cuda.empty((1,), np.float32),
            lambda cuda: cuda.stream(urgent=True),
            lambda cuda: cuda.address_of(np.zeros(1)),
            lambda cuda: cuda.buffer_pool(buffers=1, capacity=1, limit_bytes=1000),
            lambda cuda: cuda.capture(None, list),
            lambda cuda: cuda.free(np.zeros(1)),
            lambda cuda: cuda.close(),
        ],
    )
    def test_only_the_owner_uses_it(self, cuda: Cuda, use: Callable[[Cuda], object]) -> None:
        error = in_another_thread(lambda: use(cuda))
        assert isinstance(error, CudaError)
        assert "another thread" in str(error)
        cuda.empty((1,), np.float32)

    def test_several_threads_have_one_each(self, cuda: Cuda) -> None:
        assert in_another_thread(allocate_and_free) is None

    def test_others_run_while_one_waits_for_the_gpu(self, cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
        # The simulated GPU takes this long; a real one may be done at once.
        monkeypatch.setenv("SIMCUDA_WORK_MS", "1000")
        stop = threading.Event()
        gaps = [0.0]

        def work() -> None:
            last = time.monotonic()
            while not stop.is_set():
                now = time.monotonic()
                gaps.append(now - last)
                last = now

        thread = threading.Thread(target=work)
        stream = cuda.stream(urgent=True)
        thread.start()
        stream.synchronize()
        stop.set()
        thread.join(10)
        monkeypatch.delenv("SIMCUDA_WORK_MS")
        assert max(gaps) < 0.95


class TestClosing:
    def test_nothing_works_afterwards(self, cuda: Cuda) -> None:
        pool = cuda.buffer_pool(buffers=1, capacity=10, limit_bytes=1000)
        cuda.close()
        cuda.close()
        with pytest.raises(CudaError, match="closed"):
            cuda.empty((1,), np.float32)
        with pytest.raises(PoolClosedError):
            pool.acquire(0)

    def test_work_under_way_is_waited_for(self, cuda: Cuda) -> None:
        array = cuda.empty((1 << 20,), np.float32)
        stream = cuda.stream(urgent=False)
        for _ in range(10):
            fill(cuda, stream, array)
        cuda.close()

    def test_a_reader_that_is_still_busy_is_waited_for(self, cuda: Cuda) -> None:
        pool: BufferPool = cuda.buffer_pool(buffers=2, capacity=1000, limit_bytes=1 << 20)
        buffer = pool.acquire(0)
        pool.close()
        timer = threading.Timer(0.1, lambda: (buffer.samples.fill(1), buffer.release()))
        timer.start()
        cuda.close()
        timer.join()
        assert pool.free == 2

    def test_another_one_can_be_made_in_the_same_thread(self, cuda: Cuda) -> None:
        for _ in range(20):
            with closing(Cuda()) as other:
                array = other.empty((10,), np.float32)
                array.fill(1)
                assert other.address_of(array)
        cuda.empty((1,), np.float32)

    @pytest.mark.parametrize("order", [1, -1])
    def test_two_in_one_thread_close_in_either_order(self, cuda: Cuda, order: int) -> None:
        pair = [Cuda(), Cuda()][::order]
        pair[0].close()
        pair[1].empty((1,), np.float32)
        pair[1].close()
        cuda.empty((1,), np.float32)


class TestGate:
    def test_what_the_system_cannot_spare_is_not_asked_of_the_driver(self, cuda: Cuda) -> None:
        with pytest.raises(MemoryLowError):
            cuda.empty((1 << 50,), np.float32)
        with pytest.raises(MemoryLowError):
            cuda.buffer_pool(buffers=1, capacity=1 << 50, limit_bytes=1 << 60)
        cuda.empty((1,), np.float32)

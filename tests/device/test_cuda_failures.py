"""What goes wrong with a GPU, on the simulated driver; and that nothing is left behind, whatever goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from simulators.cuda_driver import SimulatedDriver

from device import cuda as cuda_module
from device.cuda import Cuda
from device.errors import CudaError, MemoryLowError
from device.unified import MemoryKind

ROOT = Path(__file__).parent.parent.parent


pytestmark = pytest.mark.usefixtures("driver")


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


class TestWhatIsMissing:
    OPEN = """
from device.cuda import Cuda
from device.errors import CudaError
try:
    Cuda()
except CudaError as error:
    print(error)
"""

    def test_no_driver(self, tmp_path: Path) -> None:
        # A file that is no library stands in for none: the test then also holds where there is a real driver.
        (tmp_path / "libcuda.so.1").touch()
        result = run(self.OPEN, LD_LIBRARY_PATH=str(tmp_path))
        assert result.returncode == 0, result.stderr
        assert "libcuda.so.1" in result.stdout
        assert "is NVIDIA's driver installed?" in result.stdout

    def test_a_driver_that_pycuda_was_not_built_for(self, tmp_path: Path) -> None:
        (tmp_path / "none.c").write_text("int nothing;")
        options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(tmp_path / "libcuda.so.1")]
        subprocess.run(["cc", *options, str(tmp_path / "none.c")], check=True)  # noqa: S607  whichever there is
        result = run(self.OPEN, LD_LIBRARY_PATH=str(tmp_path))
        assert result.returncode == 0, result.stderr
        assert "undefined symbol" in result.stdout
        assert "rebuild it" in result.stdout

    def test_no_pycuda(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pycuda", None)
        with pytest.raises(CudaError, match=r"import pycuda: not installed \(pip install 'speakd\[jetson\]'\)"):
            Cuda()

    def test_no_gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SIMCUDA_DEVICES", "0")
        with pytest.raises(CudaError, match=r"cuInit: no CUDA-capable device is detected \(is there an NVIDIA GPU"):
            Cuda()

    def test_no_gpu_of_that_number(self) -> None:
        with pytest.raises(CudaError, match=r"cuDeviceGet: invalid device ordinal \(there is no GPU of that number\)"):
            Cuda(3)

    def test_no_cuda_bindings(self, driver: SimulatedDriver) -> None:
        code = """
import sys
sys.modules["cuda.bindings"] = None
import logging; logging.basicConfig(format="%(message)s", stream=sys.stdout)
import numpy as np
from device.cuda import Cuda
cuda = Cuda()
streams = [cuda.stream(urgent=True), cuda.stream(urgent=False)]
print([stream.priority for stream in streams], streams[0].handle not in (0, streams[1].handle))
print(cuda.capture(streams[0], lambda: None), cuda.refusal)
for stream in streams:
    stream.synchronize()
print(cuda.memory_kind.value, cuda.address_of(cuda.empty((10,), np.float32)) > 0, "registered" in cuda.memory_reason)
streams[0].close(); streams[0].close(); cuda.close()
"""
        result = run(code, SIMCUDA_CONCURRENT_MANAGED="1", SIMCUDA_SLOW="managed", **driver.environment)
        assert (result.returncode, result.stderr) == (0, "")
        warning, priorities, captured, memory = result.stdout.splitlines()
        assert warning.startswith(
            "streams have no priority and work is not recorded as graphs: import of cuda.bindings"
        )
        assert priorities == "[0, 0] True"
        assert captured == f"None {warning}"
        assert memory == "mapped True False"


class TestWhichMemory:
    def test_managed_is_never_touched_where_the_processor_may_not(
        self, driver: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SIMCUDA_CONCURRENT_MANAGED", "0")
        managed = driver.calls("cuMemAllocManaged")
        with closing(Cuda()) as cuda:
            cuda.empty((10,), np.float32)
            cuda.buffer_pool(buffers=2, capacity=10, limit_bytes=1000)
            assert cuda.memory_kind is MemoryKind.MAPPED
        assert driver.calls("cuMemAllocManaged") == managed

    @pytest.mark.parametrize(
        ("slow", "best"),
        [("managed,registered", "mapped"), ("mapped,registered", "managed"), ("mapped,managed", "registered")],
    )
    def test_where_several_are_allowed_the_quickest_is_taken(
        self, driver: SimulatedDriver, monkeypatch: pytest.MonkeyPatch, slow: str, best: str
    ) -> None:
        monkeypatch.setenv("SIMCUDA_CONCURRENT_MANAGED", "1")
        monkeypatch.setenv("SIMCUDA_SLOW", slow)
        with closing(Cuda()) as cuda:
            assert cuda.memory_kind is MemoryKind(best), cuda.memory_reason
            assert cuda.memory_reason.startswith("measured: mapped ")
            array = cuda.empty((10,), np.float32)
            assert driver.host_of(cuda.address_of(array[3:])) == array.ctypes.data + 12

    @pytest.mark.parametrize(
        "call",
        [
            "cuModuleLoadData",
            "cuModuleGetFunction",
            "cuMemAllocManaged",
            "cuStreamCreateWithPriority",
            "cuLaunchKernel",
        ],
    )
    def test_a_gpu_that_cannot_be_measured_gets_the_kind_that_works_everywhere(
        self, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        monkeypatch.setenv("SIMCUDA_CONCURRENT_MANAGED", "1")
        monkeypatch.setenv("SIMCUDA_FAIL", f"{call}=221")
        with closing(Cuda()) as cuda:
            assert cuda.memory_kind is MemoryKind.MAPPED
            assert cuda.memory_reason.startswith(f"not measured: CUDA: {call}: ")

    def test_a_fault_while_measuring_leaves_the_context(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setenv("SIMCUDA_CONCURRENT_MANAGED", "1")
        monkeypatch.setattr(cuda_module.cuda_probe, "measure", fail)
        with pytest.raises(ZeroDivisionError):
            Cuda()

    def test_measuring_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SIMCUDA_CONCURRENT_MANAGED", "1")
        calls: list[int] = []  # the clock moves by more than the whole budget each time
        monkeypatch.setattr(cuda_module.cuda_probe.time, "perf_counter", lambda: calls.append(0) or len(calls) * 0.02)
        with closing(Cuda()) as cuda:
            assert cuda.memory_reason.startswith("measured")
        assert len(calls) == 1 + 2 * 3 * (1 + cuda_module.cuda_probe.ROUNDS) + 1


class TestOutOfMemory:
    @pytest.mark.parametrize(
        ("kind", "call"),
        [("mapped", "cuMemHostAlloc"), ("managed", "cuMemAllocManaged"), ("registered", "cuMemHostRegister")],
    )
    def test_names_the_call_and_what_to_do_and_loses_nothing(
        self, monkeypatch: pytest.MonkeyPatch, kind: str, call: str
    ) -> None:
        monkeypatch.setenv("SIMCUDA_MEMORY_LIMIT", str(1 << 16))
        with closing(Cuda()) as cuda:
            cuda.memory_kind = MemoryKind(kind)
            kept = cuda.empty((1000,), np.float32)
            kept.fill(3)
            makers: list[Callable[[], object]] = [
                lambda: cuda.empty((1 << 16,), np.float32),
                lambda: cuda.buffer_pool(buffers=4, capacity=1 << 14, limit_bytes=1 << 20),
            ]
            for make in makers:
                with pytest.raises(CudaError, match=r"(?i)out.of.memory.* \(lower memory.pool_buffers") as caught:
                    make()
                assert caught.value.call == call
            assert (kept == 3).all()
            assert cuda.address_of(cuda.empty((1000,), np.float32)) != cuda.address_of(kept)

    @pytest.mark.parametrize("concurrent", ["0", "1"])
    def test_memory_that_the_gpu_cannot_address_is_given_back(
        self, monkeypatch: pytest.MonkeyPatch, concurrent: str
    ) -> None:
        monkeypatch.setenv("SIMCUDA_CONCURRENT_MANAGED", concurrent)
        monkeypatch.setenv("SIMCUDA_SLOW", "mapped,managed")
        with closing(Cuda()) as cuda:
            monkeypatch.setenv("SIMCUDA_FAIL", "cuMemHostGetDevicePointer_v2=1")
            with pytest.raises(CudaError, match="cuMemHostGetDevicePointer"):
                cuda.empty((10,), np.float32)
            monkeypatch.delenv("SIMCUDA_FAIL")

    def test_the_gate_comes_before_the_driver(self, driver: SimulatedDriver, tmp_path: Path) -> None:
        meminfo = tmp_path / "meminfo"
        meminfo.write_text("MemAvailable: 1024 kB\n")
        with closing(Cuda(reserve_bytes=1 << 19, meminfo=meminfo)) as cuda:
            cuda.empty((1 << 19,), np.uint8)
            asked = driver.calls("cuMemHostAlloc")
            with pytest.raises(MemoryLowError, match="would leave less than"):
                cuda.empty(((1 << 19) + 1,), np.uint8)
            with pytest.raises(MemoryLowError):
                cuda.buffer_pool(buffers=2, capacity=1 << 17, limit_bytes=1 << 30)
            assert driver.calls("cuMemHostAlloc") == asked


class TestALostGpu:
    def test_waiting_tells_of_the_failure_and_closing_still_leaves_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cuda = Cuda()
        stream = cuda.stream(urgent=True)
        cuda.empty((10,), np.float32)
        monkeypatch.setenv("SIMCUDA_FAIL", "cuStreamSynchronize=700")
        with pytest.raises(CudaError, match=r"cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS \(the context is lost"):
            stream.synchronize()
        with pytest.raises(CudaError, match=r"cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"):
            cuda.close()
        cuda.close()

    def test_a_stream_that_cannot_be_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with closing(Cuda()) as cuda:
            monkeypatch.setenv("SIMCUDA_FAIL", "cuStreamCreateWithPriority=2")
            with pytest.raises(CudaError, match="cuStreamCreateWithPriority: CUDA_ERROR_OUT_OF_MEMORY"):
                cuda.stream(urgent=True)
            monkeypatch.delenv("SIMCUDA_FAIL")

    @pytest.mark.parametrize("call", ["cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags"])
    def test_graphs_that_the_driver_refuses(self, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
        with closing(Cuda()) as cuda:
            stream = cuda.stream(urgent=True)
            monkeypatch.setenv("SIMCUDA_FAIL", f"{call}=801")
            assert cuda.capture(stream, lambda: None) is None
            assert "CUDA_ERROR_NOT_SUPPORTED" in cuda.refusal
            monkeypatch.delenv("SIMCUDA_FAIL")

    def test_a_graph_that_cannot_be_launched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with closing(Cuda()) as cuda:
            graph = cuda.capture(cuda.stream(urgent=True), lambda: None)
            assert graph is not None
            monkeypatch.setenv("SIMCUDA_FAIL", "cuGraphLaunch=700")
            with pytest.raises(CudaError, match="cuGraphLaunch"):
                graph.launch()


class TestTheEnd:
    WHOLE_LIFE = """
import threading
import numpy as np
from device.cuda import Cuda

def live():
    cuda = Cuda()
    pool = cuda.buffer_pool(buffers=2, capacity=1000, limit_bytes=1 << 20)
    stream = cuda.stream(urgent=True)
    array = cuda.empty((1000,), np.float32)
    graph = cuda.capture(stream, lambda: None)
    buffer = pool.acquire(0)
    threading.Thread(target=buffer.release).start()
    cuda.close()

thread = threading.Thread(target=live)
thread.start()
thread.join()
live()
"""

    @pytest.mark.parametrize("concurrent", ["0", "1"])
    def test_a_process_ends_without_a_word(self, driver: SimulatedDriver, concurrent: str) -> None:
        result = run(self.WHOLE_LIFE, SIMCUDA_CONCURRENT_MANAGED=concurrent, **driver.environment)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")

    def test_what_is_left_open_can_be_told(self, driver: SimulatedDriver) -> None:
        result = run("from device.cuda import Cuda; cuda = Cuda()", **driver.environment)
        assert result.returncode != 0
        assert "context stack was not empty" in result.stderr

    def test_a_buffer_that_is_never_released_keeps_its_memory(self, driver: SimulatedDriver) -> None:
        code = """
import threading
from device import cuda as module
from device.errors import CudaError
module.LAST_READERS_S = 0.05
cuda = module.Cuda()
cuda.empty(10, "f4")
pool = cuda.buffer_pool(buffers=2, capacity=1000, limit_bytes=1 << 20)
buffer = pool.acquire(0)
try:
    cuda.close()
except CudaError as error:
    print(error)
cuda.close()
reader = threading.Thread(target=lambda: (buffer.samples.fill(1), print(buffer.samples.sum()), buffer.release()))
reader.start()
reader.join()
print(pool.free)
"""
        result = run(code, **driver.environment)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines() == [
            "CUDA: close: buffers are still held (whoever plays or encodes must release them first)",
            "1000.0",
            "2",
        ]

    def test_many_voices_later_nothing_has_grown(self, driver: SimulatedDriver) -> None:
        with closing(Cuda()) as cuda:
            before = driver.objects
            for _ in range(50):
                stream = cuda.stream(urgent=True)
                array = cuda.empty((10,), np.float32)
                graph = cuda.capture(stream, lambda: None)
                assert graph is not None
                graph.close()
                stream.close()
                cuda.free(array)
            assert driver.objects == before
            assert len(cuda._streams) + len(cuda._graphs) <= 2

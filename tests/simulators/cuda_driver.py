"""The simulated CUDA driver: compiled from the folder `cuda`, loaded into this process or found by a child.

As a program: `python cuda_driver.py FOLDER` compiles it, for PyCUDA to be linked with.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).parent / "cuda"


def build(folder: Path) -> Path:
    """Compile it as `libcuda.so.1`, which `libcuda.so` points at; needs the package nvidia-cuda-runtime-cu12."""
    headers = Path(sysconfig.get_path("purelib"), "nvidia/cuda_runtime/include")
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libcuda.so.1"
    options = ["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-deprecated-declarations"]
    target = ["-shared", "-fPIC", "-pthread", f"-Wl,-soname,{library.name}", "-o", str(library)]
    sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
    subprocess.run(["cc", *options, f"-I{headers}", *target, *sources, "-ldl"], check=True)  # noqa: S607
    link = folder / "libcuda.so"
    link.unlink(missing_ok=True)
    link.symlink_to(library.name)
    return library


class SimulatedDriver:
    """The driver of this process from now on: whoever asks the loader for libcuda.so.1 gets it."""

    def __init__(self, library: Path) -> None:
        self.environment = {"LD_LIBRARY_PATH": str(library.parent)}
        self._library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self._library.simcuda_host_of.argtypes = [ctypes.c_uint64]
        self._library.simcuda_host_of.restype = ctypes.c_void_p

    @contextmanager
    def retained(self) -> Iterator[None]:
        """Keep the primary context, as another user of the GPU in this process would."""
        context = ctypes.c_void_p()
        assert self._library.cuInit(0) == 0
        assert self._library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        yield
        assert self._library.cuDevicePrimaryCtxRelease_v2(0) == 0

    def calls(self, name: str) -> int:
        """How often a call was made since the process began."""
        return int(self._library.simcuda_calls(name.encode()))

    @property
    def objects(self) -> int:
        """Memory, streams, graphs and modules that have not been freed."""
        return int(self._library.simcuda_objects())

    @property
    def context_references(self) -> int:
        """How often the primary context is retained."""
        return int(self._library.simcuda_context_references())

    @property
    def stack_depth(self) -> int:
        """Contexts on the calling thread's stack."""
        return int(self._library.simcuda_stack_depth())

    def host_of(self, device_address: int) -> int | None:
        """Give the host's address of a device address; None where no memory lies."""
        found: int | None = self._library.simcuda_host_of(device_address)
        return found


if __name__ == "__main__":
    build(Path(sys.argv[1]))

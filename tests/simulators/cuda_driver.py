"""The simulated CUDA driver: compiled from the folder `cuda`, loaded into this process or found by a child.

As a program it compiles PyCUDA with it, into the Python that runs it: for machines that have no CUDA.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).parent / "cuda"
NVIDIA = Path(sysconfig.get_path("purelib"), "nvidia")
"""Headers: of the packages nvidia-cuda-runtime-cu12 and nvidia-cuda-profiler-api-cu12."""

PYCUDA = "pycuda>=2025.1.2"
"""As in pyproject.toml, whose extra `jetson` brings it where CUDA is."""


def build(folder: Path) -> Path:
    """Compile it as `libcuda.so.1`, which `libcuda.so` points at."""
    library = folder / "libcuda.so.1"
    options = ["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-deprecated-declarations"]
    exports = f"-Wl,-soname,{library.name},--version-script={SOURCES / 'exports.map'}"
    target = ["-shared", "-fPIC", "-pthread", exports, "-o", str(library)]
    sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
    subprocess.run(["cc", *options, f"-I{NVIDIA / 'cuda_runtime/include'}", *target, *sources, "-ldl"], check=True)  # noqa: S607
    (folder / "libcuda.so").symlink_to(library.name)
    return library


def install_pycuda() -> None:
    """Compile and install PyCUDA, which has no wheels.

    Without optimisation, debugging and cuRAND, which saves time; therefore it must not get into pip's cache.
    """
    pip = [sys.executable, "-I", "-m", "pip"]
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        command = [*pip, "download", "--quiet", "--no-deps", "--no-binary=pycuda", f"--dest={folder}", PYCUDA]
        subprocess.run(command, check=True)
        (archive,) = Path(folder).glob("pycuda-*.tar.gz")
        shutil.unpack_archive(archive, folder)
        source = archive.with_suffix("").with_suffix("")
        headers = [str(NVIDIA / part / "include") for part in ("cuda_runtime", "cuda_profiler_api")]
        (source / "siteconf.py").write_text(
            f"CUDA_INC_DIR = {headers}\nCUDADRV_LIB_DIR = {[folder]}\n"
            'CUDA_ENABLE_CURAND = False\nCXXFLAGS = ["-O0", "-g0", "-w"]\n'
        )
        subprocess.run([*pip, "install", "--quiet", "--no-cache-dir", str(source)], check=True)


class SimulatedDriver:
    """The driver of this process from now on: whoever asks the loader for libcuda.so.1 gets it."""

    def __init__(self, library: Path) -> None:
        self.environment = {"LD_LIBRARY_PATH": str(library.parent)}
        self.library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self.library.simcuda_host_of.argtypes = [ctypes.c_uint64]
        self.library.simcuda_host_of.restype = ctypes.c_void_p

    @contextmanager
    def retained(self) -> Iterator[None]:
        """Keep the primary context, as another user of the GPU in this process would."""
        context = ctypes.c_void_p()
        assert self.library.cuInit(0) == 0
        assert self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        yield
        assert self.library.cuDevicePrimaryCtxRelease_v2(0) == 0

    def calls(self, name: str) -> int:
        """How often a call was made since the process began."""
        return int(self.library.simcuda_calls(name.encode()))

    @property
    def objects(self) -> int:
        """Memory, streams, graphs and modules that have not been freed."""
        return int(self.library.simcuda_objects())

    @property
    def context_references(self) -> int:
        """How often the primary context is retained."""
        return int(self.library.simcuda_context_references())

    @property
    def stack_depth(self) -> int:
        """Contexts on the calling thread's stack."""
        return int(self.library.simcuda_stack_depth())

    def host_of(self, device_address: int) -> int | None:
        """Give the host's address of a device address; None where no memory lies."""
        found: int | None = self.library.simcuda_host_of(device_address)
        return found


if __name__ == "__main__":
    install_pycuda()

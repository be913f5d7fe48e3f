"""Whether this machine has the real thing, asked of the driver and of TensorRT itself."""

from __future__ import annotations

import ctypes
import functools

from engines.errors import EngineError
from engines.runtime.trt import binding


@functools.cache
def missing() -> str:
    """Say why tests on a GPU cannot run here; empty where they can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver"
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "the NVIDIA driver finds no GPU"
    try:
        binding()
    except EngineError as error:
        return str(error)
    return ""

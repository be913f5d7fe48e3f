"""Whether this machine has the real thing, asked of the driver and of TensorRT itself."""

from __future__ import annotations

import subprocess
import sys

_ASK = """
import ctypes
try:
    driver = ctypes.CDLL("libcuda.so.1")
except OSError:
    raise SystemExit("no NVIDIA driver")
count = ctypes.c_int()
if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
    raise SystemExit("a driver, but no GPU")
try:
    import tensorrt
    print("a GPU, TensorRT", tensorrt.__version__)
except (ImportError, AttributeError):
    print("a GPU, no TensorRT")
"""


def found() -> str:
    """Say what there is. A child asks: this process is for the simulated driver, of which there can be one only."""
    asked = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=False, timeout=60)
    return (asked.stdout or asked.stderr).strip()

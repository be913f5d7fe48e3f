from __future__ import annotations

import subprocess
import sys

import pytest

# A block is freed, which makes glibc keep blocks of its size from then on, and one more of that size is held beside it.
FREE_A_LARGE_BLOCK = """
import numpy as np, re, sys
from device import heap

def resident():
    return int(re.findall(r"VmRSS:\\s*(\\d+)", open("/proc/self/status").read())[0]) // 1024

if "mapped" in sys.argv:
    print(heap.map_large_blocks())
else:
    print("left alone")
np.ones(20 * 2**20, np.uint8)
before = resident()
large, small = np.ones(15 * 2**20, np.uint8), np.ones(2**16, np.uint8)
del large
print(resident() - before)
"""


def kept_mb(how: str) -> tuple[str, int]:
    result = subprocess.run(
        [sys.executable, "-c", FREE_A_LARGE_BLOCK, how], capture_output=True, text=True, check=True, timeout=30
    )
    answer, kept = result.stdout.splitlines()
    return answer, int(kept)


def test_a_large_block_goes_back_to_the_system_though_a_small_one_came_after_it() -> None:
    answer, kept = kept_mb("mapped")
    assert answer == "done"
    assert kept < 5


def test_left_alone_the_heap_would_keep_it() -> None:
    assert kept_mb("alone")[1] > 10


# Blocks too small to be mapped for themselves, and one more that keeps the heap from shrinking at its end.
FREE_BELOW_A_SMALL_BLOCK = """
import ctypes, re, sys
from device import heap, realtime

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

def status(key):
    return int(re.findall(key + r":\\s*(\\d+)", open("/proc/self/status").read())[0])

heap.map_large_blocks()
if "locked" in sys.argv:
    realtime.lock_memory()
locked = status("VmLck") > 0
before = status("VmRSS")
blocks = [libc.malloc(2**16) for _ in range(1000)]
for block in blocks:
    libc.memset(block, 1, 2**16)
held = libc.malloc(2**16)
for block in blocks:
    libc.free(block)
heap.trim()
print((status("VmRSS") - before) // 1024, locked == (status("VmLck") > 0))
"""


@pytest.mark.parametrize("how", ["locked", "not"])
def test_what_is_free_within_a_heap_goes_back_also_where_memory_is_locked(how: str) -> None:
    """Where this machine lets nobody lock memory, both are the same case."""
    command = [sys.executable, "-c", FREE_BELOW_A_SMALL_BLOCK, how]
    kept, as_before = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.split()
    assert int(kept) < 20, "of 62 MB"
    assert as_before == "True"

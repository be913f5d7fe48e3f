from __future__ import annotations

import subprocess
import sys

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

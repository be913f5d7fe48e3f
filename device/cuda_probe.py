"""Which kind of unified memory is the quickest on a device that may use several: measured, in some milliseconds."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import numpy as np

from device.cuda_calls import Driver, call
from device.cuda_streams import PriorityStream
from device.unified import Allocation, MemoryKind, allocate

FRAMES: Final = 1 << 16
"""Samples per round: 1.4 s of speech, as a window of medium size has them."""

PASSES: Final = 4
"""How often the GPU reads and writes them per round. A kernel that finds them in its cache shows from the second on."""

BUDGET_S: Final = 0.01
"""For all kinds together, after one round of each that only brings its pages in place."""

ROUNDS: Final = 5
"""Of each kind at least, for devices that are slow or busy, as when the system starts."""

MARGIN: Final = 0.9
"""What another kind may at most take of the first one's time to be chosen instead: less is within a measurement's
noise, and the first kind (mapped) needs no upkeep by the driver."""

_BLOCK: Final = (256, 1, 1)
_BLOCKS: Final = (FRAMES // 256, 1, 1)

KERNEL: Final = b"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry touch(.param .u64 data, .param .u32 count)
{
    .reg .pred %outside;
    .reg .b32 %i, %block, %width, %lane, %n;
    .reg .f32 %value;
    .reg .b64 %base, %offset, %at;
    ld.param.u64 %base, [data];
    ld.param.u32 %n, [count];
    mov.u32 %block, %ctaid.x;
    mov.u32 %width, %ntid.x;
    mov.u32 %lane, %tid.x;
    mad.lo.u32 %i, %block, %width, %lane;
    setp.ge.u32 %outside, %i, %n;
    @%outside bra done;
    cvta.to.global.u64 %base, %base;
    mul.wide.u32 %offset, %i, 4;
    add.u64 %at, %base, %offset;
    ld.global.f32 %value, [%at];
    add.f32 %value, %value, 0f3F800000;
    st.global.f32 [%at], %value;
done:
    ret;
}
"""
"""PTX: `data[i] += 1` for every i below `count`. The driver compiles it, so nothing of CUDA's toolkit is needed."""


def measure(driver: Driver, kinds: Sequence[MemoryKind]) -> dict[MemoryKind, float]:
    """Give the seconds of one round in each kind: processor writes, GPU works on it, processor reads.

    The best of several rounds counts: all else is other work. CudaError where the driver cannot compile the kernel,
    as in containers that lack libnvidia-ptxjitcompiler.
    """
    bindings = driver.bindings
    best = dict.fromkeys(kinds, np.inf)
    with ExitStack() as last_to_first:
        module = call(bindings.cuModuleLoadData, KERNEL)
        last_to_first.callback(call, bindings.cuModuleUnload, module)
        touch = call(bindings.cuModuleGetFunction, module, b"touch")
        places = {kind: last_to_first.enter_context(_allocated(driver, kind)) for kind in kinds}
        stream = PriorityStream(bindings, urgent=True)
        last_to_first.callback(stream.close)

        def run(place: Allocation) -> float:
            samples = place.memory.view(np.float32)
            values = (place.device_address, FRAMES), (ctypes.c_uint64, ctypes.c_uint32)
            began = time.perf_counter()
            samples.fill(0)
            for _ in range(PASSES):
                call(bindings.cuLaunchKernel, touch, *_BLOCKS, *_BLOCK, 0, stream.handle, values, 0)
            stream.synchronize()
            samples.max()
            return time.perf_counter() - began

        for place in places.values():
            run(place)
        end = time.perf_counter() + BUDGET_S
        rounds = 0
        while rounds < ROUNDS or time.perf_counter() < end:
            best = {kind: min(best[kind], run(place)) for kind, place in places.items()}
            rounds += 1
    return best


def choose(times: dict[MemoryKind, float]) -> MemoryKind:
    """Choose the quickest, but the first one unless another is clearly quicker."""
    first = next(iter(times))
    quickest = min(times, key=times.__getitem__)
    return quickest if times[quickest] < MARGIN * times[first] else first


@contextmanager
def _allocated(driver: Driver, kind: MemoryKind) -> Iterator[Allocation]:
    place = allocate(driver, kind, FRAMES * 4)
    try:
        yield place
    finally:
        place.free()

"""Which kind of unified memory is the quickest on a device that may use several: measured, in some milliseconds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from device.cuda_calls import NON_BLOCKING, Driver, errors_of
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

_THREADS: Final = 256

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
    places: dict[MemoryKind, Allocation] = {}
    best = dict.fromkeys(kinds, np.inf)
    with errors_of(driver.pycuda):
        touch = driver.pycuda.module_from_buffer(KERNEL).get_function("touch")
        stream = driver.pycuda.Stream(NON_BLOCKING)
        try:
            for kind in kinds:
                places[kind] = allocate(driver, kind, FRAMES * 4)
                _round(touch, stream, places[kind])
            end = time.perf_counter() + BUDGET_S
            rounds = 0
            while rounds < ROUNDS or time.perf_counter() < end:
                for kind, place in places.items():
                    best[kind] = min(best[kind], _round(touch, stream, place))
                rounds += 1
            return best
        finally:
            for place in places.values():
                place.free()


def choose(times: dict[MemoryKind, float]) -> MemoryKind:
    """Choose the quickest, but the first one unless another is clearly quicker."""
    first = next(iter(times))
    quickest = min(times, key=times.__getitem__)
    return quickest if times[quickest] < MARGIN * times[first] else first


def _round(touch: Any, stream: Any, place: Allocation) -> float:  # noqa: ANN401  PyCUDA has no types
    samples = place.memory.view(np.float32)
    began = time.perf_counter()
    samples.fill(0)
    for _ in range(PASSES):
        touch(
            np.uint64(place.device_address),
            np.uint32(FRAMES),
            block=(_THREADS, 1, 1),
            grid=(FRAMES // _THREADS, 1),
            stream=stream,
        )
    stream.synchronize()
    samples.max()
    return time.perf_counter() - began

"""The two bindings of the CUDA driver side by side, and their failures as `CudaError`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from device.errors import CudaError

NON_BLOCKING: Final = 1
"""CU_STREAM_NON_BLOCKING: does not wait for the default stream, nor that one for it."""

_ADVICE: Final = {
    "out of memory": "lower memory.pool_buffers, load fewer voices, or restart the board if its memory has become "
    "fragmented",
    "no cuda-capable device": "is there an NVIDIA GPU, and may this user open its device files?",
    "invalid device ordinal": "there is no GPU of that number",
    "invalid device context": "called by a thread that does not own the context",
    "illegal": "the context is lost: close it and make a new one",
}
"""By what the driver says, whether as a sentence (PyCUDA) or as a name (cuda.bindings)."""


@dataclass(frozen=True, slots=True)
class Driver:
    """Modules that have no types. The first makes contexts and memory; only the second has priorities and graphs."""

    pycuda: Any
    """pycuda.driver"""
    bindings: Any
    """cuda.bindings.driver, or None."""
    limits: str = ""
    """What does not work without the second, and why it is missing."""


def failure(call: str, reason: str) -> CudaError:
    """Make the error, with the advice that belongs to the driver's words."""
    words = reason.lower().replace("_", " ")
    return CudaError(call, reason, next((advice for key, advice in _ADVICE.items() if key in words), ""))


@contextmanager
def errors_of(pycuda: Any) -> Iterator[None]:  # noqa: ANN401  a module without types
    """Turn what PyCUDA raises inside into CudaError. Its text is "call failed: reason"."""
    try:
        yield
    except pycuda.Error as error:
        name, _, reason = str(error).partition(" failed: ")
        raise failure(name, reason) from error


def call(function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401  a binding without types
    """Call a function of cuda.bindings.driver; give what it returns after its error code, or None. CudaError."""
    result, *values = function(*arguments)
    if int(result) != 0:
        raise failure(function.__name__, result.name)
    return values[0] if len(values) == 1 else tuple(values) or None

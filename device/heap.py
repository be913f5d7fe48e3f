"""The C library's heap, which ONNX Runtime and numpy take their memory from."""

from __future__ import annotations

import ctypes
from typing import Final

from device.realtime import DONE, memory_unlocked

_LARGE: Final = 2**20
"""Bytes from which a block is mapped for itself. What an ordinary sentence needs is smaller, but for the engines' own
arenas, which stay."""

_M_MMAP_THRESHOLD: Final = -3


def map_large_blocks() -> str:
    """Have large blocks come from the system and go back to it when they are freed; gives 'done' or why not.

    Left alone, glibc takes freed blocks of up to 32 MB into its heaps, one per thread, and keeps them there in pieces:
    over 2,000 utterances of random length the process then grew by 10 MB, with this by 1.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return "refused: this C library has no mallopt"
    return DONE if mallopt(_M_MMAP_THRESHOLD, _LARGE) else "refused by mallopt"


def trim() -> None:
    """Give free pages within the heaps back to the system too, where the C library can; takes milliseconds.

    Memory that is locked is unlocked for that: two voices that took turns in the memory of one kept 250 MB otherwise.
    """
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        with memory_unlocked():
            malloc_trim(0)

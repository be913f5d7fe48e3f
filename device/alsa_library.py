"""libasound itself, by ctypes: what its Python binding lacks.

The binding keeps the interpreter's lock while a device or its controls are opened, and a sound server that hangs then
stops the whole process. ctypes lets the lock go, so each is tried out this way first (`Trial`). And libasound writes
what it meets to stderr, again with each attempt; `hush` has it told once, in the log.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import threading
from collections.abc import Callable
from typing import Any, Final

from device.errors import one_line

_LOG = logging.getLogger(__name__)

TRIAL_S: Final = 4.0
"""For a device to open: PulseAudio takes 0.5 ms (the first time 9), a Bluetooth link that must be made anew seconds."""

_STILL_S: Final = 0.1
"""For one that has not answered in `TRIAL_S` before."""

_PLAYBACK: Final = 0
_NONBLOCK: Final = 1
"""A card that is in use says so at once, instead of letting us wait until it is free."""

_MOST_CHARS: Final = 300
_MOST_TOLD: Final = 100
"""Different messages: there are some dozens, but names of devices are part of them."""

_Handler = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
)
"""`snd_local_error_handler_t`. Its va_list comes as an address on x86-64 and aarch64 alike."""


class Trial:
    """Opens and closes a device in a thread of its own. For one thread; a trial that hangs is the only one there is."""

    def __init__(self, *, controls: bool = False) -> None:
        """Take note of it. `controls`: those of the device are opened, instead of what plays."""
        self._controls = controls
        self._thread: threading.Thread | None = None
        self._result = 0

    def open(self, name: str) -> int | None:
        """Give 0 where the device opened, a negative errno where not, None where it does not answer."""
        library = _library()
        if library is None:
            return 0
        hung = self._thread is not None
        if self._thread is None:
            self._thread = threading.Thread(target=self._try, args=(library, name), name="alsa-trial", daemon=True)
            self._thread.start()
        self._thread.join(_STILL_S if hung else TRIAL_S)
        if self._thread.is_alive():
            return None
        self._thread = None
        return self._result

    def _try(self, library: ctypes.CDLL, name: str) -> None:
        hush()
        handle = ctypes.c_void_p()
        if self._controls:
            self._result = library.snd_ctl_open(ctypes.byref(handle), os.fsencode(name), _NONBLOCK)
            close = library.snd_ctl_close
        else:
            self._result = library.snd_pcm_open(ctypes.byref(handle), os.fsencode(name), _PLAYBACK, _NONBLOCK)
            close = library.snd_pcm_close
        if self._result == 0:
            close(handle)


def hush() -> None:
    """Have what libasound meets in the calling thread logged, each thing once, instead of written to stderr."""
    library = _library()
    if library is not None and hasattr(library, "snd_lib_error_set_local"):
        library.snd_lib_error_set_local(_handler())


@functools.cache
def _library() -> ctypes.CDLL | None:
    """Give the library that the binding is linked to; None where there is none, which the binding then tells."""
    try:
        library = ctypes.CDLL("libasound.so.2")
    except OSError:
        return None
    library.snd_pcm_open.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    library.snd_pcm_close.argtypes = [ctypes.c_void_p]
    library.snd_ctl_open.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    library.snd_ctl_close.argtypes = [ctypes.c_void_p]
    return library


@functools.cache
def _handler() -> Any:  # noqa: ANN401  ctypes makes its type at run time
    """Give the one handler. It must live as long as the library."""
    libc = ctypes.CDLL(None)
    libc.vsnprintf.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p]
    tell = _teller()

    def handle(_file: bytes, _line: int, function: bytes, error: int, form: bytes, arguments: int) -> None:
        text = ctypes.create_string_buffer(_MOST_CHARS)
        libc.vsnprintf(text, _MOST_CHARS, form, arguments)
        reason = f": {os.strerror(abs(error))}" if error else ""
        tell(f"{function.decode(errors='replace')}: {text.value.decode(errors='replace').strip()}{reason}")

    return _Handler(handle)


def _teller() -> Callable[[str], None]:
    told: set[str] = set()

    def tell(message: str) -> None:
        clean = one_line(message)
        if clean not in told and len(told) < _MOST_TOLD:
            told.add(clean)
            _LOG.warning("alsa-lib: %s", clean)

    return tell

"""What can go wrong with memory, loudspeakers, files and encoders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class DeviceError(Exception):
    """Root of every error raised in `device`."""


class PoolExhaustedError(DeviceError):
    """No buffer became free in time: whoever plays or encodes is slower than whoever fills."""

    def __init__(self, waited_s: float) -> None:
        self.waited_s = waited_s
        super().__init__(f"no audio buffer became free within {waited_s:g} s")


class PoolClosedError(DeviceError):
    """The pool was closed while somebody waited for a buffer or still asked for one."""

    def __init__(self) -> None:
        super().__init__("the buffer pool is closed")


class PoolTooLargeError(DeviceError):
    """The buffers asked for do not fit the memory limit."""

    def __init__(self, wanted_bytes: int, limit_bytes: int) -> None:
        self.wanted_bytes = wanted_bytes
        self.limit_bytes = limit_bytes
        super().__init__(
            f"the buffer pool would take {wanted_bytes / 2**20:.0f} MiB but memory.pinned_limit_mb allows "
            f"{limit_bytes / 2**20:.0f}: lower memory.pool_buffers or raise memory.pinned_limit_mb"
        )


class BufferOwnershipError(DeviceError):
    """A buffer was released or read by somebody who no longer holds it. Always a fault of ours."""

    def __init__(self, what: str) -> None:
        super().__init__(f"buffer misuse: {what}")


class MemoryUnknownError(DeviceError):
    """The system does not say how much memory is available."""

    def __init__(self, source: str, reason: str) -> None:
        self.source = source
        super().__init__(f"available memory is unknown: {source}: {reason}")


class MemoryLowError(DeviceError):
    """An allocation was not tried, because the system would have too little memory left."""

    def __init__(self, wanted_bytes: int, available_bytes: int, reserve_bytes: int) -> None:
        self.wanted_bytes = wanted_bytes
        self.available_bytes = available_bytes
        self.reserve_bytes = reserve_bytes
        super().__init__(
            f"{wanted_bytes / 2**20:.1f} MiB more would leave less than {reserve_bytes / 2**20:.0f} MiB of the "
            f"{available_bytes / 2**20:.0f} MiB that are available: stop other programs, load fewer voices or lower "
            "memory.pool_buffers"
        )


class CudaError(DeviceError):
    """A call of the CUDA driver failed, or there is no driver, GPU or binding to call."""

    def __init__(self, call: str, reason: str, advice: str = "") -> None:
        self.call = call
        """The driver's name of it, such as cuMemHostAlloc."""
        self.reason = reason
        """In the driver's words, with its name of the error where the binding tells that."""
        self.advice = advice
        super().__init__(f"CUDA: {call}: {reason}" + (f" ({advice})" if advice else ""))


class SinkError(DeviceError):
    """A sink cannot be opened or has stopped taking samples."""

    def __init__(self, sink: str, reason: str, advice: str = "") -> None:
        self.sink = sink
        self.reason = reason
        self.advice = advice
        super().__init__(f"{sink}: {reason}" + (f" ({advice})" if advice else ""))


class NoEncoderError(SinkError):
    """Nothing can be encoded, whatever it is: the library is missing, or refuses."""


class ClipError(DeviceError):
    """A sound from outside cannot be played as it is."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the sound {reason}")


class SoundFileError(DeviceError):
    """A file holds no sound that can be played."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} {reason}")


class EncoderError(DeviceError):
    """The Opus encoder refused its settings or its input."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"opus: {reason}")


class MixerError(DeviceError):
    """A card's volume control is not there or cannot be set."""

    def __init__(self, control: str, reason: str, found: Sequence[str] = ()) -> None:
        self.control = control
        self.reason = reason
        self.found = tuple(found)
        """The controls that there are."""
        advice = f" (audio.mixer may be {', '.join(sorted(set(found)))})" if found else ""
        super().__init__(f"mixer {control}: {reason}{advice}")


class DuckingError(DeviceError):
    """The sound server does not let other programs' sound be turned down."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"other programs' sound cannot be turned down: {reason}")


def one_line(text: str) -> str:
    """Give a text from outside as one line for a log or a screen: nothing in it moves a terminal's cursor."""
    return "".join(character if character.isprintable() else " " for character in text)

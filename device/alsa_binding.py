"""The only module that imports alsaaudio, and only when a loudspeaker or a mixer is asked for."""

from __future__ import annotations

from typing import Any

from device.errors import SinkError


def alsaaudio(name: str) -> Any:  # noqa: ANN401  it has no types
    """Give the binding. SinkError of the sink `name` where it is not installed."""
    try:
        import alsaaudio as binding  # noqa: PLC0415  a machine without a loudspeaker needs none
    except ImportError as error:
        raise SinkError(name, f"no ALSA binding: {error}", "install pyalsaaudio and libasound2") from error
    return binding

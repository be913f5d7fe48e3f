"""The process in which jtop runs: what only it knows of a Jetson, as one JSON line a second on standard output.

jtop never shares the daemon's process: importing it makes every later process of multiprocessing a fork, which is
unsafe beside CUDA; its calls can wait for ever; and its licence is the AGPL.

    {"gpu_load": 0.31, "gpu_hz": 1575000000, "power_mode": "MAXN", "fans": {"pwmfan": 0.4}, "lacks": ["power"]}
    {"error": "The jtop.service is not active. ..."}

After an error the process ends. It ends too with its standard input, whatever it waits for.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

INTERVAL_S: Final = 2.0
"""Between two samples. The service takes a fifth of a core at its own interval of one second."""

_MEGAHERTZ_BELOW: Final = 10_000
"""NVML counts in MHz and sysfs, which jtop falls back to, in kHz under the same name. No GPU runs at 10 GHz, and none
at 10 MHz."""


def samples(jetson: Any) -> Iterator[dict[str, object]]:  # noqa: ANN401  jtop ships no types
    """Give one sample after another, for as long as the service has new ones."""
    while jetson.ok():
        yield sample(jetson)


def sample(jetson: Any) -> dict[str, object]:  # noqa: ANN401
    """Take what sysfs cannot tell. All of it may be missing, and every value may be None."""
    nvpmodel = jetson.nvpmodel
    gpus = [gpu for gpu in _items(jetson.gpu).values() if _within(gpu, "type") == "integrated"]
    gpu = gpus[0] if gpus else {}
    return {
        "gpu_load": _share(_within(gpu, "status", "load")),
        "gpu_hz": _hertz(_within(gpu, "freq", "cur")) if _within(gpu, "power_control") == "nvml" else None,
        "power_mode": str(nvpmodel.name) if nvpmodel is not None else None,
        "fans": {str(name): _share(speed) for name, speed in _fan_speeds(jetson.fan)},
        "lacks": [] if _within(jetson.power, "rail") else ["power"],
    }


def _items(table: Any) -> dict[str, Any]:  # noqa: ANN401
    """Take jtop's own tables, which are no mappings though they have items, and whatever else there may be instead."""
    return dict(table.items()) if hasattr(table, "items") else {}


def _within(table: object, *keys: str) -> object:
    for key in keys:
        if not isinstance(table, Mapping):
            return None
        table = table.get(key)
    return table


def _fan_speeds(fans: object) -> Iterator[tuple[str, object]]:
    for name, fan in _items(fans).items():
        speeds = _within(fan, "speed")
        if isinstance(speeds, list) and speeds:
            yield name, speeds[0]


def _share(percent: object) -> float | None:
    if not isinstance(percent, (int, float)) or not 0 <= percent <= 100:  # noqa: PLR2004  per cent
        return None
    return round(percent / 100, 3)


def _hertz(value: object) -> int | None:
    if not isinstance(value, (int, float)) or value <= 0:
        return None
    return int(value * (1_000_000 if value < _MEGAHERTZ_BELOW else 1000))


def _tell(line: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> int:
    """Tell samples until something fails, and then what."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        from jtop import jtop  # noqa: PLC0415  in this process only

        with jtop(interval=INTERVAL_S) as jetson:
            for line in samples(jetson):
                _tell(line)
        _tell({"error": "the jtop service has no new samples"})
    except BrokenPipeError:
        return 0
    except ImportError as error:
        _tell({"error": f"jetson-stats cannot be loaded: {error}"})
    except Exception as error:  # noqa: BLE001  the parent tells and tries again
        text = " ".join(str(error).split()) or type(error).__name__
        advice = " (is speakd's user in the group jtop?)" if isinstance(error.__context__, PermissionError) else ""
        _tell({"error": text + advice})
    return 1


if __name__ == "__main__":
    # Its threads and its service's connection may hang: this process leaves without them.
    os._exit(main())

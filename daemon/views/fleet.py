"""`speakd fleet`: all devices of a broker, the worst first."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from daemon.config import MqttConfig
from daemon.errors import DaemonError
from daemon.views.seen import Fleet, Rank, Seen, clean
from daemon.views.watch import Heard, Link, Watch

_QUIET_S: Final = 0.7
"""After the last of what the broker has kept: there is no more."""

_COLUMNS: Final = (
    "device", "state", "mode", "p50 ms", "p95 ms", "p99 ms", "rtf", "queue", "°C", "W", "MiB", "trouble",
)  # fmt: skip
_RIGHT: Final = frozenset(_COLUMNS[3:11])

_COLOURS: Final = {Rank.NOTICE: "36", Rank.WARNING: "33", Rank.CRITICAL: "31", Rank.GONE: "31;1"}


def run(mqtt: MqttConfig, *, as_json: bool, wait_s: float) -> int:
    """Print what the broker keeps of every device; gives the exit status: 1 where one is in serious trouble.

    DaemonError where the broker cannot be reached within `wait_s`.
    """
    fleet = look(mqtt, wait_s)
    now = time.monotonic()
    devices = fleet.worst_first(now)
    if as_json:
        print(json.dumps([described(seen, now) for seen in devices], ensure_ascii=False))
    elif devices:
        print(table(devices, now, colours=sys.stdout.isatty()))
    else:
        print("no device has said anything on this broker", file=sys.stderr)
    return int(any(seen.trouble(now)[0] >= Rank.CRITICAL for seen in devices))


def look(mqtt: MqttConfig, wait_s: float) -> Fleet:
    """Give all that the broker keeps; it is over once nothing of that came for a moment.

    DaemonError where the broker lets us hear nothing within `wait_s`.
    """
    fleet = Fleet()
    heard: set[tuple[str, str]] = set()
    watch = Watch(mqtt, kinds=("status", "settings", "telemetry"))
    try:
        deadline, quiet_at, problem = time.monotonic() + wait_s, math.inf, "it does not answer"
        while (now := time.monotonic()) < min(deadline, quiet_at):
            match watch.next(min(deadline, quiet_at) - now):
                case Heard(device, kind) as message:
                    fleet.take(message, now)
                    problem = ""  # where the broker refuses some of what we ask for, it tells the rest
                    if (device, kind) not in heard:
                        heard.add((device, kind))
                        quiet_at = now + _QUIET_S
                case Link(up=True):
                    quiet_at, problem = now + _QUIET_S, ""
                case Link(problem=told):
                    quiet_at, problem = math.inf, told or problem or "the connection was lost"
                case _:
                    pass
    finally:
        watch.close()
    if problem:
        raise DaemonError(
            f"the broker {mqtt.host}:{mqtt.port} cannot be reached or heard within {wait_s:g} s: {problem}"
        )
    return fleet


def described(seen: Seen, now: float) -> dict[str, Any]:
    """Give what is known of a device, for programs."""
    rank, trouble = seen.trouble(now)
    return {
        "device": seen.name,
        "rank": rank.name.lower(),
        "trouble": trouble,
        "status": seen.status.model_dump(mode="json") if seen.status else None,
        "telemetry": seen.telemetry.model_dump(mode="json") if seen.telemetry else None,
    }


def table(devices: Sequence[Seen], now: float, *, colours: bool = False) -> str:
    """Give a table; `trouble` comes last, since it may be long."""
    rows = [_row(seen, now) for seen in devices]
    widths = [max(len(row[i]) for row in [*rows, _COLUMNS]) for i in range(len(_COLUMNS))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if name in _RIGHT else cell.ljust(width)
            for name, cell, width in zip(_COLUMNS, cells, widths, strict=True)
        ]
        return "  ".join(padded).rstrip()

    lines = [line(_COLUMNS)]
    for seen, row in zip(devices, rows, strict=True):
        colour = _COLOURS.get(seen.trouble(now)[0])
        lines.append(f"\x1b[{colour}m{line(row)}\x1b[0m" if colours and colour else line(row))
    return "\n".join(lines)


def _row(seen: Seen, now: float) -> list[str]:
    figures = seen.telemetry
    response = figures.ttfa_ms.response if figures else None
    state: str = seen.status.state if seen.status else "?"
    if state == "online" and figures is not None and figures.speaking:
        state = "speaking"
    return [
        seen.name,
        state,
        clean(figures.mode) if figures and figures.mode else "-",
        *(_number(getattr(response, share, None)) for share in ("p50", "p95", "p99")),
        _number(figures and figures.rtf, 3),
        _number(figures and figures.queue),
        _number(seen.hottest and seen.hottest[1], 1),
        _number(figures and figures.power_mw is not None and figures.power_mw / 1000, 1),
        _number(figures and figures.memory_mb.process),
        seen.trouble(now)[1],
    ]


def _number(value: float | object | None, digits: int = 0) -> str:
    return f"{value:.{digits}f}" if isinstance(value, int | float) and not isinstance(value, bool) else "-"

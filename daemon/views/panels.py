"""What stands in the panels of `speakd top`: pieces of text with their styles, made of what is known of a device.

Pieces and no markup: texts from outside shall say what they say, brackets and all.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from daemon.telemetry_messages import Latency, Percentiles, Telemetry
from daemon.views.seen import Rank, Seen, clean

Pieces: TypeAlias = list[tuple[str, str]]
"""Text and style, such as "bold red" or nothing."""

RANKS: Final = {
    Rank.WELL: "green", Rank.NOTICE: "cyan", Rank.WARNING: "yellow", Rank.CRITICAL: "bold red", Rank.GONE: "bold red",
}  # fmt: skip

_STATES: Final = {"speaking": "bold green", "rendering": "cyan", "interrupted": "yellow", "waiting": "dim"}
_MODES: Final = {"latency": "bold green", "efficiency": "bold cyan", "protect": "bold red"}
_STAGES: Final = {
    "whole": "whole",
    "queue": "in the queue",
    "response": "from its turn",
    "text": "  text",
    "acoustic": "  acoustic",
    "window": "  window",
    "sink": "  output",
}

_NAME, _FIGURE, _BAR = 13, 7, 12
"""Characters: with them a line fits into half of a terminal of 80 columns, beside borders and a scroll bar."""

_SHARES: Final = ("p50", "p95", "p99")
_MOST_COMMANDS: Final = 12
_MOST_ZONES: Final = 6
_MOST_OTHERS: Final = 4
_WARM_C, _HOT_C, _HOTTEST_C = 70.0, 85.0, 100.0
_DIM: Final = "dim"


def head(seen: Seen, problem: str | None, broker: str) -> Pieces:
    """Say who it is and how; `problem`: why there is no connection, None where there is one."""
    name = (f"{seen.name}  ", "bold")
    status = seen.status
    if problem is not None:
        return [name, (clean(f"no connection to {broker} {problem}"), "red")]
    if status is None:
        return [name, (clean(f"nothing is known of it on {broker}"), "yellow")]
    parts = [status.voice, status.backend, status.precision, status.output, f"speakd {status.version}"]
    return [
        name,
        (f"● {status.state}  ", "green" if status.state == "online" else "red"),
        (clean("  ".join(part for part in parts if part)), ""),
    ]


def says(seen: Seen) -> Pieces:
    """Say what it speaks and what waits."""
    pieces: Pieces = []
    settings = seen.settings
    if settings is not None:
        pieces.append((f"volume {settings.volume:g}  rate {settings.rate:g}", _DIM))
        pieces += [("  muted", "yellow")] if settings.muted else []
        pieces += [("  paused", "yellow")] if settings.paused else []
        pieces.append(("\n", ""))
    commands = seen.queue.commands if seen.queue is not None else ()
    if not commands:
        pieces.append(("nothing", _DIM))
    for command in commands[:_MOST_COMMANDS]:
        pieces.append((f"{command.state:<12}", _STATES[command.state]))
        pieces.append((f"{clean(command.priority)[:12]:<13}", _DIM))
        pieces.append((f"{clean(command.text) or f'{command.chars} characters'}\n", ""))
    if len(commands) > _MOST_COMMANDS:
        pieces.append((f"and {len(commands) - _MOST_COMMANDS} more", _DIM))
    return pieces


def stages(latency: Latency) -> Pieces:
    """Say where the time to first audio goes."""
    pieces: Pieces = [("".join((f"{'ms, last hour':<{_NAME}}", *(f"{share:>{_FIGURE}}" for share in _SHARES))), _DIM)]
    for stage, words in _STAGES.items():
        found: Percentiles | None = getattr(latency, stage)
        figures = "".join(f"{figure(getattr(found, share, None), digits=1):>{_FIGURE}}" for share in _SHARES)
        pieces.append((f"\n{words:<{_NAME}}{figures}", "bold" if stage == "response" else ""))
    return pieces


def mode(figures: Telemetry | None) -> Pieces:
    """Say how the board is run, and why."""
    if figures is None:
        return [("unknown", _DIM)]
    pieces: Pieces = [("no governor tells of one", _DIM)]
    if figures.mode is not None:
        pieces = [(clean(figures.mode), _MODES.get(figures.mode, "bold"))]
        pieces.append((f"  {clean(figures.reason or '')}", ""))
    if figures.power_mode:
        pieces.append((f"  (board: {clean(figures.power_mode)})", _DIM))
    if figures.throttling:
        pieces.append((f"\nslowed down by {clean(', '.join(figures.throttling))}", "red"))
    return pieces


def zones(figures: Telemetry | None) -> Pieces:
    """Say how warm it is, the hottest first."""
    found = sorted(figures.temperatures_c.items(), key=lambda one: -one[1]) if figures else []
    if not found:
        return [("no temperature is known", _DIM)]
    pieces: Pieces = []
    for zone, celsius in found[:_MOST_ZONES]:
        colour = "red" if celsius >= _HOT_C else "yellow" if celsius >= _WARM_C else "green"
        pieces.append((f"{clean(zone)[: _NAME - 1]:<{_NAME}}", ""))
        pieces.append((bar(celsius / _HOTTEST_C), colour))
        pieces.append((f" {celsius:5.1f} °C\n", ""))
    return _without_last_break(pieces)


def power(figures: Telemetry | None) -> Pieces:
    """Say what it takes and how busy it is."""
    if figures is None:
        return [("unknown", _DIM)]
    rails = "  ".join(f"{clean(name)} {mw / 1000:.1f} W" for name, mw in list(figures.rails_mw.items())[:_MOST_OTHERS])
    clocks = "  ".join(f"{clean(name)} {mhz} MHz" for name, mhz in list(figures.clocks_mhz.items())[:_MOST_OTHERS])
    board = figure(None if figures.power_mw is None else figures.power_mw / 1000, " W", 1)
    speech = figure(None if figures.energy_mj_per_s is None else figures.energy_mj_per_s / 1000, " J", 1)
    battery = f"  battery {figures.battery_percent} %" if figures.battery_percent is not None else ""
    lines = [
        f"board {board}{battery}",
        f"per second of speech {speech}",
        rails,
        f"CPU {_load(figures.cpu_load)}",
        f"GPU {_load(figures.gpu_load)}",
        clocks,
    ]
    return [("\n".join(line for line in lines if line), "")]


def memory(figures: Telemetry | None) -> Pieces:
    """Say what it takes of memory, and what it has counted."""
    if figures is None:
        return [("unknown", _DIM)]
    sizes = figures.memory_mb
    gpu = f"  GPU {figure(sizes.gpu_used)} of {figure(sizes.gpu, ' MiB')}" if sizes.gpu is not None else ""
    used = f"{figure(sizes.pool_used)} of {figure(sizes.pool, ' MiB')}"
    counts = [
        ("said", figures.utterances),
        ("kept phrases", figures.cache_hits),
        ("failed", figures.failed),
        ("rejected", figures.rejected),
        ("gaps", figures.underruns),
        ("stream drops", figures.encoder_drops),
        ("restarts", figures.restarts),
    ]
    words = [f"{name} {figure(count)}" for name, count in counts]
    return [
        (f"process {figure(sizes.process, ' MiB')}  buffers {used}{gpu}\n", ""),
        ("  ".join(words[:4]) + "\n" + "  ".join(words[4:]) + f"  up {_span(figures.uptime_s)}", ""),
    ]


def trouble(seen: Seen, now: float) -> Pieces:
    """Say what is wrong with it."""
    rank, words = seen.trouble(now)
    return [(words or "none", RANKS[rank])]


def bar(share: float, width: int = _BAR) -> str:
    """Draw a share, 0 to 1."""
    full = round(max(0.0, min(1.0, share)) * width)
    return "█" * full + "░" * (width - full)


def figure(value: float | None, unit: str = "", digits: int = 0) -> str:
    """Write a number, or that there is none."""
    return "-" if value is None else f"{value:.{digits}f}{unit}"


def _load(load: float | None) -> str:
    return "-" if load is None else f"{bar(load)} {100 * load:3.0f} %"


def _span(seconds: int) -> str:
    hours, minutes = divmod(seconds // 60, 60)
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _without_last_break(pieces: Pieces) -> Pieces:
    text, style = pieces[-1]
    return [*pieces[:-1], (text.rstrip("\n"), style)]

"""A simulated day as a picture: the only module that imports matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

from daemon.errors import DaemonError
from power.heat import thresholds_below
from power.mode import Mode
from power.simulated_board import Model
from power.simulation import DAY_S, HOUR_S, STRATEGIES, Course, Strategy, air_c

_COLORS: Final = {"governor": "#0b6e4f", "always_max": "#c1292e", "always_low": "#2b59c3"}
_MODE_COLORS: Final = {Mode.LATENCY: "#f4a259", Mode.EFFICIENCY: "#8cb369", Mode.PROTECT: "#bc4b51"}
_LABELS: Final = {"governor": "governor", "always_max": "always max", "always_low": "always low"}


class DrawingError(DaemonError):
    """There is no picture."""


def require_matplotlib() -> None:
    """DrawingError where it is not installed: before the work, not after it."""
    try:
        import matplotlib as mpl  # noqa: PLC0415  half a second, and an extra that few have

        mpl.use("agg")
    except ImportError as error:
        raise DrawingError("--png needs matplotlib: pip install 'speakd[plot]'") from error


def draw(file: Path, model: Model, courses: Mapping[Strategy, Course], *, sun_c: float) -> None:
    """Draw temperature, mode, time to first sound and energy over the day. DrawingError where it cannot be written."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  see above

    figure, axes = plt.subplots(
        4, 1, figsize=(11, 11), sharex=True, layout="constrained", height_ratios=(4, 0.5, 3, 2.5)
    )
    figure.suptitle(f"A hot day of a kiosk, simulated: {model.name}", fontsize=13)
    _temperatures(axes[0], model, courses, sun_c)
    _modes(axes[1], courses["governor"])
    _first_sounds(axes[2], courses)
    _energies(axes[3], courses)
    axes[3].set_xlim(0, 24)
    axes[3].set_xticks(range(0, 25, 2))
    axes[3].set_xlabel("hour of the day")
    try:
        figure.savefig(file, dpi=110)
    except (OSError, ValueError) as error:  # ValueError: an unknown suffix
        raise DrawingError(f"{file} cannot be written: {error}") from error
    finally:
        plt.close(figure)


def _temperatures(axis: Any, model: Model, courses: Mapping[Strategy, Course], sun_c: float) -> None:  # noqa: ANN401
    minutes = [minute * 60 for minute in range(round(DAY_S / 60))]
    axis.plot([at / HOUR_S for at in minutes], [air_c(at, sun_c) for at in minutes], color="#888", lw=1, label="air")
    for strategy in STRATEGIES:
        hours, values = _split(courses[strategy].temperatures)
        axis.plot(hours, values, color=_COLORS[strategy], lw=1.1, label=_LABELS[strategy])
    protect_c = (thresholds_below(model.limits).of("tj") or 0) / 1000
    for celsius, name in ((model.throttle_c, "the kernel throttles"), (protect_c, "the governor protects")):
        axis.axhline(celsius, color="#444", lw=0.8, ls="--")
        axis.annotate(name, (0.2, celsius), va="bottom", fontsize=8, color="#444")
    axis.set_ylabel("die, °C")
    axis.legend(loc="upper left", bbox_to_anchor=(0.0, 0.83), fontsize=9, frameon=False)
    axis.grid(alpha=0.25)


def _modes(axis: Any, course: Course) -> None:  # noqa: ANN401
    ends = [*(at for at, _ in course.modes[1:]), DAY_S]
    for (begin, mode), end in zip(course.modes, ends, strict=True):
        axis.axvspan(begin / HOUR_S, end / HOUR_S, color=_MODE_COLORS[mode], lw=0)
    for mode, color in _MODE_COLORS.items():
        axis.plot([], [], color=color, lw=6, label=mode.value)
    axis.set_yticks([])
    axis.set_ylabel("governor's\nmode", rotation=0, ha="right", va="center")
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, fontsize=8, frameon=False)


def _first_sounds(axis: Any, courses: Mapping[Strategy, Course]) -> None:  # noqa: ANN401
    """Draw each command, and the median of each hour."""
    for strategy in STRATEGIES:
        course = courses[strategy]
        hours, waits = _split(course.first_sounds)
        axis.plot(hours, [1000 * wait for wait in waits], ".", color=_COLORS[strategy], ms=3, alpha=0.35)
        hourly: dict[int, list[float]] = {}
        for hour, wait in zip(hours, waits, strict=True):
            hourly.setdefault(int(hour), []).append(1000 * wait)
        p95 = f"{_LABELS[strategy]}: p95 {course.first_sound_ms(95):.0f} ms"
        axis.plot(
            [hour + 0.5 for hour in hourly], [median(v) for v in hourly.values()], color=_COLORS[strategy], label=p95
        )
    axis.set_yscale("log")
    axis.set_ylabel("time to first sound, ms\n(lines: median of the hour)")
    axis.yaxis.set_major_formatter("{x:.0f}")
    axis.yaxis.set_minor_formatter("{x:.0f}")
    axis.tick_params(axis="y", which="minor", labelsize=7)
    axis.legend(loc="upper left", fontsize=9, frameon=False)
    axis.grid(alpha=0.25)


def _energies(axis: Any, courses: Mapping[Strategy, Course]) -> None:  # noqa: ANN401
    most = courses["always_max"].energy_j
    for strategy in STRATEGIES:
        course = courses[strategy]
        hours, values = _split(course.energies)
        share = f"{_LABELS[strategy]}: {course.energy_j / 1000:.0f} kJ ({course.energy_j / most:.0%})"
        axis.plot(hours, [joules / 1000 for joules in values], color=_COLORS[strategy], label=share)
    axis.set_ylabel("energy so far, kJ")
    axis.legend(loc="upper left", fontsize=9, frameon=False)
    axis.grid(alpha=0.25)


def _split(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [at / HOUR_S for at, _ in points], [value for _, value in points]

"""`speakd simulate governor`: what the governor is worth, on a board that is simulated."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from power.simulated_board import BOARDS
from power.simulation import STRATEGIES, SUN_C, Course, Strategy, simulate

_TITLES = {"governor": "governor", "always_max": "always max", "always_low": "always low"}
_ROWS = (
    ("throttle_events", "times throttled"),
    ("first_sound_p50_ms", "first sound, p50 (ms)"),
    ("first_sound_p95_ms", "first sound, p95 (ms)"),
    ("energy_j", "energy (J)"),
    ("max_temperature_c", "hottest (°C)"),
    ("switches", "switches of mode"),
)

_HOTTEST_SUN_C = 100


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    simulate_ = commands.add_parser("simulate", help="simulate a day of a kiosk: what the governor is worth")
    simulate_.add_argument("what", choices=("governor",))
    simulate_.add_argument("--board", choices=tuple(BOARDS), default=next(iter(BOARDS)), help="default: %(default)s")
    simulate_.add_argument("--seed", type=int, default=1, help="of visitors and sensors (default: %(default)s)")
    simulate_.add_argument(
        "--sun",
        type=_degrees,
        default=SUN_C,
        metavar="DEGREES",
        help="by which it warms the cabinet (default: %(default)g)",
    )
    simulate_.add_argument("--json", action="store_true", help="print the figures for machines")
    simulate_.add_argument("--png", type=Path, metavar="FILE", help="draw the day too; needs matplotlib")
    simulate_.set_defaults(action=_simulate)


def _degrees(text: str) -> float:
    """Read a difference of temperatures, for argparse."""
    try:
        degrees = float(text)
    except ValueError:
        degrees = math.nan
    if not 0 <= degrees <= _HOTTEST_SUN_C:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to {_HOTTEST_SUN_C} degrees")
    return degrees


def _simulate(options: argparse.Namespace) -> int:
    if options.png is not None:
        from daemon import simulation_png  # noqa: PLC0415  few draw

        simulation_png.require_matplotlib()
    model = BOARDS[options.board]
    courses: dict[Strategy, Course] = {
        strategy: simulate(model, strategy, seed=options.seed, sun_c=options.sun) for strategy in STRATEGIES
    }
    figures = {strategy: course.figures() for strategy, course in courses.items()}
    if options.json:
        print(json.dumps({"board": options.board, **figures}))
    else:
        print(f"A hot day of a kiosk: {model.name}, {len(courses['governor'].first_sounds)} utterances")
        print(f"{'':24}", *(f"{_TITLES[strategy]:>12}" for strategy in STRATEGIES))
        for key, name in _ROWS:
            print(f"{name:24}", *(f"{figures[strategy][key]:12g}" for strategy in STRATEGIES))
    if options.png is not None:
        simulation_png.draw(options.png, model, courses, sun_c=options.sun)
    return 0

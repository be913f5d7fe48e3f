"""The commands that look at devices through a broker: `speakd top`, `fleet` and `dashboard`."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from pydantic import ValidationError

from daemon.config import Config, MqttConfig, load
from daemon.errors import StartError

_LONGEST_WAIT_S = 3600


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add them to the parser of `speakd`; each sets `action`."""
    top = commands.add_parser("top", help="watch a device: what it says, how quickly, how warm")
    top.add_argument("--device", default="", metavar="NAME", help="default: device.name as configured")
    _add_broker(top)
    top.set_defaults(action=_top)

    fleet = commands.add_parser("fleet", help="list all devices of the broker, the worst first")
    fleet.add_argument("--json", action="store_true", help="print all that is known, for a program")
    fleet.add_argument("--wait", type=_seconds, default=5.0, metavar="S", help="for the broker, seconds (default: 5)")
    _add_broker(fleet)
    fleet.set_defaults(action=_fleet)

    dashboard = commands.add_parser("dashboard", help="serve a page that shows the fleet, on this machine only")
    dashboard.add_argument("--port", type=int, default=8480, help="to serve it on (default: 8480)")
    dashboard.add_argument("--folder", type=Path, help="write the page there instead, for any web server")
    dashboard.add_argument(
        "--broker", default="", metavar="URL", help="as a browser reaches it (default: ws://HOST:9001, as configured)"
    )
    dashboard.set_defaults(action=_dashboard)


def _add_broker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="of the broker (default: as configured)")
    parser.add_argument("--port", type=int, help="of the broker (default: as configured)")


def _seconds(text: str) -> float:
    """Read a time to wait, for argparse."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST_WAIT_S:
        raise argparse.ArgumentTypeError(f"{text} is no time from 0 to {_LONGEST_WAIT_S} seconds")
    return seconds


def _mqtt(options: argparse.Namespace, config: Config) -> MqttConfig:
    """Give the broker. StartError where host or port cannot be one."""
    wanted = {key: value for key in ("host", "port") if (value := getattr(options, key)) is not None}
    try:
        return MqttConfig.model_validate({**config.mqtt.model_dump(), **wanted})
    except ValidationError as error:
        raise StartError(f"--host {options.host} --port {options.port} cannot be a broker's address") from error


def _top(options: argparse.Namespace) -> int:
    from daemon.views import top  # noqa: PLC0415  loads textual, 0.3 s

    config = load(options.config)
    return top.run(_mqtt(options, config), options.device or config.device.name)


def _fleet(options: argparse.Namespace) -> int:
    from daemon.views import fleet  # noqa: PLC0415  the daemon itself needs no view

    return fleet.run(_mqtt(options, load(options.config)), as_json=options.json, wait_s=options.wait)


def _dashboard(options: argparse.Namespace) -> int:
    from daemon.views import dashboard  # noqa: PLC0415  likewise

    return dashboard.run(load(options.config), port=options.port, folder=options.folder, broker=options.broker)

"""What stands in the journal, and how it is written there."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from typing import Any

from daemon.clock import Clock
from daemon.commands import Speak
from daemon.inbox import Origin

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """An accepted command without an end."""

    command: Speak
    origin: Origin
    accepted: Clock
    begun: bool


@dataclass(frozen=True, slots=True)
class Untold:
    """A final event that the broker has not acknowledged."""

    id: str
    final: str
    """Its payload."""
    origin: Origin


def dump(value: object) -> str:
    """Write JSON in ASCII: a text may hold half a character, which UTF-8 cannot."""
    return json.dumps(value, ensure_ascii=True)


def entry_of(row: tuple[Any, ...]) -> Entry | None:
    """Read a command, where it came from, the three times of its acceptance and whether it was begun.

    None where a bit of it is lost, which is told: one command's fault must not be that of all.
    """
    command, origin, *accepted, begun = row
    try:
        read = Speak.model_validate(json.loads(command))
        return Entry(read, origin_from_json(origin), Clock(*accepted), bool(begun))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        _LOG.error("a command in the journal makes no sense: %s", error)
        return None


def origin_to_json(origin: Origin) -> str:
    """Write where a command came from."""
    return dump({**asdict(origin), "correlation": origin.correlation.hex()})


def origin_from_json(text: str) -> Origin:
    """Read it again."""
    value = json.loads(text)
    properties = tuple((name, content) for name, content in value["properties"])
    correlation = bytes.fromhex(value["correlation"])
    return Origin(value["reply_to"], correlation, properties, value.get("route", ""))  # journals of before have none

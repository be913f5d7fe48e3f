"""The contract in the words of machines: AsyncAPI 3 and JSON Schema, made from the models that are in use.

https://www.asyncapi.com/docs/reference/specification/v3.0.0
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from daemon.command_fields import Command
from daemon.commands import COMMANDS, Speak
from daemon.events import Event, QueuedCommand, Rejected, Settings, Status, VoiceInfo
from daemon.telemetry_messages import Alert, Latency, Memory, SelfCheck, Telemetry, VoiceLoads

CONTRACT: Final = "1.0.0"
"""The contract's own version. The first number counts changes that break what worked, the second additions."""

Json: TypeAlias = dict[str, Any]

_READ: Final[tuple[type[BaseModel], ...]] = tuple(COMMANDS.values())
_EVENTS: Final[tuple[type[BaseModel], ...]] = get_args(Event)
_TOLD: Final[tuple[type[BaseModel], ...]] = (*_EVENTS, Settings, Status, Telemetry, Alert)

_PARTS: Final[tuple[type[BaseModel], ...]] = (QueuedCommand, VoiceInfo, Latency, Memory, SelfCheck, VoiceLoads)
"""What stands within those."""

_WRITES_NULL: Final = (Rejected, Telemetry, Alert)
"""Whose fields are all there, even where they are null. In others what is null is left out."""

_QOS: Final = {"telemetry": 0}
"""Of what has another one than 1."""

_RETAINED: Final = ("settings", "status", "telemetry")

_SCHEMAS: Final = "#/components/schemas/"

_SPEAKS_OF: Final = (
    "The topics of one robot's or kiosk's voice. Everything is published and subscribed with QoS 1, "
    "but for telemetry, with QoS 0."
)

_SCOPE: Final = {
    "description": "A device's name; `all` for every device; `group/<name>` for those of a group.",
    "examples": ["kiosk-7", "all", "group/lobby"],
}
_PREFIX: Final = {"description": "`mqtt.topic_prefix` of the configuration.", "default": "speakd"}
_DEVICE: Final = {"description": "`device.name` of the configuration.", "examples": ["kiosk-7"]}
_ID: Final = {"description": "The command's `id`; what a topic cannot hold is `_`."}

_TEXT_TOO: Final = " Plain UTF-8 text stands for an object with `{}` alone."


def asyncapi() -> Json:
    """Give the AsyncAPI 3 document. A client receives what it calls `send`: it is written from the device's side."""
    messages = {
        **{_name(kind): _message(kind) for kind in (*_READ, *_TOLD)},
        "audio": {
            "name": "audio",
            "summary": "A piece of a stream: some Ogg pages",
            "contentType": "audio/ogg",
            "payload": {"type": "string", "format": "binary"},
        },
    }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "speakd",
            "version": CONTRACT,
            "description": _SPEAKS_OF,
            "license": {"name": "GPL-3.0-or-later"},
        },
        "defaultContentType": "application/json",
        "channels": {**_command_channels(), **_device_channels()},
        "operations": {**_command_operations(), **_device_operations()},
        "components": {"messages": messages, "schemas": _schemas(_SCHEMAS)},
    }


def json_schema() -> Json:
    """Give all payloads as one JSON Schema, each under `$defs`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"speakd's payloads, contract {CONTRACT}",
        "$defs": _schemas("#/$defs/"),
    }


def to_text(document: Json) -> str:
    """Give a document as it is printed and committed."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _name(kind: type[BaseModel]) -> str:
    """Name a message: an event by its `event`, a command by its class."""
    field = kind.model_fields.get("event")
    name: str = field.default if field is not None else kind.__name__
    return name[0].lower() + name[1:]


def _channel_name(end: str) -> str:
    first, *rest = end.split("/")
    return first + "".join(part.capitalize() for part in rest)


def _command_channels() -> Json:
    channels: Json = {}
    for end, kind in COMMANDS.items():
        channels[_channel_name(end)] = {
            "address": f"{{prefix}}/{{scope}}/{end}",
            "summary": _summary(kind),
            "parameters": {"prefix": _PREFIX, "scope": _SCOPE},
            "messages": {_name(kind): _message_ref(_name(kind))},
        }
    channels["render"] = {
        "address": "{prefix}/render",
        "summary": "Speak commands with output `file` or `stream`, shared among the devices that take some",
        "parameters": {"prefix": _PREFIX},
        "messages": {"speak": _message_ref("speak")},
    }
    return channels


def _device_channels() -> Json:
    own = {"prefix": _PREFIX, "device": _DEVICE}

    def channel(end: str, summary: str, names: Iterator[str], **more: Mapping[str, object]) -> Json:
        return {
            "address": f"{{prefix}}/{{device}}/{end}",
            "summary": summary,
            "parameters": {**own, **more},
            "messages": {name: _message_ref(name) for name in names},
        }

    events = "What becomes of each command. The same goes to the command's response topic, or `reply_to`"
    return {
        "event": channel("event", events, map(_name, _EVENTS)),
        "settings": channel("settings", "Retained: what may change while it runs", iter(["settings"])),
        "status": channel("status", "Retained: whether it is there, and how it is", iter(["status"])),
        "telemetry": channel("telemetry", "Retained: figures, every some seconds", iter(["telemetry"])),
        "alert": channel("alert", "A figure has left its bounds, or is back", iter(["alert"])),
        "audio": channel("audio/{id}", "Speech of a command with output `stream`", iter(["audio"]), id=_ID),
    }


def _command_operations() -> Json:
    operations: Json = {}
    for end, kind in COMMANDS.items():
        operations[_channel_name(end)] = _operation("receive", _channel_name(end), [_name(kind)]) | {
            "reply": {
                "channel": {"$ref": "#/channels/event"},
                "messages": [_channel_message_ref("event", name) for name in _answers(kind)],
            }
        }
    operations["render"] = _operation("receive", "render", ["speak"])
    return operations


def _device_operations() -> Json:
    return {
        "tellEvent": _operation("send", "event", [_name(kind) for kind in _EVENTS]),
        "tellSettings": _operation("send", "settings", ["settings"]),
        "tellStatus": _operation("send", "status", ["status"]),
        "tellTelemetry": _operation("send", "telemetry", ["telemetry"]),
        "tellAlert": _operation("send", "alert", ["alert"]),
        "sendAudio": _operation("send", "audio", ["audio"]),
    }


def _operation(action: Literal["receive", "send"], channel: str, names: list[str]) -> Json:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "bindings": {"mqtt": {"qos": _QOS.get(channel, 1), "retain": channel in _RETAINED}},
        "messages": [_channel_message_ref(channel, name) for name in names],
    }


def _answers(kind: type[Command]) -> list[str]:
    """Give the events that answer a command."""
    if kind is Speak:
        of_others = {"done", "queue", "voices", "lexicon", "pong"}
        return [name for name in map(_name, _EVENTS) if name not in of_others]
    own = {"QueueGet": "queue", "VoicesGet": "voices", "LexiconGet": "lexicon", "Ping": "pong"}
    return [own.get(kind.__name__, "done"), "rejected"]


def _message(kind: type[BaseModel]) -> Json:
    shorthand = getattr(kind, "shorthand", "")
    description = inspect.getdoc(kind) or ""
    return {
        "name": _name(kind),
        "summary": _summary(kind),
        "description": description + (_TEXT_TOO.format(shorthand) if shorthand else ""),
        "payload": {"$ref": _SCHEMAS + kind.__name__},
    }


def _summary(kind: type[BaseModel]) -> str:
    return (inspect.getdoc(kind) or "").splitlines()[0].rstrip(".")


def _message_ref(name: str) -> Json:
    return {"$ref": f"#/components/messages/{name}"}


def _channel_message_ref(channel: str, name: str) -> Json:
    return {"$ref": f"#/channels/{channel}/messages/{name}"}


def _schemas(refs: str) -> Json:
    """Give the schemas of all payloads: of commands as they are read, of what a device says as it is written."""
    kinds: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = [
        *((kind, "validation") for kind in _READ),
        *((kind, "serialization") for kind in _TOLD),
    ]
    _, document = models_json_schema(kinds, ref_template=refs + "{model}")
    schemas: Json = document["$defs"]
    for schema in schemas.values():
        for field in schema.get("properties", {}).values():
            field.pop("title", None)  # the name once more, in capitals
    for kind in (*_READ, *_TOLD, *_PARTS):
        schema = schemas[kind.__name__]
        for field, words in _descriptions(kind).items():
            schema["properties"][field].setdefault("description", words)
        if kind in _TOLD:
            schema["required"] = [
                name for name, field in schema["properties"].items() if kind in _WRITES_NULL or not _may_be_null(field)
            ]
    return schemas


def _may_be_null(field: Json) -> bool:
    """Tell whether a field of what a device says may be left out: what is null is not written (`to_json`)."""
    return {"type": "null"} in field.get("anyOf", [])


def _descriptions(kind: type[BaseModel]) -> dict[str, str]:
    """Give what stands under each field in the code."""
    found: dict[str, str] = {}
    for model in reversed(kind.__mro__):
        if not issubclass(model, BaseModel) or model is BaseModel:
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
        if isinstance(body, ast.ClassDef):
            for field, words in zip(body.body, body.body[1:], strict=False):
                match field, words:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ) if name in kind.model_fields:
                        found[name] = inspect.cleandoc(text)
    return found

"""How a payload becomes a command, and what is told of one that is none."""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from daemon.command_fields import Command
from daemon.commands import Speak
from daemon.errors import PayloadError
from engines import blends
from engines.errors import SsmlError, StyleError, excerpt

_MOST_PROBLEMS: Final = 5
"""With one command that are told."""

_KINDS: Final = {list: "an array", str: "a string", int: "a number", float: "a number", bool: "true or false"}
"""What JSON calls the values that are no objects."""

C = TypeVar("C", bound=Command)


def parse_command(kind: type[C], payload: bytes, *, max_text_chars: int) -> C:
    """Read a payload: a JSON object as `kind` has it, nothing, or what its `shorthand` field takes.

    Plain UTF-8 text is that for `Speak`. PayloadError says what is wrong.
    """
    try:
        text = payload.decode("utf-8-sig")  # some editors and shells put a byte order mark first
    except UnicodeDecodeError as error:
        raise PayloadError("encoding", f"the payload is not UTF-8 (byte {error.start})") from None
    command = make_command(kind, _fields(kind, text))
    if isinstance(command, Speak) and (length := _chars(command)) > max_text_chars:
        raise PayloadError("too_long", f"the text has {length} characters, {max_text_chars} are allowed", command.id)
    return command


def _chars(command: Speak) -> int:
    """Give the characters that are to be spoken; PayloadError where its SSML is none."""
    try:
        return command.script.chars
    except SsmlError as error:
        raise PayloadError(error.code, str(error), command.id) from error


def _check_style(command: Speak) -> None:
    """Refuse what is no style whatever the voice: PayloadError."""
    try:
        blends.check(command.style or "", command.style_vector or "")
    except StyleError as error:
        raise PayloadError("style", str(error), command.id) from error


def make_command(kind: type[C], fields: dict[str, Any]) -> C:
    """Make a command of its fields. PayloadError names those that are wrong, or tells where its SSML is."""
    try:
        command = kind.model_validate(fields)
    except ValidationError as error:
        problems = "; ".join(_problem(detail) for detail in error.errors()[:_MOST_PROBLEMS])
        raise PayloadError("field", problems, _id_of(kind, fields)) from None
    if isinstance(command, Speak) and command.ssml is not None:
        _chars(command)
    if isinstance(command, Speak):
        _check_style(command)
    return command


def _fields(kind: type[Command], text: str) -> dict[str, Any]:
    if not text and kind is not Speak:
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("{") or not kind.shorthand:
            raise PayloadError("json", f"the payload should be a JSON object but is no JSON: {error}") from None
        value = {kind.shorthand: text}
    if isinstance(value, dict):
        return value
    if kind is Speak or not kind.shorthand:
        name = _KINDS.get(type(value), "null")
        advice = 'to have it spoken, send {"text": …}' if kind is Speak else "send {}"
        raise PayloadError("json", f"the payload is JSON but {name}, not an object: {advice}")
    return {kind.shorthand: value}


def _problem(detail: Any) -> str:  # noqa: ANN401  pydantic's own type of it is a dict of anything
    where = ".".join(excerpt(str(part)) for part in detail["loc"][:1])
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _id_of(kind: type[Command], fields: dict[str, Any]) -> str | None:
    """Give the sender's id, where it is a usable one, so that even a refusal can be matched."""
    try:
        return Speak.model_validate({"id": fields.get("id" if kind is Speak else "request"), "text": ""}).id
    except ValidationError:
        return None

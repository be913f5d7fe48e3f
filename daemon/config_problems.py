"""What pydantic refused, in words for whoever wrote the file: the key, what was given, what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from daemon.config_toml import toml_key, toml_value

KeySchema: TypeAlias = dict[str, Any]
"""JSON Schema of one key, its description being "what it is; unit"."""

Keys: TypeAlias = Mapping[str, Mapping[str, KeySchema]]
"""Every key there is, by section and name."""

_LONGEST_TEXT: Final = 60
"""Characters of a given text that are repeated in a message."""

_LONGEST_INTEGER: Final = 64
"""Bits of a given integer that is repeated in a message: TOML's own limit. str() refuses really long ones."""


def allowed(key: KeySchema) -> str:
    """Say which values a key takes, with the unit of a number."""
    unit = key["description"].partition("; ")[2]
    rule: KeySchema = key["anyOf"][0] if "anyOf" in key else key
    suffix = f" ({unit})" if unit else ""
    if "const" in rule:
        return toml_value(rule["const"]) + suffix
    if "enum" in rule:
        return "one of " + ", ".join(map(toml_value, rule["enum"])) + suffix
    if rule["type"] == "boolean":
        return "true or false"
    if rule["type"] in {"string", "array"}:
        return str(unit)
    number = "an integer" if rule["type"] == "integer" else "a number"
    return f"{number} from {rule['minimum']} to {rule['maximum']}{suffix}"


def problems(error: ValidationError, keys: Keys) -> list[str]:
    """Put every mistake that pydantic found into one line of text each."""
    return [_problem(detail, keys) for detail in error.errors(include_url=False)]


def _problem(detail: ErrorDetails, keys: Keys) -> str:
    section, *rest = map(str, detail["loc"])
    given: object = detail["input"]
    if detail["type"] == "extra_forbidden":
        return _unknown_key(section, rest[0], keys) if rest else _unknown_section(section, given, keys)
    if not rest:
        return f"[{section}]: got {_shown(given)}, must be one section [{section}] with keys under it"
    name = rest[0]
    cross_check = detail.get("ctx", {}).get("error")
    wanted = allowed(keys[section][name]) if cross_check is None else str(cross_check)
    return f"[{section}] {name}: got {_shown(given)}, must be {wanted}"


def _unknown_section(name: str, given: object, keys: Keys) -> str:
    shown = _shown_key(name)
    if isinstance(given, (dict, list)):
        return f"[{shown}]: unknown section{_did_you_mean(_nearest(name, keys), '[{}]')}"
    homes = [section for section in keys if name in keys[section]]
    return f"{shown}: this key stands outside any section{_did_you_mean(homes, f'[{{}}] {name}')}"


def _unknown_key(section: str, name: str, keys: Keys) -> str:
    nearest = _did_you_mean(_nearest(name, keys[section]), "{}")
    if not nearest:
        homes = [other for other in keys if name in keys[other]]
        nearest = _did_you_mean(homes, f"[{{}}] {name}")
    return f"[{section}] {_shown_key(name)}: unknown key{nearest}"


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name.lower(), known, n=1)


def _did_you_mean(names: list[str], form: str) -> str:
    return f", did you mean `{form.format(names[0])}`?" if names else ""


def _shown_key(name: str) -> str:
    return toml_key(name if len(name) <= _LONGEST_TEXT else name[:_LONGEST_TEXT] + "…")


def _shown(given: object) -> str:
    if isinstance(given, dict):
        return "a table"
    if isinstance(given, list):
        return "an array"
    if isinstance(given, int) and given.bit_length() > _LONGEST_INTEGER:
        return f"an integer of {given.bit_length()} bits"
    if isinstance(given, str) and len(given) > _LONGEST_TEXT:
        return toml_value(given[:_LONGEST_TEXT] + "…")
    return toml_value(given)

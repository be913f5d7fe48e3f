"""TOML in and out: a file to a table, a value to the text that stands for it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from daemon.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_POSITION: Final = re.compile(r"(?s)(.*) \(at (?:line (\d+), column (\d+)|end of document)\)")
"""Where tomllib says the mistake is. As attributes, line and column only exist from Python 3.14 on."""

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def read_toml(path: Path) -> dict[str, object]:
    """Read the TOML file `path`.

    FileNotFoundError where there is none; ConfigError where it cannot be read, or is not UTF-8 or not TOML.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise
    except IsADirectoryError as error:
        raise ConfigError(path, ["this is a folder, not a file"]) from error
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from error
    try:
        text = raw.decode("utf-8-sig")  # some editors put a byte order mark first, which tomllib refuses
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(path, [f"line {line}: byte 0x{error.object[error.start]:02x} is not UTF-8"]) from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, [_syntax_problem(str(error), text)]) from error
    except RecursionError as error:
        raise ConfigError(path, ["arrays or tables are nested too deeply"]) from error
    except ValueError as error:  # from int(), which takes 4300 digits at most
        raise ConfigError(path, ["a number has too many digits"]) from error


def toml_value(value: object) -> str:
    """Write a string, number, boolean or list of them as TOML, on one line and safe to print on a terminal."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_escaped(character) for character in value) + '"'
    return str(value)


def toml_key(name: str) -> str:
    """Write a key as TOML: bare where TOML allows it, else quoted."""
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004  what four hex digits hold


def _syntax_problem(message: str, text: str) -> str:
    found = _POSITION.fullmatch(message)
    if found is None:
        return message
    what, line, column = found.groups()
    if line is None:
        lines = text.split("\n")
        line, column = len(lines), len(lines[-1]) + 1
    return f"line {line}, column {column}: {what}"

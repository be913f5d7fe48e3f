"""What `speakd config` prints: the configuration as TOML with comments, its JSON Schema, or what is wrong with it."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from daemon.config import DEFAULT_PATH, Config, load, section_keys
from daemon.config_problems import KeySchema, allowed
from daemon.config_section import Section
from daemon.config_toml import toml_value
from daemon.errors import ConfigError


def show(config: Config) -> str:
    """Write the whole configuration as TOML that loads to the same, with what each key is, allows and defaults to."""
    return "\n".join(line for name, section in config for line in _section_lines(name, section))


def schema() -> dict[str, object]:
    """Describe the configuration as JSON Schema."""
    return Config.model_json_schema()


def config_command(action: str, path: Path | None) -> int:
    """Run `speakd config ACTION` on the file `path`, or the default one where None.

    `show` and `schema` print to standard output; `check` says that all is well. Returns the exit status:
    2 where the configuration cannot be used, with one line on standard error for each problem.
    """
    if action not in {"show", "check", "schema"}:
        raise ValueError(f"no such action: {action}")
    if action == "schema":
        sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
        return 0
    try:
        config = load(path)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if action == "show":
        sys.stdout.write(show(config))
    else:
        file = path or DEFAULT_PATH
        sys.stdout.write(f"{file}: ok\n" if file.exists() else f"{file}: ok, there is none: all defaults\n")
    return 0


def _section_lines(name: str, section: Section) -> Iterator[str]:
    yield from _comment(section.__doc__ or "")
    yield f"[{name}]"
    keys = section_keys(type(section))
    for key, value in section:
        yield from _comment(
            _explanation(keys[key], type(section).model_fields[key].get_default(call_default_factory=True))
        )
        if value is None:
            yield f"# {key} = {toml_value(keys[key]['examples'][0])}"
        else:
            yield f"{key} = {toml_value(value)}"
    yield ""


def _explanation(key: KeySchema, default: object) -> str:
    what = key["description"].partition("; ")[0]
    return f"{what}. Allowed: {allowed(key)}. Default: {'left out' if default is None else toml_value(default)}."


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text, 100, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
    )

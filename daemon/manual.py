"""The manual pages speakd(1) and speakd.toml(5), written from what reads the command line and the configuration."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from typing import Final

from daemon.config import Config, section_keys
from daemon.config_problems import allowed
from daemon.config_toml import toml_value

_ONE_LINE: Final = "a neural voice for robots and kiosks"

_DESCRIPTION: Final = (
    "speakd speaks what arrives over MQTT through the loudspeaker of this machine. `speakd run` is what its systemd "
    "unit starts; the other commands set it up, try it out and look into it."
)
_STATUS: Final = (
    ("0", "Done; of `speakd doctor`: no fault was found."),
    ("1", "Failed, with the reason on standard error; of `speakd doctor`: there are faults."),
    ("2", "Wrongly asked: the command line or the configuration cannot be used."),
    ("130", "Interrupted."),
)
_FILES: Final = (
    ("/etc/speakd/speakd.toml", "The configuration: speakd.toml(5)."),
    ("/var/lib/speakd", "Voices, the journal, files of speech."),
    ("/var/cache/speakd", "Phrases that are said again, and TensorRT's plans. May be deleted."),
)


def command_page(parser: argparse.ArgumentParser, version: str) -> str:
    """Write speakd(1) for a parser, in the man macros of roff."""
    return "\n".join(_command_lines(parser, version)) + "\n"


def config_page(version: str) -> str:
    """Write speakd.toml(5), in the man macros of roff."""
    return "\n".join(_config_lines(version)) + "\n"


def _command_lines(parser: argparse.ArgumentParser, version: str) -> Iterator[str]:
    yield from _head("SPEAKD", 1, version, f"speakd \\- {_ONE_LINE}")
    yield from (".SH SYNOPSIS", ".B speakd", "[\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]")
    yield from (".SH DESCRIPTION", _paragraph(_DESCRIPTION), ".SH OPTIONS")
    yield from _arguments(parser)
    yield ".SH COMMANDS"
    for words, told, command in _commands(parser, "speakd"):
        yield from (f".SS {_escaped(words)}", _paragraph(_sentence(told)))
        yield from _arguments(command)
    yield ".SH EXIT STATUS"
    yield from _list(_STATUS)
    yield ".SH FILES"
    yield from _list(_FILES)
    yield from (".SH SEE ALSO", ".BR speakd.toml (5),", ".BR systemctl (1),", ".BR journalctl (1)")


def _config_lines(version: str) -> Iterator[str]:
    yield from _head("SPEAKD.TOML", 5, version, "speakd.toml \\- configuration of speakd")
    yield from (".SH SYNOPSIS", ".I /etc/speakd/speakd.toml", ".SH DESCRIPTION")
    yield _paragraph(
        "A TOML file. It need not exist, and each key may be left out: speakd then goes by the default. It is read "
        "once, at start; a mistake keeps speakd from starting, and `speakd config check` tells all of them at once. "
        "`speakd config show` prints the configuration as it is in effect, with comments."
    )
    for name, section in Config():
        yield from (f".SH [{_escaped(name)}]", _paragraph(_sentence(section.__doc__ or "")))
        fields = type(section).model_fields
        for key, described in section_keys(type(section)).items():
            default = fields[key].get_default(call_default_factory=True)
            computed = fields[key].default_factory is not None  # by this machine, not by that of the reader
            told = "left out" if default is None else "of this machine" if computed else toml_value(default)
            yield from (".TP", f".B {_escaped(key)}")
            yield _paragraph(f"{_sentence(described['description'].partition('; ')[0])} Allowed: {allowed(described)}.")
            yield f"Default: \\fI{_escaped(told)}\\fR."
    yield from (".SH SEE ALSO", ".BR speakd (1)")


def _head(title: str, section: int, version: str, name: str) -> Iterator[str]:
    # No date: the same sources make the same page.
    yield f'.TH {title} {section} "" "speakd {_escaped(version)}" "speakd"'
    yield from (".SH NAME", name)


def _commands(parser: argparse.ArgumentParser, words: str) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yield each command that can be given, however deep: its words, what it does, its parser."""
    for action in parser._actions:  # noqa: SLF001  argparse has no other way to ask
        if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  the same
            continue
        told = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001  the same
        for name, command in action.choices.items():
            deeper = list(_commands(command, f"{words} {name}"))
            yield from deeper or [(f"{words} {name}", told.get(name, ""), command)]


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001  argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):  # noqa: SLF001  the same
            continue
        value = action.metavar if isinstance(action.metavar, str) else action.dest
        value = "|".join(str(choice) for choice in action.choices) if action.choices else value
        shown = f"\\fI{_escaped(value)}\\fR"
        if action.option_strings:
            names = ", ".join(f"\\fB{_escaped(name)}\\fR" for name in action.option_strings)
            shown = names if action.nargs == 0 else f"{names} {shown}"
        told = (action.help or "") % vars(action)  # as argparse itself does
        yield from (".TP", shown, _paragraph(_sentence(told)))


def _list(entries: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name, told in entries:
        yield from (".TP", f".B {_escaped(name)}", _paragraph(told))


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    if not text:
        return ""
    first = text.split(maxsplit=1)[0]
    text = text if ":" in first else text[0].upper() + text[1:]  # a name stays as it is typed
    return text + ("" if text.endswith(".") else ".")


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _paragraph(text: str) -> str:
    """Return text in the short lines that roff's checkers ask for, none of which is taken for a request."""
    lines = textwrap.wrap(text, 70, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(_escaped, lines)) or "\\&"

"""`speakd explain`: what a text is in words, and how it came to be."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

from daemon.config import load
from daemon.config_text_section import normalizer_of

_DEFAULT_LANGUAGE: Final = "en-us"


def add_to(commands: argparse._SubParsersAction[Any]) -> None:  # argparse names its type so
    """Add the command to those of `speakd`."""
    explain = commands.add_parser("explain", help="show how a text is put into words")
    what = explain.add_mutually_exclusive_group(required=True)
    what.add_argument("text", nargs="?", help="show each step that changes it")
    what.add_argument("--lines", metavar="FILE", help='print the words of each line of a file, "-" for stdin')
    explain.add_argument("--language", default=_DEFAULT_LANGUAGE, help=f"of the text (default: {_DEFAULT_LANGUAGE})")
    explain.set_defaults(action=_explain)


def _explain(options: argparse.Namespace) -> int:
    from daemon.views.explain_lines import explain_lines  # noqa: PLC0415  the daemon itself needs no view

    normalizer = normalizer_of(load(options.config).text)(options.language)
    if options.lines is None:
        for step in normalizer.steps(options.text):
            print(f"{step.name:18} {step.text}")
        return 0
    try:
        explain_lines(options.lines, normalizer)
    except OSError as error:
        print(f"speakd: {options.lines}: {error.strerror}", file=sys.stderr)
        return 1
    return 0

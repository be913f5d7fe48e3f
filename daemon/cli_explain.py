"""`speakd explain`: what a text is in words, and how it came to be."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from daemon.config import Config, load
from daemon.config_text_section import normalizer_of
from daemon.journal import Journal
from daemon.lexica import Lexica
from engines.errors import UnknownEspeakVoiceError
from engines.text.espeak_names import espeak_names
from engines.text.explain import Explanation, explain
from engines.text.phonemes import Phonemizer
from engines.text.reading import Front, Reader
from engines.text.script import Script
from engines.text.ssml import script_of

_DEFAULT_LANGUAGE: Final = "en-us"


def add_to(commands: argparse._SubParsersAction[Any]) -> None:  # argparse names its type so
    """Add the command to those of `speakd`."""
    parser = commands.add_parser("explain", help="show how a text is put into words and sounds, without a voice")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("text", nargs="?", help="show each step that changes it")
    what.add_argument("--lines", metavar="FILE", help='print the words of each line of a file, "-" for stdin')
    parser.add_argument("--language", default=_DEFAULT_LANGUAGE, help=f"of the text (default: {_DEFAULT_LANGUAGE})")
    parser.add_argument("--ssml", action="store_true", help="the text is SSML")
    parser.add_argument("--json", action="store_true", help="print it for machines")
    parser.set_defaults(action=_explain, misused=parser.error)


def _explain(options: argparse.Namespace) -> int:
    from daemon.views.explain_lines import explain_lines  # noqa: PLC0415  the daemon itself needs no view

    if options.lines is not None and (options.ssml or options.json):
        options.misused("--ssml and --json are for a text, not for --lines")
    config = load(options.config)
    if options.lines is None:
        return _explain_text(options, config)
    try:
        explain_lines(options.lines, normalizer_of(config.text)(options.language))
    except OSError as error:
        print(f"speakd: {options.lines}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _explain_text(options: argparse.Namespace, config: Config) -> int:
    from daemon.views.explain import as_json, as_text  # noqa: PLC0415  likewise

    with closing(Phonemizer(config.limits.phonemes_timeout_s)) as phonemizer, closing(Journal(None)) as journal:
        lexica = Lexica(Path(config.lexicon.folder), journal)
        reader = Reader(phonemizer, Front(normalizer_of(config.text), lexica.current))
        explained = _explained(reader, script_of(options.text, ssml=options.ssml), options.language)
    print(as_json(explained) if options.json else as_text(explained))
    return 0


def _explained(reader: Reader, script: Script, language: str) -> Explanation:
    for name in espeak_names(language):
        with suppress(UnknownEspeakVoiceError):
            return explain(reader, script, name)
    raise UnknownEspeakVoiceError(language)

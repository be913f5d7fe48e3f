"""The command `speakd`."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from daemon import app, bench, cli_explain, cli_simulate, cli_views, cli_voice, cli_watermark, journald
from daemon.command_fields import LARGEST_VOLUME
from daemon.commands import Speak
from daemon.config import Config, load
from daemon.config_text import config_command
from daemon.errors import ConfigError, DaemonError, PayloadError, UnsaidError
from daemon.events import Failed, Finished, Started, Synthesized
from daemon.payloads import make_command
from daemon.service import make_sink
from device.errors import DeviceError, SinkError
from device.files import whole_output
from device.opus_sink import OpusSink
from device.sink import Sink
from device.wav import WavSink
from engines.errors import SpeechError

_LOG = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status: 0 done, 1 failed, 2 wrongly asked, 130 interrupted."""
    if sys.stdout is None:  # whoever started us has closed it
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  for as long as we run
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # phonemes, where the terminal has no Unicode
    try:
        try:
            return _main(arguments)
        finally:
            sys.stdout.flush()  # here, where it can be told if that fails
    except BrokenPipeError:
        return _no_more_output()
    except OSError as error:
        told = error if error.filename else f"the output cannot be written: {error.strerror or error}"
        print(f"speakd: {told}", file=sys.stderr)
        return _no_more_output()


def _no_more_output() -> int:
    """Have nothing more written, not even at the exit, to whoever reads no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _main(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    journal = journald.handler() if options.command == "run" else None
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO if options.command == "run" else logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s",  # journald and containers add the time themselves
        handlers=[journal or logging.StreamHandler()],
    )
    action: Callable[[argparse.Namespace], int] = options.action
    if "text" in options and not _is_unicode(options.text or ""):
        print("speakd: the text is no UTF-8", file=sys.stderr)
        return 2
    try:
        return action(options)
    except (DaemonError, SpeechError, DeviceError) as error:
        print(f"speakd: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:
        return 130
    except OSError:
        if options.command != "run":
            raise
        _LOG.exception("the system refused what nobody here expected")
        return 1


def _is_unicode(text: str) -> bool:
    """Tell whether it came as such: bytes that are none come as halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="speakd", description="A neural voice for robots and kiosks.")
    parser.add_argument("--version", action="version", version=f"speakd {app.version()}")
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration (default: /etc/speakd/speakd.toml)")
    parser.add_argument("-v", "--verbose", action="store_true", help="log everything")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="serve: MQTT in, loudspeaker out")
    run.set_defaults(action=_run)

    say = commands.add_parser("say", help="speak a text, without a broker")
    say.add_argument("text")
    say.add_argument("--ssml", action="store_true", help="the text is SSML, from <speak> to </speak>")
    say.add_argument("--output", metavar="FILE", help="write a .wav or .opus file instead of playing")
    say.add_argument("--voice", default="", help="pack name (default: as configured)")
    say.add_argument("--speaker", help="number or name, of a voice that has several")
    say.add_argument("--style", help="a name of [styles], or a style or blend of the voice")
    say.add_argument("--language", help="such as de: a voice of this language speaks")
    say.add_argument("--volume", type=float, default=1.0, help=f"0 to {LARGEST_VOLUME:g}, 1 is the voice's own level")
    say.add_argument("--json", action="store_true", help="print times and where the sound went")
    say.set_defaults(action=_say)

    cli_voice.add_to(commands)
    cli_watermark.add_to(commands)
    cli_views.add_to(commands)
    cli_explain.add_to(commands)
    cli_simulate.add_to(commands)

    config = commands.add_parser("config", help="show, check or describe the configuration")
    config.add_argument("what", choices=("show", "check", "schema"))
    config.set_defaults(action=lambda options: config_command(options.what, options.config))

    api_ = commands.add_parser("api", help="print the MQTT contract for machines: AsyncAPI 3")
    api_.add_argument("--json-schema", action="store_true", help="print the payloads as JSON Schema instead")
    api_.set_defaults(action=_api)

    man = commands.add_parser("man", help="print a manual page, for `man -l -`")
    man.add_argument("page", choices=("speakd", "speakd.toml"))
    man.set_defaults(action=_man)

    bench_ = commands.add_parser("bench", help="measure how quickly the voice speaks on this device")
    bench_.add_argument("--json", action="store_true", help="print the figures only")
    bench_.set_defaults(action=_bench)

    doctor = commands.add_parser("doctor", help="tell what is wrong here, and what mends it")
    doctor.add_argument("--json", action="store_true", help="print it for programs")
    doctor.add_argument("--tone", action="store_true", help="play a tone on the loudspeaker")
    doctor.add_argument("--bundle", type=Path, metavar="FILE", help="write a .tar.gz for support, without secrets")
    doctor.set_defaults(action=_doctor)

    try_ = commands.add_parser("try", help="hear it: a private broker, the daemon, one command")
    try_.add_argument("text", nargs="?", default="")
    try_.set_defaults(action=_try)
    return parser


def _load(options: argparse.Namespace) -> Config:
    return load(options.config)


def _run(options: argparse.Namespace) -> int:
    return app.run(lambda: _load(options))


def _say(options: argparse.Namespace) -> int:
    config = _load(options)
    speaker = int(options.speaker) if options.speaker and options.speaker.isdecimal() else options.speaker
    try:
        command = make_command(
            Speak,
            {
                "ssml" if options.ssml else "text": options.text,
                "voice": options.voice,
                "speaker": speaker,
                "style": options.style,
                "language": options.language,
                "volume": options.volume,
            },
        )
    except PayloadError as error:
        print(f"speakd: {error}", file=sys.stderr)
        return 2
    with _sink(config, options.output) as sink:
        sink.open()  # a missing sound card shall be told before the voice is loaded
        events = app.say(config, sink, command)
        if not isinstance(final := events[-1], Finished):
            raise UnsaidError(final.reason if isinstance(final, Failed) else str(final))
    for told in (*(final.warnings or ()), final.reason or ""):
        if told:
            print(f"speakd: {told}", file=sys.stderr)
    if options.json:
        started = next((event for event in events if isinstance(event, Started)), None)
        done = next((event for event in events if isinstance(event, Synthesized)), None)
        report = {
            "ttfa_ms": started and started.ttfa_ms,
            "total_ms": done and done.compute_ms,
            "audio_s": final.audio_s,
            "rtf": done and done.rtf,
            "backend": done and done.backend,
            "precision": done and done.precision,
            "output": sink.description,
            "warnings": final.warnings or (),
            "reason": final.reason,
        }
        print(json.dumps(report))
    return 0


@contextlib.contextmanager
def _sink(config: Config, output: str | None) -> Iterator[Sink]:
    """Give where the sound goes; a file is there, or takes the place of one, only once all of it is."""
    path = Path(output or "")
    if output is None:
        with contextlib.closing(make_sink(config)) as sink:
            yield sink
    elif path.suffix.lower() == ".wav":
        with whole_output(path) as file, contextlib.closing(WavSink(path, file=file)) as sink:
            yield sink
    elif path.suffix.lower() in {".opus", ".ogg"}:
        with whole_output(path) as file, contextlib.closing(OpusSink(path, config.encoder.settings, file=file)) as sink:
            yield sink
            sink.close()  # its last page goes out here, which a full disk may refuse
            if sink.failure is not None:
                raise SinkError(output, f"cannot be written: {sink.failure.strerror or sink.failure}", "make room")
    else:
        raise SinkError(output, "is neither a .wav nor an .opus file")


def _api(options: argparse.Namespace) -> int:
    from daemon import api  # noqa: PLC0415  reads sources, which no other command needs

    print(api.to_text(api.json_schema() if options.json_schema else api.asyncapi()), end="")
    return 0


def _man(options: argparse.Namespace) -> int:
    from daemon import manual  # noqa: PLC0415  no other command needs it

    of_command = options.page == "speakd"
    print(manual.command_page(_parser(), app.version()) if of_command else manual.config_page(app.version()), end="")
    return 0


def _bench(options: argparse.Namespace) -> int:
    what, results = bench.measure(_load(options))
    if options.json:
        figures = {r.name: {"first_ms": r.first_ms, "total_ms": r.total_ms, "audio_s": r.audio_s} for r in results}
        print(json.dumps({"voice": what, "texts": figures}))
    else:
        print(what, *bench.table(results), sep="\n")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from daemon.views import doctor  # noqa: PLC0415  the daemon itself needs no view

    try:
        return doctor.run(options.config, as_json=options.json, tone=options.tone, bundle=options.bundle)
    except OSError as error:
        print(f"speakd: the support archive cannot be written: {error}", file=sys.stderr)
        return 1


def _try(options: argparse.Namespace) -> int:
    from daemon.views import tryout  # noqa: PLC0415  the daemon itself needs no view

    return tryout.run(options.text)

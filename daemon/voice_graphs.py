"""`speakd voice build` and `speakd voice report`: a voice's vocoder in narrower precisions, and what they are worth."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

from daemon.config import Config, packs_folder
from engines import precision
from engines.errors import VoiceError
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.precision_report import Report, read_report
from engines.voice_plans import PRECISIONS, graph_file

_STEP: Final = 0.1
"""Of a build, between two lines in a log."""


def build(config: Config, name: str, wanted: str) -> None:
    """Write the graphs in precision `wanted`, 'auto' for all, and print what they are worth on the CPU.

    Takes minutes for INT8; tells progress on stderr. VoiceError where there is no voice, or nothing of it passes.
    """
    store = PackStore(packs_folder(config))
    name = store.default_name(name or config.voice.default)
    precisions = PRECISIONS if wanted == "auto" else (wanted,)
    report = precision.build(store, name, precisions=precisions, threads=config.engine.threads, progress=_teller())
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(*_table(report), sep="\n")


def missing(config: Config, name: str, wanted: str) -> bool:
    """Whether a precision is asked for that the pack has no graph in."""
    pack = _pack(config, name)
    return wanted != "auto" and not graph_file(pack, wanted).is_file()


def show(config: Config, name: str, *, as_json: bool) -> None:
    """Print the report of a voice. VoiceError where there is none."""
    pack = _pack(config, name)
    report = read_report(pack)
    if report is None:
        raise VoiceError(pack.info.name, f"has no report yet: `speakd voice build {pack.info.name}`")
    print(json.dumps(report.model_dump()) if as_json else "\n".join(_table(report)))


def _pack(config: Config, name: str) -> Pack:
    store = PackStore(packs_folder(config))
    return store.get(store.default_name(name or config.voice.default))


def _table(report: Report) -> Iterator[str]:
    yield f"{'':<24}{'INT8':>7}{'quality':>9}{'SNR':>9}{'window':>11}{'graph':>10}"
    for plan in report.plans:
        noise = "" if plan.snr_db is None else f"{plan.snr_db:.1f} dB"
        yield (
            f"{plan.precision + ' ' + plan.backend:<24}{plan.int8_mac_share:>7.0%}{plan.quality:>9.2f}{noise:>9}"
            f"{plan.ms_per_window:>8.1f} ms{plan.bytes / 1e6:>7.1f} MB" + ("" if plan.passes else "  does not pass")
        )
    yield f"chosen: {report.chosen}, {report.why}"


def _teller() -> Callable[[str, float], None]:
    """Give what prints progress: in one line of a terminal, in a line now and then of a log."""
    begun = time.monotonic()
    told: tuple[str, float] = "", -1.0

    def tell(what: str, share: float) -> None:
        nonlocal told
        terminal = sys.stderr.isatty()
        if what == told[0] and share < told[1] + (0.01 if terminal else _STEP):
            return
        told = what, share
        line = f"{what}: {share:.0%} after {time.monotonic() - begun:.0f} s"
        print(f"\r{line:<60}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True)

    return tell

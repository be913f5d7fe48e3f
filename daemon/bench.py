"""`speakd bench`: how quickly the configured voice speaks on this device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final

from daemon.config import Config
from daemon.engine_room import make_engines
from device.format import seconds
from engines.synthesizer import Tally, Utterance
from engines.text.phonemes import Phonemizer

TEXTS: Final = {
    "word": "1",
    "short": "1 2 3",
    "sentence": "1 2 3 4 5 6 7 8 9 10",
    "paragraph": "1 2 3 4 5 6 7 8. 9 10 11 12 13. 14 15 16 17 18 19. 20 21 22 23.",
}
"""Numbers, because every language of espeak-ng can say them."""

_RUNS: Final = 7
_BUFFERS: Final = 8
_BAR_WIDTH: Final = 40
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class Result:
    """Medians for one text."""

    name: str
    first_ms: float
    """From the text to the first samples."""
    total_ms: float
    """To the last ones."""
    audio_s: float

    @property
    def rtf(self) -> float:
        """Computing time per time of speech."""
        return self.total_ms / 1000 / self.audio_s if self.audio_s else 0.0


def measure(config: Config) -> tuple[str, list[Result]]:
    """Say each text some times, to nowhere; gives what computes, and the medians.

    SpeechError where there is no usable voice.
    """
    few = config.memory.model_copy(update={"pool_buffers": _BUFFERS})
    with ExitStack() as opened:
        phonemizer = opened.enter_context(closing(Phonemizer(config.limits.phonemes_timeout_s)))
        engines = make_engines(config.model_copy(update={"memory": few}), phonemizer)
        opened.callback(engines.close)
        synthesizer, shelf = engines.synthesizer, engines.shelf
        voice = shelf.get()

        def say(text: str) -> Result:
            tally = Tally()
            begun = time.perf_counter()
            first = 0.0
            for chunk in synthesizer.chunks(Utterance(text, shelf.delivery(voice)), voice, tally):
                first = first or time.perf_counter() - begun
                chunk.release()
            return Result("", first * 1000, (time.perf_counter() - begun) * 1000, seconds(tally.frames))

        results = []
        for name, text in TEXTS.items():
            runs = [say(text) for _ in range(_RUNS + 1)][1:]
            results.append(Result(name, *(_median(runs, key) for key in ("first_ms", "total_ms", "audio_s"))))
        return f"{voice.info.name}, {voice.backend} {voice.precision}", results


def _median(runs: list[Result], key: str) -> float:
    values: list[float] = [getattr(run, key) for run in runs]
    return round(statistics.median(values), 3)


def table(results: list[Result]) -> Iterator[str]:
    """Write the figures as lines, with a bar for the time to the first sound."""
    yield f"{'':<10}{'first sound':>13}{'all of it':>13}{'speech':>10}{'real-time factor':>19}"
    longest = max(result.first_ms for result in results) or 1.0
    for result in results:
        yield (
            f"{result.name:<10}{result.first_ms:>10.1f} ms{result.total_ms:>10.1f} ms"
            f"{result.audio_s:>8.2f} s{result.rtf:>19.3f}"
        )
    yield ""
    for result in results:
        yield f"{result.name:<10} {_bar(result.first_ms / longest)} {result.first_ms:.1f} ms to the first sound"


def _bar(share: float) -> str:
    eighths = round(share * _BAR_WIDTH * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

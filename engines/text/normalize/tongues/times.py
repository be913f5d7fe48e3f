"""Times of day."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from engines.text.normalize.tongues.numeral import Numeral
from engines.text.normalize.tongues.spans import GAP, before
from engines.text.normalize.tongues.tongue import Tongue

HOURS: Final = 24
MINUTES: Final = 60

_HOURS: Final = re.compile(
    rf"(?<![\w.,:])(?P<hour>\d{{1,2}}){GAP}[hH]{GAP}(?P<minute>\d\d)(?P<second>(?!))?(?!\w|[.,:]\d)"
)
_RATIO: Final = re.compile(r"(?<![\w.,:])(\d{1,4}):(\d{1,4})(?![\w:]|[.,]\d)")


def times(tongue: Tongue, text: str) -> str:
    """Put times into words: 8:05, 17:00, 8:05:30, 17 h 30; what is none, as 16:9, is a ratio."""

    def clock(found: re.Match[str]) -> str:
        if re.match(GAP + tongue.duration_suffix, text[found.end() :]):
            return found[0]
        said = said_time(tongue, found["hour"], found["minute"], found["second"], before(text, found.start())[1])
        return found[0] if said is None else said

    text = tongue.times_written(text)
    text = _clock(tongue).sub(clock, text)
    text = _HOURS.sub(clock, text)
    return _RATIO.sub(lambda found: f"{tongue.whole(found[1])} {tongue.ratio} {tongue.whole(found[2])}", text)


def said_time(tongue: Tongue, hour: str, minute: str, second: str | None, before_word: str) -> str | None:
    """Return the words of a time, or None where there is no such."""
    if int(hour) > HOURS or int(minute) >= MINUTES or int(second or 0) >= MINUTES:
        return None
    words = tongue.clock(int(hour), int(minute), before_word)
    if second is None:
        return words
    seconds = tongue.count(Numeral(str(int(second))), tongue.units["s"])
    return f"{words} {tongue.also} {seconds}"


@cache
def _clock(tongue: Tongue) -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w.,:])(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?"
        rf"(?:{GAP}(?:{tongue.clock_suffix})(?!\w)|(?![\w:]|[.,]\d))"
    )

"""Days of the week that are abbreviated."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.patterns import MONTH, rewrite, stop_after, word_before
from engines.text.normalize.english.reading import Reading

_NAMES: Final = {
    "mon": "Monday", "tue": "Tuesday", "wed": "Wednesday", "thu": "Thursday", "fri": "Friday", "sat": "Saturday",
    "sun": "Sunday",
}  # fmt: skip
_SHORT: Final = r"(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)"
_ANY: Final = rf"({_SHORT}(?:\b|(?:s|nes|urs|ur)?day\b))\.?"
_RANGE: Final = re.compile(rf"\b{_ANY} ?[-–] ?{_ANY}(?![\w-])", re.IGNORECASE)
_BEFORE: Final = re.compile(
    rf"(?<![\w.-])(?=[A-Z])((?i:{_SHORT}))\b\.?"
    rf"(?=[:,]? \d{{1,2}}(?::\d\d| ?[-–]| ?[ap]\.?m)|(?i:,? (?:the )?(?:\d{{1,2}}(?:st|nd|rd|th)? )?{MONTH}))"
)
_BEFORE_LOWER: Final = re.compile(
    rf"(?<![\w.-])({_SHORT})\b\.?(?=,? (?:the )?(?:\d{{1,2}}(?:st|nd|rd|th)? )?{MONTH})", re.IGNORECASE
)
_LISTED: Final = re.compile(
    rf"(?<![\w.-])(?=[A-Z])((?i:{_SHORT}))\b\.?( ?(?:&|and|or|,|/) ?)(?=(?=[A-Z])(?i:{_SHORT})\b)"
    rf"|(?<=\b[Oo]n )(?=[A-Z])((?i:{_SHORT}))\b(?!\.|['’-]?\w)"
)
_AFTER_DAY: Final = re.compile(rf"(?<=day)( ?(?:&|and|or|,|/) ?)(?=[A-Z])((?i:{_SHORT}))\b(?!\.|['’-]?\w)")
"""Those with a full stop are for the rules that take it with them."""
_STOPPED: Final = re.compile(r"(?<![\w.])(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\.(?![\w@-])")
_ALSO_WORDS: Final = frozenset({"Sun", "Sat"})
WITH_DAYS: Final = frozenset("on every each and or to until till from since by in next last this closed open".split())
"""Before a day or a month, so that "Sun." ends a sentence and is none of those that shine."""


def weekdays(text: str, _: Reading) -> str:
    """Name days before times and dates and in ranges, and those with a full stop: "Mon-Fri", "Sat 10am", "Thurs."."""
    text = rewrite(_RANGE, _range, text)
    text = rewrite(_LISTED, lambda match: _name(match[1] or match[3]) + (match[2] or ""), text)
    text = rewrite(_AFTER_DAY, lambda match: match[1] + _name(match[2]), text)
    text = rewrite(_BEFORE, lambda match: _name(match[1]), text)
    text = rewrite(_BEFORE_LOWER, lambda match: _name(match[1]), text)
    return rewrite(_STOPPED, _stopped, text)


def _name(written: str) -> str:
    return _NAMES[written[:3].lower()]


def _range(match: re.Match[str]) -> str:
    stop = stop_after(match.string, match.end()) if match.group().endswith(".") else ""
    return f"{_name(match[1])} to {_name(match[2])}{stop}"


def _stopped(match: re.Match[str]) -> str:
    stop = stop_after(match.string, match.end())
    if match[1] in _ALSO_WORDS and stop and word_before(match.string, match.start()) not in WITH_DAYS:
        return match.group()
    return _name(match[1]) + stop

"""Times of day and durations on a clock."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.numbers import cardinal, two_figures
from engines.text.normalize.english.patterns import rewrite, stop_after, word_before
from engines.text.normalize.english.reading import Reading

_HALF: Final = r"(?P<half>[ap]\.? ?m\b\.?)"
_ZONE: Final = r"(?P<zone>est|edt|cst|cdt|mst|mdt|pst|pdt|gmt|utc|cet|cest|bst|ist|jst)\b"
_TO: Final = r" ?[-–] ?"
_HOUR: Final = r"(?:[01]?\d|2[0-4])"
_FLAGS: Final = re.IGNORECASE

_CLOCK: Final = re.compile(
    rf"(?<![\w.,:/-])(?P<hour>{_HOUR}):(?P<minute>[0-5]\d)(?:{_TO}(?P<hour2>{_HOUR}):(?P<minute2>[0-5]\d))?"
    rf"(?!\d|[:,]\d)(?: ?{_HALF})?(?: ?{_ZONE})?(?P<o> o['’]?clock| ?h\b)?",
    _FLAGS,
)
_CLOCKS_WITH_HALVES: Final = re.compile(
    rf"(?i:(?<=[ap]m)|(?<=[ap]\.m\.)){_TO}(?=\d{{1,2}}(?::[0-5]\d)? ?[ap]\.?m)", _FLAGS
)
_STAMP: Final = re.compile(
    r"(?<![\w-])(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(?:(Z)\b|([+-])(\d\d):?(\d\d)?)?(?!\w)"
)
_SECONDS: Final = re.compile(r"(?<![\w.,:-])(\d{1,2}):([0-5]\d):([0-5]\d)(?!\d|:\d)")
_HOUR_AND_HALF: Final = re.compile(
    rf"(?<![\w.,:/-])(?:(?P<from>{_HOUR}){_TO})?(?P<hour>{_HOUR})(?:\.(?P<minute>[0-5]\d))?"
    rf" ?{_HALF}(?![a-z])(?: ?{_ZONE})?",
    _FLAGS,
)
_HOURS: Final = re.compile(r"(?<![\w.,:/-])([01]\d|2[0-3])([0-5]\d)(?= ?(?:hours|hrs)\b(?! of\b))")
_FRENCH: Final = re.compile(r"(?<![\w.,:/-])([01]?\d|2[0-3])h([0-5]\d)(?!\w)")
_LASTING: Final = re.compile(r"(?<![\w.,:/-])(\d{1,3}):([0-5]\d) ?(?:min(?:ute)?s?)\b(?:\.(?= [a-z]))?")
_OFFSET: Final = re.compile(r"\b(UTC|GMT) ?([-+]|–)(\d{1,2})(?::([0-5]\d))?(?![\w:])")
_SPAN: Final = re.compile(
    r"(?<![\w.,:/$£€¥-])(?=\d{1,4}(?:d ?\d{1,3}[hm]|h ?\d{1,3}m|(?<!\d\d\d)m ?\d\d?s)(?:in|ec)?(?![A-Za-z]))"
    r"(?:(\d{1,4})d ?)?(?:(\d{1,3})h ?)?(?:(\d{1,3})m(?:in)? ?)?(?:(\d{1,3})s(?:ec)?)?(?<=[a-z])(?!\w)"
)
"""Two parts at least: "100m 2 blocks east" are meters."""
_POINTED: Final = re.compile(
    r"(?<=[Tt]he )([01]?\d|2[0-3])\.([0-5]\d)(?= (?:from|to|train|bus|ferry|service|flight|departure)\b)"
)
_AT: Final = frozenset("at by until till before from".split())
_TO_HOUR: Final = re.compile(r"(?:hours|hrs|\b0\d{3}) to $")
_HALF_ALONE: Final = re.compile(r"\b([ap])\.m\.(?! ?[a-z]\.)", _FLAGS)


def times(text: str, reading: Reading) -> str:
    """Put times into words: "eight oh five", "seventeen hundred", "one hour two minutes and three seconds"."""
    if ":" in text:
        text = rewrite(_STAMP, _stamp, text)
        text = rewrite(_SECONDS, _seconds, text)
        text = rewrite(_LASTING, _lasting, text)
    if "UTC" in text or "GMT" in text:
        text = rewrite(_OFFSET, _offset, text)
    if "h" in text or "m" in text:
        text = rewrite(_HOURS, _hours, text)
        text = rewrite(_FRENCH, lambda match: spoken_time(int(match[1]), int(match[2])), text)
        text = rewrite(_SPAN, _span, text)
        text = rewrite(_POINTED, r"\1:\2", text)
    if "m" in text or "M" in text or ":" in text:
        text = rewrite(_CLOCKS_WITH_HALVES, " to ", text)
        text = rewrite(_CLOCK, lambda match: _clock(match, reading), text)
        text = rewrite(_HOUR_AND_HALF, _hour_and_half, text)
        text = rewrite(_HALF_ALONE, _half_alone, text)
    return text


def spoken_time(hour: int, minute: int, *, with_half: bool = False) -> str:
    """Return a time of day as announced; `with_half`: a.m. or p.m. follows."""
    if minute:
        return f"{cardinal(hour)} {two_figures(minute)}"
    if with_half:
        return cardinal(hour)
    if not hour:
        return "midnight"
    if hour > 12:  # noqa: PLR2004  no clock face goes that far
        return "midnight" if hour == 24 else f"{cardinal(hour)} hundred"  # noqa: PLR2004
    return f"{cardinal(hour)} o'clock"


def _clock(match: re.Match[str], reading: Reading) -> str:
    if _is_ratio(match, reading):
        return match.group()
    half = match["half"]
    words = spoken_time(int(match["hour"]), int(match["minute"]), with_half=bool(half) and not match["hour2"])
    if match["hour2"]:
        words += f" to {spoken_time(int(match['hour2']), int(match['minute2']), with_half=bool(half))}"
    return words + _after(match)


def _is_ratio(match: re.Match[str], reading: Reading) -> bool:
    return not reading.alone and word_before(match.string, match.start()) in {"ratio", "score", "odds", "aspect"}


def _after(match: re.Match[str]) -> str:
    """Return "PM", "PM EST", and the full stop that ended the sentence as well."""
    half, zone = match["half"], match["zone"]
    words = f" {half[0].upper()}M" if half else ""
    if zone:
        return f"{words} {zone.upper()}"
    return words + (stop_after(match.string, match.end()) if half and half.endswith(".") else "")


def _hours(match: re.Match[str]) -> str:
    """Read "0800 hours" as the forces do; "1200 hours of work" and "up to 2000 hours" are hours."""
    hour, minute = match.groups()
    before = match.string[max(0, match.start() - 12) : match.start()]
    if hour[0] != "0" and word_before(match.string, match.start()) not in _AT and not _TO_HOUR.search(before):
        return match.group()
    words = two_figures(int(hour)) if int(hour) else "zero"
    return f"{words} {'hundred' if minute == '00' else two_figures(int(minute))}"


def _span(match: re.Match[str]) -> str:
    parts = zip(match.groups(), ("day", "hour", "minute", "second"), strict=True)
    words = [_of(int(number), unit) for number, unit in parts if number]
    return " ".join(words) + (" " if match.group().endswith(" ") else "")


def _stamp(match: re.Match[str]) -> str:
    """Part ISO 8601's date from its time; seconds are said where there are some."""
    seconds = f" and {_of(int(match[3]), 'second')}" if match[3] and int(match[3]) else ""
    zone = " UTC" if match[4] or match[5] else ""
    if match[5]:
        zone += f" {'plus' if match[5] == '+' else 'minus'} {int(match[6])}"
    return f"{match[1]}, {match[2]}{seconds}{zone}"


def _seconds(match: re.Match[str]) -> str:
    hours, minutes, seconds = (int(part) for part in match.groups())
    return f"{_of(hours, 'hour')} {_of(minutes, 'minute')} and {_of(seconds, 'second')}"


def _lasting(match: re.Match[str]) -> str:
    """Read "2:30 min" as what it takes."""
    words = [_of(int(match[1]), "minute")] if int(match[1]) else []
    return " ".join([*words, _of(int(match[2]), "second")] if int(match[2]) or not words else words)


def _offset(match: re.Match[str]) -> str:
    words = f"{match[1]} {'plus' if match[2] == '+' else 'minus'} {cardinal(int(match[3]))}"
    return f"{words} {two_figures(int(match[4]))}" if match[4] and int(match[4]) else words


def _of(number: int, unit: str) -> str:
    return f"{cardinal(number)} {unit}{'' if number == 1 else 's'}"


def _hour_and_half(match: re.Match[str]) -> str:
    if word_before(match.string, match.start()) in {"i", "who", "that"} and match["half"].lower() == "am":
        return match.group()
    words = spoken_time(int(match["hour"]), int(match["minute"] or 0), with_half=True)
    if match["from"]:
        words = f"{cardinal(int(match['from']))} to {words}"
    return words + _after(match)


def _half_alone(match: re.Match[str]) -> str:
    return f"{match[1].upper()}M{stop_after(match.string, match.end())}"

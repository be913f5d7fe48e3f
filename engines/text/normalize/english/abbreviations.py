"""Titles, initials and other abbreviations."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.patterns import FUNCTION_WORDS, next_word, rewrite, stop_after
from engines.text.normalize.english.reading import Reading

TITLES: Final = {
    "Dr": "doctor", "Mr": "mister", "Mrs": "misses", "Ms": "miss", "Prof": "professor", "Gen": "general",
    "Capt": "captain", "Cpt": "captain", "Lt": "lieutenant", "Col": "colonel", "Sgt": "sergeant", "Cpl": "corporal",
    "Maj": "major", "Cmdr": "commander", "Adm": "admiral", "Rev": "reverend", "Hon": "honorable", "Sen": "senator",
    "Rep": "representative", "Gov": "governor", "Pres": "president", "Supt": "superintendent", "Fr": "father",
    "Messrs": "messieurs", "Mt": "Mount", "Ft": "Fort", "Pvt": "private", "Msgr": "monsignor", "Amb": "ambassador",
    "Drs": "doctors", "Profs": "professors",
}  # fmt: skip
"""Before a name."""

PLAIN: Final = {
    "jr": "junior", "sr": "senior", "vs": "versus", "etc": "etcetera", "approx": "approximately", "dept": "department",
    "inc": "incorporated", "ltd": "limited", "corp": "corporation", "bros": "brothers", "assn": "association",
    "govt": "government", "esp": "especially", "incl": "including", "excl": "excluding", "max": "maximum",
    "min": "minimum", "avg": "average", "temp": "temperature", "tel": "telephone", "misc": "miscellaneous",
    "est": "estimated", "co": "company", "viz": "namely", "resp": "respectively", "univ": "university",
    "intl": "international",
    "natl": "national", "mfg": "manufacturing", "mgr": "manager", "hrs": "hours", "hr": "hour", "mins": "minutes",
    "secs": "seconds", "sec": "second", "yrs": "years", "yr": "year", "lbs": "pounds", "oz": "ounces",
    "tbsp": "tablespoon", "tsp": "teaspoon", "appt": "appointment", "attn": "attention", "esq": "esquire",
    "ext": "extension", "cf": "compare", "qty": "quantity", "pts": "points", "qts": "quarts", "wks": "weeks",
}  # fmt: skip
"""With a full stop, wherever they stand. Those that are words too have a full stop within a sentence only."""

_ALSO_WORDS: Final = frozenset("max min temp sec esp ext".split())
_NUMBERED: Final = {
    "nos": "numbers", "nr": "number", "vol": "volume", "vols": "volumes", "fig": "figure",
    "figs": "figures", "ch": "chapter", "chap": "chapter", "p": "page", "pp": "pages", "pg": "page", "sec": "section",
    "eq": "equation", "ed": "edition", "ver": "version", "art": "article", "para": "paragraph", "tel": "telephone",
    "ext": "extension", "fl": "floor", "rm": "room", "apt": "apartment", "ca": "circa", "c": "circa", "op": "opus",
    "ref": "reference", "pt": "part", "bk": "book", "v": "version", "est": "established",
}  # fmt: skip
"""With a full stop, before a number."""

_TITLE: Final = re.compile(rf"\b({'|'.join(TITLES)})(?:\. ?| )(?=(?:[A-Z]\.|[A-Z][^\W\d_]))")
_TITLE_DOT: Final = re.compile(
    r"(?<![\w.])(Mr|Mrs|Ms|Prof|Dr)\.|\b(Mr|Mrs|Ms|Dr)(?= (?:and|&) (?:Mr|Mrs|Ms|Dr|mister|misses|miss|doctor)\b)"
)
_NAME_BEFORE: Final = re.compile(r"[A-Z][a-z]{1,30} $")
_WITH_STOP: Final = re.compile(rf"(?<![\w.])({'|'.join(PLAIN)})\.(?!\w)", re.IGNORECASE)
_WITHOUT_STOP: Final = re.compile(r"\b(vs|approx|dept)\b(?!\.)")
_KEYS: Final = {"Ctrl": "Control", "Del": "Delete", "Esc": "Escape", "Ins": "Insert", "Cmd": "Command"}
_KEY: Final = re.compile(r"\b(Ctrl|Del|Esc|Ins|Cmd)(?=\s?\+\s?\w)|(?<=\+)(Ctrl|Del|Esc|Ins|Cmd)\b")
_BEFORE_NUMBER: Final = re.compile(rf"(?<![\w.])({'|'.join(_NUMBERED)})\. ?(?=\d)", re.IGNORECASE)
_NUMERO: Final = re.compile(r"№ ?(?=\d)")
_SUFFIX: Final = re.compile(r"(?<=[a-z]),? (Jr|Sr)\b(?!\.)")
_LATIN: Final = {
    "e.g": "for example", "i.e": "that is", "a.k.a": "AKA", "p.s": "PS", "r.s.v.p": "RSVP", "n.b": "NB",
    "c.f": "compare", "et al": "and others",
}  # fmt: skip
_LATIN_FORM: Final = re.compile(
    r"(?<![\w.])(e\. ?g|i\. ?e|a\.k\.a|p\.s|r\.s\.v\.p|n\.b|c\.f|et al)\.(?!\w)", re.IGNORECASE
)
_SLASHED: Final = {
    "w/o": "without", "w/": "with", "c/o": "care of", "b/c": "because", "n/a": "not applicable",
    "s/n": "serial number", "a/c": "AC", "ac/dc": "AC DC", "he/she": "he or she", "she/he": "she or he",
    "his/her": "his or her", "him/her": "him or her", "s/he": "she or he", "p/n": "part number",
}  # fmt: skip
_SLASHED_FORM: Final = re.compile(
    r"(?<![\w/])(w/o|c/o|b/c|n/a|[sp]/n(?= ?[:#]? ?\d)|a/c|ac/dc|he/she|she/he|s/he|his/her|him/her)(?![\w/])"
    r"|(?<![\w/])(w/)(?= ?[A-Za-z]| \d)",
    re.IGNORECASE,
)
_UNIT_WITH_STOP: Final = re.compile(r"(?<=\dst |\dnd |\drd |\dth )(min)\.|(?<=percent )(vol)\.")
_VITAMIN: Final = re.compile(r"\b([Vv])it\.? (?=[A-EK]\d{0,2}\b)")
_SECRETARY: Final = re.compile(r"\bSec\. (?=of\b|[A-Z][a-z])")
_DEGREE: Final = re.compile(r"\b(Ph|Ed|Psy)\. ?D\b\.?|\b(M|B|D|LL)\.(Sc|Ed|Phil|Eng|Tech|Arch)\b\.?")
_INITIALISM: Final = re.compile(
    r"(?<![\w.'’])((?:[A-Z]\. ?){1,7}[A-Z])\.(?![\w])|(?<![\w.])((?:[a-z]\.){1,5}[a-z])\.(?!\w)"
)
_INITIAL: Final = re.compile(r"(?<![\w.'’])([A-HJ-Z])\. (?=[A-Z][a-z'’])|(?<=[a-z] )(I)\. (?=[A-Z][a-z]{2,})")
_SINGLE_NAMES: Final = frozenset(
    "plan vitamin section option grade team class type part exhibit appendix gate group".split()
)
_CODE_OF_NAME: Final = re.compile(r"([A-Za-z]+)[ ]$")


_SPELLED: Final = re.compile(r"\b(EPAM|ETA|GPIO|IMEI|YMCA|BYOB|NCAA|IGBT|EUR|AKA|RFID)\b(?!\.)")
"""Acronyms of letters that espeak-ng reads as words. All others of some 200 common ones it reads right."""

_THREE: Final = (
    "act add age ago aid air all and any are arm art ask bad bag bar bay bed big bin bit box boy bus but buy bye "
    "can cap car cat cow cry cup cut day did dig dog dry due ear eat egg end eye far fee few fit fix fly for fun "
    "gas get got guy had has hat her hey him his hit hot how its jam job joy key kid lab lan law lay leg let lie "
    "lot low mac man map may men mix mom net new nor not now off oil old one our out own pan pay pen pet pin pop "
    "pot put ram ran raw red rid rip rom row rub run sad saw say sea see set she sim sit six sky son sum sun tap "
    "tax tea ten the tie tip toe too top toy try two use van via wan war was way wet who why win wow yes yet you "
    "zip zoo"
)
_WORDS: Final = re.compile(
    rf"(?<![\w.'’&])(?!(?<=\b[Tt]he )WHO\b)(?:{'|'.join(_THREE.upper().split())}|LiDAR)(?![\w&]|[.'’]\w)"
)
"""Three capitals between other words are letters to espeak-ng, words or not: "Press the RED button". But "the WHO"."""


_LETTERED: Final = (
    "gate|terminal|platform|hall|block|class|section|zone|building|wing|seat|bay|concourse|pier|vitamin|hepatitis|"
    "appendix|area|sector|unit|door|entrance|deck|counter|window|desk|lane|elevator|side|room|row"
)
_ALSO_DONE: Final = (
    "plan|group|level|line|exit|track|type|grade|team|option|part|exhibit|stand|lot|stop|bus|train|floor|tower|stage|"
    "studio|lift"
)
_GOES_ON: Final = "IS|ARE|WAS|WILL|HAS|AND|OR|TO|FROM|FOR|AT|IN|ON|CLOSED|OPEN|BOARDING|NOW|ONLY"
LETTER_A: Final = re.compile(
    rf"(\b(?i:{_LETTERED}|{_ALSO_DONE})s? |(?<=[a-z&] ))A (?=[a-z])|(\b(?i:{_LETTERED})S? )A (?=[A-Z]{{2}})"
    rf"|(\b(?i:{_ALSO_DONE})S? )A (?=(?:{_GOES_ON})\b)|()\bA (?=(?:and|or|to) [A-Z]\b)"
)
"""Before a word espeak-ng takes a letter for the article, unless the two are joined: "Gate A is open", "GATE A CLOSED",
"TRAIN A IS LATE"; but "PLAN A VISIT"."""
_TWO_AND_ONE: Final = re.compile(r"\b([A-Z])([A-Z])(?= and [A-Z]\b)")


def acronyms(text: str, _: Reading) -> str:
    """Part the letters of acronyms that would be read as words, and keep words together that would be spelled."""
    text = rewrite(LETTER_A, lambda match: f"{match[1] or match[2] or match[3] or ''}A-", text)
    if not any(sign.islower() for sign in text):
        return text  # in capitals throughout, words are words
    text = rewrite(_TWO_AND_ONE, r"\1.\2", text)
    text = rewrite(_WORDS, lambda match: match.group().lower(), text)
    return rewrite(_SPELLED, lambda match: ".".join(match[1]), text)


def abbreviations(text: str, _: Reading) -> str:
    """Put abbreviations into words and take the full stops that end no sentence."""
    text = rewrite(_NUMERO, "number ", text)
    if "/" in text:
        text = rewrite(_SLASHED_FORM, lambda match: _SLASHED[match.group().lower()] + ("" if match[1] else " "), text)
    text = rewrite(_TITLE, lambda match: TITLES[match[1]] + " ", text)
    text = rewrite(_VITAMIN, r"\1itamin ", text)
    if "+" in text:
        text = rewrite(_KEY, lambda match: _KEYS[match[1] or match[2]], text)
    text = rewrite(_SUFFIX, lambda match: f" {PLAIN[match[1].lower()]}", text)
    text = rewrite(_TITLE_DOT, _title_dot, text)
    text = rewrite(_WITHOUT_STOP, lambda match: PLAIN[match[1].lower()], text)
    if "." not in text:
        return text
    text = rewrite(_UNIT_WITH_STOP, _unit_with_stop, text)
    text = rewrite(_SECRETARY, "secretary ", text)
    text = rewrite(_LATIN_FORM, lambda match: _LATIN[match[1].lower().replace(". ", ".")], text)
    text = rewrite(_DEGREE, _degree, text)
    text = rewrite(_BEFORE_NUMBER, lambda match: _cased(match[1], _NUMBERED[match[1].lower()]) + " ", text)
    text = rewrite(_INITIALISM, _initialism, text)
    text = rewrite(_INITIAL, _initial, text)
    return rewrite(_WITH_STOP, _with_stop, text)


def _unit_with_stop(match: re.Match[str]) -> str:
    return ("minute" if match[1] else "volume") + stop_after(match.string, match.end())


def _title_dot(match: re.Match[str]) -> str:
    """Read a title without a name; "Dr." behind a name is a street."""
    if match[1] == "Dr" and _NAME_BEFORE.search(match.string[max(0, match.start() - 32) : match.start()]):
        return f"Drive{stop_after(match.string, match.end())}"
    return TITLES[match[1] or match[2]]


def _cased(written: str, words: str) -> str:
    return words.capitalize() if written[0].isupper() else words


def _with_stop(match: re.Match[str]) -> str:
    written = match[1].lower()
    stop = stop_after(match.string, match.end())
    if written in _ALSO_WORDS and not _within(match):
        return match.group()
    return PLAIN[written] + stop


def _within(match: re.Match[str]) -> bool:
    """Whether what is a word too is an abbreviation here: "max. 10 persons", not "Ask Max. He knows."."""
    text, end = match.string, match.end()
    if re.match(r" \d", text[end:]):
        return match[1].islower() or not text[: match.start()].rstrip(" (").rpartition("\n")[2]
    return bool(next_word(text, end)) and not stop_after(text, end)


def _degree(match: re.Match[str]) -> str:
    return re.sub(r"[. ]", "", match.group()) + stop_after(match.string, match.end())


def _initialism(match: re.Match[str]) -> str:
    letters = match[1] or match[2]
    return re.sub(r"[. ]", "", letters).upper() + stop_after(match.string, match.end())


def _initial(match: re.Match[str]) -> str:
    """Take the full stop of "J. Smith", but leave that of "plan B. Then"."""
    before = _CODE_OF_NAME.search(match.string[max(0, match.start() - 20) : match.start()])
    following = next_word(match.string, match.end() - 1)
    ends = before and (before[1].lower() in _SINGLE_NAMES or following.lower() in FUNCTION_WORDS)
    return match.group() if ends else f"{match[1] or match[2]} "

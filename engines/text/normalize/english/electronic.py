"""Addresses of the net, file names, paths, handles and hashtags."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.numbers import digits, is_year, whole, year
from engines.text.normalize.english.patterns import rewrite
from engines.text.normalize.english.reading import Reading

_URL: Final = re.compile(
    r"(?<!@)(?P<scheme>(?:https?|ftps?|sftp|file|ssh|git|mqtts?|rtsps?|wss?)://)(?P<rest>[^\s<>\"“”|]{1,2000})",
    re.IGNORECASE,
)
_MAIL: Final = re.compile(
    r"(?<![\w.+%@-])(?:mailto:)?(?P<local>[\w.+%$&'-]{1,64})@(?P<host>[\w-]{1,63}(?:\.[\w-]{1,63}){0,8})"
    r"(?P<path>/[\w./%~?=&+-]{0,200})?(?![@\w])"
)
_HOST: Final = re.compile(
    r"(?<![\w@.+/\\-])(?P<host>(?:[\w-]{1,63}\.){1,8}(?P<last>[A-Za-z][A-Za-z0-9]{1,14}))"
    r"(?P<port>:\d{1,5})?(?P<path>/[^\s<>\"“”|]{0,500})?(?![@\w\\])"
)
_PATH: Final = re.compile(r"(?<![\w/.])(?P<start>~?/|\.{1,2}/)(?P<rest>[\w.-]{1,80}(?:/[\w.-]{1,80}){0,20}/?)(?![\w/])")
_DRIVE: Final = re.compile(r"(?<![\w/])([A-Za-z]):\\([^\s\\<>\"|]{1,80}(?:\\[^\s\\<>\"|]{1,80}){0,20}\\?)")
_HANDLE: Final = re.compile(r"(?<![\w@])@(\w{2,40})(?![@\w])")
_HASHTAG: Final = re.compile(r"(?<![\w#&])#([^\W\d_]\w{0,80})")

_COLOUR: Final = re.compile(r"(?<![\w#&])#(?=[0-9A-Fa-f]{0,5}\d)(?=\d{0,5}[A-Fa-f])([0-9A-F]{6}|[0-9a-f]{6})(?!\w)")
_NUMBERED: Final = re.compile(r"(?<![\w#&])#(?=[A-Z]{1,4}-\d)")
_SUFFIX: Final = re.compile(r"(?<![^\s(\"'])\.([a-z]{2,5}|NET)(?![\w.@-])")
"""The ending of names: "the .com boom", ".pdf files"."""

SIGNS: Final = {
    ".": "dot", "/": "slash", "-": "dash", "_": "underscore", ":": "colon", "?": "question mark", "=": "equal sign",
    "&": "and", "#": "hash", "%": "percent", "+": "plus", "~": "tilde", "@": "at", "\\": "backslash", "*": "asterisk",
    "$": "dollar sign", "!": "exclamation mark", ",": "comma", ";": "semicolon",
}  # fmt: skip
_SOUNDS: Final = {"www": "WWW", "jpg": "jpeg"}
_PIECES: Final = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
_TRAILING: Final = ".,;:!?)]}'’\""
_WITHOUT_DOTS: Final = frozenset(("a.m", "p.m", "e.g", "i.e", "a.k.a", "vs.the", "no.of"))
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])|(?<=[A-Z])(?=[A-Z][a-z])|_")
_KNOWN_PARTS: Final = (
    "rtx",
    "gtx",
    "dgx",
    "pro",
    "help",
    "support",
    "desk",
    "info",
    "sales",
    "team",
    "service",
    "shop",
)
_PARTS: Final = re.compile(rf"(?:{'|'.join(_KNOWN_PARTS)}){{2,5}}")


def electronic(text: str, reading: Reading) -> str:
    """Put addresses into words. A web address within a sentence loses what nobody would say: scheme and query."""
    if "://" in text:
        text = rewrite(_URL, lambda match: _url(match, reading), text)
    if "@" in text:
        text = rewrite(_MAIL, _mail, text)
        text = rewrite(_HANDLE, lambda match: f"at {_camel(match[1])}", text)
    if "." in text:
        text = rewrite(_HOST, lambda match: _host(match, reading), text)
    if "/" in text:
        text = rewrite(_PATH, lambda match: spelled(match.group()), text)
    if "\\" in text:
        text = rewrite(_DRIVE, lambda match: f"{match[1]} colon backslash {spelled(match[2])}", text)
    if "." in text:
        text = rewrite(_SUFFIX, r"dot \1", text)
    if "#" in text:
        text = rewrite(_COLOUR, _colour, text)
        text = rewrite(_NUMBERED, "number ", text)
        text = rewrite(_HASHTAG, lambda match: f"hashtag {_camel(match[1])}", text)
    return text


def spelled(address: str) -> str:
    """Return an address in words: its words as words, its figures one by one, its signs by name."""
    words = []
    for piece in _PIECES.findall(address):
        if piece.isdecimal():
            words.append(digits(piece))
        elif piece in SIGNS:
            words.append(SIGNS[piece])
        elif piece[0].isalpha():
            words.append(_SOUNDS.get(piece.lower()) or _in_parts(piece))
    return " ".join(words)


def _in_parts(piece: str) -> str:
    """Part what is written in one word and is none: "rtxprohelp"."""
    return " ".join(re.findall("|".join(_KNOWN_PARTS), piece)) if _PARTS.fullmatch(piece) else piece


def _url(match: re.Match[str], reading: Reading) -> str:
    address = match["rest"].rstrip(_TRAILING)
    if "(" in address and match["rest"][len(address) :].startswith(")"):
        address += ")"
    tail = match["rest"][len(address) :]
    if reading.alone:
        return f"{match['scheme'][:-3].upper()} colon slash slash {spelled(address)}{tail}"
    short = re.split(r"[?#]", address, maxsplit=1)[0].rstrip("/")
    return spelled(re.sub(r"^www\.", "", short, flags=re.IGNORECASE)) + tail


def _mail(match: re.Match[str]) -> str:
    host = match["host"]
    return f"{spelled(match['local'])} at {spelled(host)} {spelled(match['path'] or '')}".rstrip()


def _host(match: re.Match[str], reading: Reading) -> str:
    host, last = match["host"], match["last"]
    labels = host.split(".")
    if host.lower() in _WITHOUT_DOTS or all(len(label) == 1 for label in labels) or not re.search(r"[^\W\d_]", host):
        return match.group()
    before = labels[-2]
    if len(labels) == 2 and len(before) == 1 and before.isupper() and last.istitle():  # noqa: PLR2004  "B.Sc.", "J.Smith"
        return match.group()
    if last.lower() in {"am", "pm"} and before.isdecimal():
        return match.group()
    if last[0].isupper() and not last.isupper() and before[-1:].islower():
        return match.group().replace(".", ". ")  # two sentences without a space
    path = match["path"] or ""
    address = path.rstrip(_TRAILING)
    tail = path[len(address) :]
    if not reading.alone:
        address = re.split(r"[?#]", address, maxsplit=1)[0]
    return " ".join(filter(None, (spelled(host + (match["port"] or "")), spelled(address)))) + tail


def _colour(match: re.Match[str]) -> str:
    return "hash " + " ".join(digits(sign) if sign.isdecimal() else sign.upper() for sign in match[1])


def _camel(written: str) -> str:
    """Return a hashtag's or handle's words: "RobotDay2024" as "Robot Day twenty twenty four"."""
    parts = (part for part in _CAMEL.split(written) if part)
    return " ".join((year(part) if is_year(part) else whole(part)) if part.isdecimal() else part for part in parts)

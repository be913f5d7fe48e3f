"""Markup that is not to be heard: HTML, Markdown, emoji."""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cache
from typing import Final, Literal

EmojiPolicy = Literal["drop", "name", "keep"]
"""Emoji are left out, called by their names (a run of the same one once), or left as they are."""

_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_TAGS: Final = (
    "a abbr address article aside audio b blockquote body br button center cite code dd del details div dl dt em "
    "figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label li "
    "link main mark meta nav ol option p pre q s samp script section select small span strike strong style sub "
    "summary sup table tbody td textarea tfoot th thead title tr tt u ul var video"
)
_TAG: Final = re.compile(rf"</?(?P<name>{'|'.join(_TAGS.split())})\b(?:\s[^<>]{{0,1000}})?/?>", re.IGNORECASE)
_COMMENT: Final = re.compile(r"<!--.{0,2000}?-->|<!DOCTYPE[^>]{0,200}>", re.IGNORECASE | re.DOTALL)
_UNSPOKEN: Final = re.compile(r"<(script|style)\b[^<>]{0,300}>[^<]{0,4000}</\1\s*>", re.IGNORECASE)
_BREAKING: Final = frozenset(
    "address article aside blockquote br dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li "
    "main ol p pre section table td th title tr ul".split()
)

_FENCE: Final = re.compile(r"^[ \t]{0,3}(?:```|~~~)[^\n]{0,80}$", re.MULTILINE)
_HEADING: Final = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(?!\d{1,9}\s*$)|(?<=\w)[ \t]+#{1,6}[ \t]*$", re.MULTILINE)
_RULE: Final = re.compile(r"^[ \t]{0,3}(?:[-*_][ \t]?){3,80}$", re.MULTILINE)
_BULLET: Final = re.compile(r"^[ \t]{0,8}(?:[-*+•◦▪‣·●○■□–—][ \t]+)(?:\[[ xX]\][ \t]+)?", re.MULTILINE)
_QUOTED: Final = re.compile(r"^[ \t]{0,3}(?:>[ \t]?){1,5}(?!(?<=>)\d)", re.MULTILINE)
_AUTOLINK: Final = re.compile(
    r"<((?:[a-z]{3,6}://|mailto:)[^\s<>]{1,500}|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8})>"
)
_LINK: Final = re.compile(
    r"!?\[([^\[\]\n]{0,500})\]\((?:[^()\s]|\([^()\s]{0,100}\)){0,1000}(?:[ ]\"[^\"\n]{0,200}\")?\)"
)
_FOOTNOTE: Final = re.compile(r"\[\^[\w-]{1,30}\]:?")
_BOLD: Final = re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]{1,1000}?)(?<=[^\s*])\1(?![\w*])")
_UNDERLINED: Final = re.compile(r"(?<![\w_])(_{1,3})(?=[^\s_])([^_\n]{1,1000}?)(?<=[^\s_])\1(?![\w_])")
_STRUCK: Final = re.compile(r"~~(?=\S)([^~\n]{1,1000})~~")
_CODE: Final = re.compile(r"(`{1,2})(?!`)([^`\n]{1,1000})\1(?!`)")
_TABLE_LINE: Final = re.compile(
    r"^[ \t]*\|?(?:[ \t]*:?-{2,40}:?[ \t]*\|){1,30}(?:[ \t]*:?-{2,40}:?)?[ \t]*$", re.MULTILINE
)
_TABLE_ROW: Final = re.compile(r"^[ \t]*\|(.{1,2000})\|[ \t]*$", re.MULTILINE)

_EMOJI: Final = re.compile(
    "[\U0001f000-\U0001f0ff\U0001f18e-\U0001f19a\U0001f1e6-\U0001f64f\U0001f680-\U0001f6ff\U0001f780-\U0001faff"
    "\u2600-\u27bf\u2300-\u23ff\u2b05-\u2b55\u3030\u303d\u2934\u2935\u25b6\u25c0\u25aa-\u25ae\u25fb-\u25fe\U000e0020-\U000e007f"
    "\u200d\ufe0f\u20e3]"
)
_RUN: Final = re.compile(f"(?:{_EMOJI.pattern}){{1,200}}")
_KEYCAP: Final = re.compile("([0-9#*])\ufe0f?\u20e3")


def unescape(text: str) -> str:
    """Return `text` with HTML's entities as characters, once, and without its tags. What is no tag stays."""
    if "<" in text:
        text = _COMMENT.sub(" ", text)
        text = _UNSPOKEN.sub(" ", text)
        text = _TAG.sub(_tag, text)
    return _ENTITY.sub(lambda match: html.unescape(match.group()), text) if "&" in text else text


def plain(text: str) -> str:
    """Return `text` without Markdown: its words, not its marks."""
    if not any(sign in text for sign in "*_#`~[>|-+•–"):
        return text
    text = _FENCE.sub("", text)
    text = _RULE.sub("", text)
    text = _TABLE_LINE.sub("", text)
    text = _TABLE_ROW.sub(lambda match: re.sub(r"\s*\|\s*", ", ", match[1].strip()), text)
    text = _QUOTED.sub("", text)
    text = _HEADING.sub("", text)
    text = _BULLET.sub("", text)
    text = _AUTOLINK.sub(r" \1 ", text)
    text = _LINK.sub(r"\1", text)
    text = _FOOTNOTE.sub("", text)
    text = _CODE.sub(r"\2", text)
    for marks in (_BOLD, _UNDERLINED):
        for _nested in range(2):
            text = marks.sub(r"\2", text)
    return _STRUCK.sub(r"\1", text)


def emoji(text: str, policy: EmojiPolicy) -> str:
    """Return `text` with its emoji left out, named, or kept."""
    if policy == "keep" or text.isascii():
        return text
    text = _KEYCAP.sub(r"\1", text)
    return _RUN.sub(lambda match: _named(match, policy), text)


def _tag(match: re.Match[str]) -> str:
    return "\n" if match["name"].lower() in _BREAKING else ""


def _named(match: re.Match[str], policy: EmojiPolicy) -> str:
    if policy == "drop":
        return " "
    names: list[str] = []
    for name in _names(match.group()):
        if not names or names[-1] != name:
            names.append(name)
    return f" {', '.join(names)} "


def _names(run: str) -> list[str]:
    """Return the names of a run of emoji, each sequence under its own."""
    known = _sequences()
    names = []
    start = 0
    longest = 10
    while start < len(run):
        size = next((n for n in range(longest, 0, -1) if run[start : start + n] in known), 0)
        if size:
            names.append(known[run[start : start + size]])
        elif run[start] not in "\u200d\ufe0f\u20e3":
            name = unicodedata.name(run[start], "")
            if name:
                names.append(name.lower())
        start += size or 1
    return names


@cache
def _sequences() -> dict[str, str]:
    """Return the name of each emoji sequence. Loaded when the first one is named: 5 MB."""
    import emoji as package  # noqa: PLC0415

    return {
        sequence: entry["en"].strip(":").replace("_", " ")
        for sequence, entry in package.EMOJI_DATA.items()
        if "en" in entry
    }

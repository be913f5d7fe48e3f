"""Abbreviations, addresses of the net and Roman numerals of other languages, before their numbers are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from engines.text.normalize.tongues.numeral import ROMAN, roman_value
from engines.text.normalize.tongues.shorthand_chinese import CHINESE
from engines.text.normalize.tongues.shorthand_french import FRENCH
from engines.text.normalize.tongues.shorthand_german import GERMAN
from engines.text.normalize.tongues.shorthand_iberian import PORTUGUESE, SPANISH
from engines.text.normalize.tongues.shorthand_italian import ITALIAN
from engines.text.normalize.tongues.shorthand_words import Shorthand

LANGUAGES: Final = {"de": GERMAN, "fr": FRENCH, "es": SPANISH, "it": ITALIAN, "pt": PORTUGUESE, "zh": CHINESE}

_LABEL: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}"
_DOMAINS: Final = (
    "com|org|net|io|eu|info|edu|gov|app|dev|tv|me|biz|museum|local|lan|de|at|ch|li|fr|be|lu|es|mx|ar|cl|co|pe|it|pt|br|cn|hk|"
    "tw|uk|us|jp|nl|pl|pdf|txt|jpg|png|mp3|json|xml|csv|html?|docx?|xlsx?|zip|py|js|toml|example"
)
_URL: Final = re.compile(
    r"(?<![A-Za-z0-9_@])(?:https?|ftp|mqtts?|wss?)://([^\s<>\"“”|\u3000-\u9fff]{1,2000})", re.IGNORECASE
)
_MAIL: Final = re.compile(
    rf"(?<![A-Za-z0-9_.+%@-])(?:mailto:)?([A-Za-z0-9_.+%-]{{1,64}})@({_LABEL}(?:\.{_LABEL}){{1,6}})(?![A-Za-z0-9_@-])"
)
_HOST: Final = re.compile(
    rf"(?<![A-Za-z0-9_@./\\-])((?:{_LABEL}\.){{1,6}}(?i:{_DOMAINS}))((?:/[A-Za-z0-9_.~%-]{{1,80}}){{0,8}}/?)(?![A-Za-z0-9_@])"
)
_TRAILING: Final = ".,;:!?)]}'’\"。，；！？"
_LONE_AT: Final = re.compile(r"(?<!\S)@ ?(?=\w)")
_FROM_TO: Final = re.compile(r"(?<=[\d%°℃]) ?~ ?(?=\d)")
_UNSAID: Final = re.compile(r" ?[\u2190-\u21ff|¦†‡©®™•◦▪■□★☆✓✔_~`¶]+ ?| ?\^+(?![-\u2212\d]) ?")
_SPACES: Final = re.compile(r" {2,}")
_BACKSLASH: Final = re.compile(r" ?\\+ ?")
_ABOUT: Final = re.compile(r"(?<![\w~%°℃])~ ?(?=[\d$€£.])")
"""Arrows, bars and marks: nobody says them."""
_TAG: Final = re.compile(r"(?<![\w#&])#(?=[^\W\d_])")

_CLOSING: Final = frozenset(
    ("etc.", "ecc.", "usw.", "v.Chr.", "n.Chr.", "av.J.-C.", "apr.J.-C.", "a.C.", "d.C.", "EE.UU.")
)
"""Behind these a capital begins a sentence: no noun that they belong to follows them."""
_LETTERED: Final = frozenset(
    "taille salle porte hall ligne métro quai voie zone bus tram bâtiment escalier allée point lettre groupe niveau "
    "terminal tarif vitamine sala puerta vitamina letra opción andén vía línea grupo talla plan bloque edificio planta "
    "nivel zona porta portão plataforma linha opção bloco prédio tamanho gruppo lettera binario".split()
)
"""What bears a letter for its name: "Terminal D Norte" is no Don Norte."""
_WOMAN: Final = re.compile(r"(?:\w{2,20}a|Isabel|Leonor|Inês|Beatriz)(?!\w)")
_WORD_BEFORE: Final = re.compile(r"([^\W\d_]+) $")


def shorthand(language: str) -> Callable[[str], str] | None:
    """Return what puts a language's abbreviations and addresses into words, None where nothing is known of it.

    `language` in two letters. The function is pure, takes time linear to its text, and may be called by any thread.
    """
    words = LANGUAGES.get("zh" if language == "cmn" else language)
    return None if words is None else partial(_read, words)


def sign_names(language: str) -> dict[str, str]:
    """Return what a language calls the signs of addresses and of arithmetic, by each sign. `language` as above."""
    words = LANGUAGES["zh" if language == "cmn" else language]
    addresses = {".": words.dot, "@": words.at, "/": words.slash, "-": words.dash, "_": words.underscore}
    return {**addresses, ":": words.colon, **words.signs}


def _read(words: Shorthand, text: str) -> str:
    given, text = text, _BACKSLASH.sub(" ", text)
    if "." in text or "@" in text:
        text = _URL.sub(lambda match: _url(words, match[1]), text)
        text = _MAIL.sub(lambda match: f"{_spelled(words, match[1])} {words.at} {_spelled(words, match[2])}", text)
        text = _HOST.sub(lambda match: _host(words, match), text)
    text = _TAG.sub("Hashtag ", text)
    text = _LONE_AT.sub(f" {words.at} ", text)
    text = _ABOUT.sub(words.signs["≈"] + " " * words.spaced, text)
    text = _FROM_TO.sub("-", text)
    text = _UNSAID.sub(_pause, text)
    for pattern, said in _patterns(words):
        text = pattern.sub(said, text)
    return text if text == given else _SPACES.sub(" ", text).strip(" ")


def _pause(match: re.Match[str]) -> str:
    """Return what an unsaid sign becomes: a short pause where it parted words, else a space."""
    parts = match.string[match.start() - 1 : match.start()].isalnum() and match.group().startswith(" ")
    return (
        ", " if parts and match.group().endswith(" ") and match.string[match.end() : match.end() + 1].isalnum() else " "
    )


def _url(words: Shorthand, address: str) -> str:
    """Return what one would say of an address: no scheme, no query."""
    short = re.split(r"[?#]", address, maxsplit=1)[0]
    tail = address[len(address.rstrip(_TRAILING)) :]
    return _spelled(words, short.rstrip(_TRAILING + "/").removeprefix("www.")) + tail


def _host(words: Shorthand, match: re.Match[str]) -> str:
    path = match[2]
    tail = path[len(path.rstrip(".")) :]
    return _spelled(words, match[1] + path.rstrip("./")) + tail


def _spelled(words: Shorthand, address: str) -> str:
    signs = {".": words.dot, "/": words.slash, "-": words.dash, "_": words.underscore, ":": words.colon, "@": words.at}
    apart = re.sub(r"[./_:@-]", lambda sign: f" {signs[sign.group()]} ", address)
    return " ".join(re.sub(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])|[^\w\s]", " ", apart).split())


@lru_cache(maxsize=8)
def _patterns(words: Shorthand) -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]:
    made: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]] = []
    if words.signs:
        any_sign = "|".join(re.escape(sign) for sign in words.signs)
        made.append(
            (
                re.compile(rf" ?({any_sign}) ?"),
                lambda match: f" {words.signs[match[1]]} " if words.spaced else words.signs[match[1]],
            )
        )
    if words.days:
        day = "|".join(words.days)
        made.append(
            (
                re.compile(rf"(?<!\w)({day})\.? ?[-–] ?({day})(?:\.|(?!\w))"),
                partial(_days, words),
            )
        )
    if words.titles:
        title = "|".join(words.titles)
        made.append(
            (
                re.compile(rf"(?<![\w-])({title})(?:\. ?| )(?=[^\W\d_])(?=[A-ZÄÖÜÉÈÁÍÓÚÇ])"),
                partial(_title, words),
            )
        )
    made += [(re.compile(pattern), partial(_expanded, said=said)) for pattern, said in words.phrases]
    made += [(_written(short), partial(_said, said=said)) for short, said in words.abbreviations.items()]
    made += [
        (re.compile(pattern.replace("ROMAN", f"({ROMAN})")), partial(_in_figures, form=form))
        for pattern, form in words.romans
    ]
    return tuple(made)


def _written(short: str) -> re.Pattern[str]:
    """Return the pattern of an abbreviation, its spaces optional, its first letter in either case."""
    first, rest = short[0], re.escape(short[1:]).replace(r"\ ", " ?")
    start = f"[{first}{first.upper()}]" if first.isalpha() else re.escape(first)
    return re.compile(rf"(?<![\w.]){start}{rest}(?!\w)")


def _days(words: Shorthand, match: re.Match[str]) -> str:
    """Name the days of a range; its full stop is the sentence's where the first day has none, or nothing follows."""
    first, second = match[1], match[2]
    letters = [day for day in words.days if len(day) == 1]
    if first in letters and second in letters and letters.index(first) >= letters.index(second):
        return match.group()  # sizes: "tallas S-M"
    written = match.group()
    ends = written.endswith(".") and ("." not in written[:-1] or not match.string[match.end() :].strip())
    return f"{words.days[first]} {words.until} {words.days[second]}{'.' if ends else ''}"


def _title(words: Shorthand, match: re.Match[str]) -> str:
    before = _WORD_BEFORE.search(match.string[max(0, match.start() - 24) : match.start()])
    if len(match[1]) == 1 and before and before[1].lower() in _LETTERED:
        return match.group()
    said, _, of_woman = words.titles[match[1]].partition("/")
    return (of_woman if of_woman and _WOMAN.match(match.string, match.end()) else said) + " "


def _said(match: re.Match[str], said: str) -> str:
    """Return the words; where nothing follows, the full stop was the sentence's too."""
    written, before, after = (
        match.group(),
        match.string[max(0, match.start() - 2) : match.start()],
        match.string[match.end() :],
    )
    ends = not after.strip("\"'”»)") or after[0] == "\n"
    if written == "min." and before.strip(" ")[-1:].isdecimal():
        return "min" + ("." if ends or re.match(r" [A-ZÀ-Þ]", after) else "")  # "5 min." are minutes
    if written == "Max." and before[:1].isalnum() and before[1:] == " " and not re.match(r" ?\d", after):
        return written  # "Fragen Sie Max."
    ends = ends or (written.replace(" ", "") in _CLOSING and bool(re.match(r" [A-ZÀ-Þ]", after)))
    words = said[0].upper() + said[1:] if match.group()[0].isupper() and said[0].islower() else said
    return words + ("." if ends and match.group().endswith(".") else "")


def _expanded(match: re.Match[str], said: str) -> str:
    return match.expand(said)


def _in_figures(match: re.Match[str], form: Callable[[str, int], str]) -> str:
    """Put the numeral into figures, for the rules of numbers; the group before it stays, the name in it tells how."""
    return match[1] + form(match[1], roman_value(match[2]))

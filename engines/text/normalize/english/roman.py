"""Roman numerals, where the words beside them tell that they are numbers."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.numbers import cardinal, ordinal
from engines.text.normalize.english.patterns import FUNCTION_WORDS, rewrite
from engines.text.normalize.english.reading import Reading

_VALUES: Final = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_ROMAN: Final = r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_THINGS: Final = (
    "act|annex|apollo|appendix|article|bay|block|book|building|bowl|canto|chapter|class|clause|division|episode|"
    "exhibit|factor|figure|gate|generation|grade|group|hall|king|lesson|level|line|mark|module|olympiad|part|phase|"
    "platform|plate|problem|rocky|rule|saturn|scene|season|section|sector|series|stage|step|symphony no\\.|table|"
    "terminal|title|tower|track|type|unit|vol\\.|volume|war|wing|zone|schedule|star wars|psalm|quadrant|room|floor|"
    "sonata|concerto|fantasy|version|item|exercise|question|test|theorem|lot|session|round|week|day|area|region|"
    "vatican|titan|voyager|gemini|ariane|category|tier|pier|deck|gallery|corridor|entrance|exit|stand|court|lounge|"
    "reactor|page|ward"
)
_AFTER_THING: Final = re.compile(
    rf"\b(?i:({_THINGS}))(s?)( )({_ROMAN}|[ivx]{{2,7}})(?=(?:[a-z])?\b)(?![.'’]?\w)"
    rf"(?P<more>(?:(?:, (?:and |or )?| (?:and|or|to|of|&) | ?[-–] ?)(?=[IVX]{{2,8}}\b|[VX]\b){_ROMAN}\b){{0,8}})"
)
_MORE: Final = re.compile(r"[IVX]{1,8}")
_RULERS: Final = (
    "Abdullah|Albert|Alexander|Alfonso|Andrew|Baldwin|Baudouin|Benedict|Boniface|Carl|Carlos|Catherine|Charles|"
    "Christian|Clement|Cleopatra|Constantine|Darius|David|Edward|Edmund|Eleanor|Elizabeth|Eric|Ferdinand|Francis|"
    "Franz|Frederick|George|Gregory|Gustav|Haakon|Harald|Harold|Henry|Hussein|Innocent|Isabella|Ivan|James|Joan|John|"
    "John Paul|Joseph|Juan|Julius|Karl|Leo|Leopold|Louis|Ludwig|Margaret|Maria|Mary|Matthias|Maximilian|Mehmed|"
    "Napoleon|Nicholas|Olaf|Oscar|Otto|Paul|Pedro|Peter|Philip|Philippe|Pius|Ptolemy|Ramesses|Ramses|Richard|Robert|"
    "Rudolf|Selim|Sigismund|Sixtus|Stephen|Suleiman|Thutmose|Umberto|Urban|Victor|Wenceslaus|Wilhelm|William|Xerxes"
)
_AFTER_RULER: Final = re.compile(
    rf"\b((?:King|Queen|Pope|Emperor|Empress|Tsar|Czar|Kaiser|Prince|Sultan|Pharaoh|Saint) [A-Z][a-z]+|{_RULERS})"
    rf"( )({_ROMAN})(?=\b|['’]s)(?!['’](?!s\b)|[.]\w)"
)
_REIGNING: Final = re.compile(r" (?:of|was|is|reigned|ruled|became|died|succeeded|had)\b")
_TITLES: Final = ("King", "Queen", "Pope", "Emperor", "Empress", "Tsar", "Czar", "Kaiser", "Sultan", "Pharaoh")
BEFORE_ONE: Final = rf"{'|'.join(_TITLES)} [A-Z][a-z]+|{_RULERS}|War|Part|Act|Chapter|Volume|Phase|Stage|Type|Class"
"""Before a single I, which may stand in a text without any other written form."""
_AFTER_NAME: Final = re.compile(rf"\b([A-Z][a-z]+)( )({_ROMAN})(?![\w'’.-]\w|\w)")
_CENTURY: Final = re.compile(
    rf"\b({_ROMAN})(?:th|st|nd|rd)?(?= (?:century|centuries|dynasty|Olympi|congress|edition))", re.IGNORECASE
)
_LONG: Final = re.compile(rf"\b(?=[MDCLXVI]{{4,15}}\b)({_ROMAN})(?<=[MDCLXVI])\b")
_LISTED: Final = re.compile(rf"^([ \t]{{0,20}})(?=[IVX]{{2,}})({_ROMAN})(?=[.)] )", re.MULTILINE)
_WORDS: Final = frozenset({"MIX", "MILD", "CIVIL", "LIVID", "VIVID", "MIMIC", "MILL", "DILL", "CIVIC", "LID", "DIM"})
_SIGNS: Final = re.compile("[\u2160-\u2188]{1,20}")
_SIGN_LETTERS: Final = {
    **dict(zip(range(0x2160, 0x2170), "I II III IV V VI VII VIII IX X XI XII L C D M".split(), strict=True)),
    **dict(zip(range(0x2170, 0x2180), "I II III IV V VI VII VIII IX X XI XII L C D M".split(), strict=True)),
    0x2180: "M",
    0x2183: "C",
    0x2184: "C",
    0x2185: "VI",
    0x2186: "L",
}
_LARGE: Final = {0x2181: 5000, 0x2182: 10000, 0x2187: 50000, 0x2188: 100000}


def roman(text: str, _: Reading) -> str:
    """Put Roman numerals into words: "World War two", "Henry the eighth", "Sam second"."""
    text = rewrite(_SIGNS, _sign, text)
    text = rewrite(_AFTER_THING, _after_thing, text)
    text = rewrite(_AFTER_RULER, _after_ruler, text)
    text = rewrite(_CENTURY, lambda match: ordinal(value(match[1])) if match[1] else match.group(), text)
    text = rewrite(_AFTER_NAME, _after_name, text)
    text = rewrite(_LISTED, lambda match: f"{match[1]}{cardinal(value(match[2]))}", text)
    return rewrite(_LONG, lambda match: match[1] if match[1] in _WORDS else str(value(match[1])), text)


def value(numeral: str) -> int:
    """Return the value of a Roman numeral of ASCII letters, at least one."""
    figures = [_VALUES[letter] for letter in numeral.upper()]
    return sum(-one if one < next_one else one for one, next_one in zip(figures, [*figures[1:], 0], strict=True))


def _sign(match: re.Match[str]) -> str:
    """Put Unicode's own numerals into digits, which are read whatever stands beside them; after rulers letters."""
    written = match.group()
    total = sum(_LARGE.get(ord(sign), 0) for sign in written)
    letters = "".join(_SIGN_LETTERS.get(ord(sign), "") for sign in written)
    before = match.string[: match.start()][-20:]
    if re.search(rf"\b(?:{_RULERS}) $", before) and not total:
        return letters
    number = total + (value(letters) if letters else 0)
    apart = " " if before[-1:].isalnum() else ""
    return f"{apart}{number}" + (" " if match.string[match.end() : match.end() + 1].isalnum() else "")


def _after_thing(match: re.Match[str]) -> str:
    numeral, more = match[4].upper(), match["more"]
    follows = match.string[match.end() :][:12]
    if numeral and ((match[4].islower() and not re.fullmatch(_ROMAN, numeral)) or (match[2] and not more)):
        return match.group()
    # "in class I learned": a sentence goes on after the pronoun.
    if not numeral or (numeral == "I" and re.match(r" [a-z]", follows) and not match[1][0].isupper()):
        return match.group()
    thing = re.sub(r"(?i)ol\.$", "olume", match[1])
    words = f"{thing}{match[2]} {cardinal(value(numeral))}"
    words += _MORE.sub(lambda part: cardinal(value(part.group())), re.sub(r" ?[-–] ?", " to ", more))
    return words + (" " if follows[:1].isalpha() else "")


def _after_ruler(match: re.Match[str]) -> str:
    numeral = match[3]
    follows = match.string[match.end() :][:4]
    told = numeral == "I" and (_REIGNING.match(match.string, match.end()) or match[1].split()[0] in _TITLES)
    doubtful = numeral in {"I", "C", "D", "M", "L"} and re.match(r" [a-z]|[.]? ?[A-Z]", follows)
    if not numeral or (doubtful and not told):
        return match.group()
    if numeral in {"C", "D", "M", "L"}:
        return match.group()
    return f"{match[1]} the {ordinal(value(numeral))}"


def _after_name(match: re.Match[str]) -> str:
    name, numeral = match[1], match[3]
    if len(numeral) < 2 or not set(numeral) <= set("IVX") or name.lower() in FUNCTION_WORDS:  # noqa: PLR2004
        return match.group()
    return f"{name} {ordinal(value(numeral))}"

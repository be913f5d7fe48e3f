"""What is read figure by figure: telephone numbers, network addresses, codes."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.numbers import cardinal, digits
from engines.text.normalize.english.patterns import rewrite, word_before
from engines.text.normalize.english.reading import Reading

_NOT_WITHIN: Final = r"(?<![\w.,:/$£€+#-])"
_END: Final = r"(?![\w/]|[.,:-]\d)"

_HEXADECIMAL: Final = re.compile(r"(?<!\w)0[xX]([0-9A-Fa-f]{1,32})(?!\w)")
_KEYED: Final = re.compile(r"(?<![\w*#])[*#]{1,2}\d{2,12}(?:\*\d{1,15}){0,4}#(?!\w)")
_IPV4: Final = re.compile(
    rf"(?<![\w.+-])(?P<host>\d{{1,3}}(?:\.\d{{1,3}}){{3}})(?:/(?P<net>\d{{1,2}})|:(?P<port>\d{{1,5}}))?{_END}"
)
_HEX: Final = re.compile(
    r"(?<![\w:.-])(?:[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}"
    r"|(?=[0-9A-Fa-f:]{0,40}[0-9A-Fa-f]:)(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(?![\w:.-]\w|\w)"
)
_AMERICAN: Final = re.compile(
    rf"{_NOT_WITHIN}(?P<country>(?:\+ ?)?\d{{1,3}}(?:[ .-]|(?=\()))?"
    r"(?:\((?P<area>\d{3})\)[ .-]?|(?P<area2>\d{3})[ .-])"
    rf"(?P<first>\d{{3}})[ .-](?P<last>\d{{4}})(?P<more>[.-]\d{{4}})?{_END}"
)
_VANITY: Final = re.compile(
    rf"{_NOT_WITHIN}(?P<country>1[ -])?(?P<area>8\d\d|900)-"
    r"(?P<name>[A-Z][A-Z0-9]{0,9}(?:-[A-Z0-9]{1,10}){0,4})(?!\w)"
)
_INTERNATIONAL: Final = re.compile(r"(?<![\w.,:/$£€#+-])\+(\d{1,15}(?:[ ./-]?\(?\d{1,12}\)?){0,8})(?![\w])")
_NATIONAL: Final = re.compile(
    rf"{_NOT_WITHIN}(?<!\d )(?!\d\d-\d\d-\d{{2,4}}(?!\d))"
    rf"\(?0\d{{1,5}}\)?(?:(?:[ -]|/(?=\d{{5}})|(?<=\d\d) ?/ (?=\d{{3}}))\d{{2,8}}){{1,5}}{_END}"
)
_LOCAL: Final = re.compile(rf"{_NOT_WITHIN}(\d{{3}})-(\d{{4}}){_END}")
_SECURITY: Final = re.compile(rf"{_NOT_WITHIN}(\d{{3}})-(\d{{2}})-(\d{{4}}){_END}")
_CARD: Final = re.compile(rf"{_NOT_WITHIN}\d{{4}}(?:[ -]\d{{4}}){{2,4}}{_END}")
_OF_THINGS: Final = (
    r"(?! (?:seconds?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|times|people|persons|guests|pages|rings|"
    r"metres|meters|yards|feet|miles|steps|users|pieces|[mk]?m)\b)"
)
"""No number of somebody: "call 24 hours ahead"."""
_EMERGENCY: Final = re.compile(
    r"\b((?:call|calls|calling|called|dial|dials|dialling|dialing|ring|phone|text)"
    r"(?: (?:on|to|us at|us on|me at|at))? )"
    rf"(\d{{2,8}}(?:[ -]\d{{2,8}}){{0,4}})(?![\w%°]|[.,:/-]\d){_OF_THINGS}",
    re.IGNORECASE,
)
_TELEPHONE: Final = re.compile(
    r"\b((?:tel|telephone|phone|fax|mobile|cell|hotline|helpline|whatsapp|sms)\b\.?:? ?)"
    rf"(\d{{2,8}}(?:[ -]\d{{2,8}}){{1,5}}|\d{{5,15}})(?![\w%°]|[.,:/-]\d){_OF_THINGS}",
    re.IGNORECASE,
)
_TEL: Final = re.compile(r"\b([Tt])el\b\.?(?=:? ?[+(\d])")
_TOLD: Final = re.compile(
    r"\b((?:cards?|numbers?|accounts?|phones?|codes?|tickets?|plates?|bookings?|orders?|references?) "
    r"(?:ending|ends) (?:in|with) |emergency(?: number| call| line)?:? (?=1\d\d\b|9\d\d\b)"
    rf"|[Tt]ext \w{{1,20}} to )(\d{{3,8}})(?![\w%°]|[.,:/-]\d){_OF_THINGS}",
    re.IGNORECASE,
)
_IBAN: Final = re.compile(
    r"\b([A-Z]{2})(\d{2})((?: [A-Z0-9]{4}){3,7}(?: [A-Z0-9]{1,3})?)(?!\w)"
    r"|(?<=IBAN )([A-Z]{2})(\d{2})([A-Z0-9]{11,30})\b"
)
_ISBN: Final = re.compile(r"\b(ISBN(?:-1[03])?:? )((?:97[89][- ]?)?\d{1,5}[- ]?\d{1,7}[- ]?\d{1,7}[- ]?[\dX])(?!\w)")
_SORT_CODE: Final = re.compile(r"\b([Ss]ort code:? (?:is )?)(\d\d-\d\d-\d\d)(?![\w-])")
_GROUP: Final = re.compile(r"[A-Z]+|\d+")
_CODE: Final = re.compile(
    r"\b((?:code|cvv|cvc|pin|passcode|password|otp|token|zip|postcode|extension|ext|serial number|account number|"
    r"order number|phone number|telephone number|tracking number|confirmation number|reference number|ticket number|"
    r"card number|flight number|booking|reference|invoice|order|ticket|account|serial|sku|imei|isbn|badge|licence|"
    r"license)\b\.?:?(?: (?:is|was|number|no\.|reads|of))?:? ?#?)"
    r"(\d{3,24}(?:-\d{1,12}| \d{2,12}){0,6})(?![\w%°]|[.,:/]\d)",
    re.IGNORECASE,
)
_COUNTED_CODES: Final = frozenset("order ticket booking account invoice reference license licence".split())
"""Words that a plain number of up to three figures may follow: "ticket 300" is a number, "code 300" is a code."""


def telephone(text: str, _: Reading) -> str:
    """Put numbers that are read figure by figure into words, a comma between their groups."""
    text = rewrite(_HEXADECIMAL, lambda match: f"zero x {_spelled(match[1].upper())}", text)
    text = rewrite(_KEYED, lambda match: " ".join(_KEYS.get(key) or digits(key) for key in match.group()), text)
    text = rewrite(_IPV4, _ipv4, text)
    text = rewrite(_TEL, r"\1elephone", text)
    if ":" in text or "-" in text:
        text = rewrite(_HEX, _hex, text)
    text = rewrite(_IBAN, _iban, text)
    text = rewrite(_ISBN, lambda match: match[1] + _spelled_groups(match[2]), text)
    text = rewrite(_VANITY, _vanity, text)
    text = rewrite(_AMERICAN, _american, text)
    text = rewrite(_SECURITY, _groups, text)
    text = rewrite(_INTERNATIONAL, _international, text)
    text = rewrite(_NATIONAL, _groups, text)
    text = rewrite(_CARD, _groups, text)
    for told in (_SORT_CODE, _EMERGENCY, _TELEPHONE, _TOLD):
        text = rewrite(told, lambda match: match[1] + grouped(match[2]), text)
    text = rewrite(_CODE, _code, text)
    return rewrite(_LOCAL, _groups, text)


def grouped(written: str) -> str:
    """Return each group of figures digit by digit, groups parted by commas."""
    return ", ".join(digits(group) for group in re.findall(r"\d+", written))


def spoken_telephone(written: str) -> str:
    """Return a telephone number in words, whatever parts its groups."""
    plus = "plus " if written.lstrip().startswith("+") else ""
    return plus + grouped(written)


def _ipv4(match: re.Match[str]) -> str:
    words = " dot ".join(digits(part) for part in match["host"].split("."))
    if match["net"]:
        words += f" slash {cardinal(int(match['net']))}"
    return words + (f" port {digits(match['port'])}" if match["port"] else "")


def _hex(match: re.Match[str]) -> str:
    written = match.group()
    if not re.search(r"[A-Fa-f]|::", written) and written.count(":") < 5 and "-" not in written:  # noqa: PLR2004  a time
        return written
    separator = "-" if "-" in written else ":"
    groups = written.split(separator)
    words = [" ".join(digits(sign) if sign.isdecimal() else sign.upper() for sign in group) for group in groups]
    if len(groups) == 6 and all(len(group) == 2 for group in groups):  # noqa: PLR2004  a MAC address
        return ", ".join(words)
    return re.sub(r" {2,}", " ", " colon ".join(words)).strip()


_KEYS: Final = {"*": "asterisk", "#": "hash"}


def _spelled(written: str) -> str:
    return " ".join(digits(sign) if sign.isdecimal() else sign for sign in written)


def _iban(match: re.Match[str]) -> str:
    land, check, rest = match[1] or match[4], match[2] or match[5], match[3] or match[6]
    return f"{land} {digits(check)}, {_spelled_groups(rest)}"


def _spelled_groups(written: str) -> str:
    """Return each group of figures and capitals figure by figure."""
    groups = re.split(r"[ -]", written.strip())
    return ", ".join(
        " ".join(digits(part) if part.isdecimal() else part for part in _GROUP.findall(group)) for group in groups
    )


def _area(written: str) -> str:
    return "eight hundred" if written == "800" else digits(written)


def _american(match: re.Match[str]) -> str:
    country = match["country"] or ""
    if country and "+" not in country and country.strip(" .-") not in {"1", "01", "001"}:
        return match.group()
    groups = [("plus " if "+" in country else "") + digits(country)] if country else []
    groups += [_area(match["area"] or match["area2"]), digits(match["first"]), digits(match["last"])]
    if match["more"]:
        groups.append(digits(match["more"]))
    return ", ".join(groups)


def _vanity(match: re.Match[str]) -> str:
    country = "one, " if match["country"] else ""
    name = " ".join(digits(part) if part.isdecimal() else part for part in re.findall(r"\d|[A-Z]+", match["name"]))
    return f"{country}{_area(match['area'])}, {name}"


def _international(match: re.Match[str]) -> str:
    number = match[1]
    fewest = 7
    if sum(sign.isdecimal() for sign in number) < fewest:
        return match.group()
    return spoken_telephone("+" + number)


def _groups(match: re.Match[str]) -> str:
    return grouped(match.group())


def _code(match: re.Match[str]) -> str:
    word = match[1].split()[0].lower().rstrip(":.#")
    if word in _COUNTED_CODES and len(match[2]) < 4:  # noqa: PLR2004
        return match.group()
    if word == "zip" and word_before(match.string, match.start()) == "a":
        return match.group()
    return re.sub(r"\bno\.", "number", match[1].rstrip("#")) + grouped(match[2])

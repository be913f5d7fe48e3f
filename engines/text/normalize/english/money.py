"""Amounts of money."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from engines.text.normalize.english.numbers import cardinal, decimal, whole
from engines.text.normalize.english.patterns import DECIMAL, is_attribute, rewrite
from engines.text.normalize.english.reading import Reading


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency's names: of one, of several, of its hundredth part, of several of those."""

    one: str
    many: str
    cent: str = ""
    cents: str = ""


_DOLLAR: Final = Currency("dollar", "dollars", "cent", "cents")


def _dollar(country: str) -> Currency:
    return Currency(f"{country} dollar", f"{country} dollars", "cent", "cents")


_POUND: Final = Currency("pound", "pounds", "penny", "pence")
_EURO: Final = Currency("euro", "euros", "cent", "cents")
_YEN: Final = Currency("yen", "yen")
_WON: Final = Currency("won", "won")
_RUPEE: Final = Currency("rupee", "rupees", "paisa", "paise")
_SHEKEL: Final = Currency("shekel", "shekels", "agora", "agorot")
_FRANC: Final = Currency("Swiss franc", "Swiss francs", "centime", "centimes")
_ROUBLE: Final = Currency("ruble", "rubles", "kopek", "kopeks")
_REAL: Final = Currency("real", "reais", "centavo", "centavos")
_ZLOTY: Final = Currency("zloty", "zlotys", "grosz", "groszy")

_SIGNS: Final = {
    "$": _DOLLAR, "£": _POUND, "€": _EURO, "¥": _YEN, "₹": _RUPEE, "₩": _WON, "₪": _SHEKEL, "₽": _ROUBLE,
    "₺": Currency("lira", "lira", "kurus", "kurus"), "₫": Currency("dong", "dong"), "฿": Currency("baht", "baht"),
    "₱": Currency("peso", "pesos", "centavo", "centavos"), "₴": Currency("hryvnia", "hryvnias", "kopek", "kopeks"),
    "₦": Currency("naira", "naira", "kobo", "kobo"), "₿": Currency("bitcoin", "bitcoins"),
    "US$": _dollar("US"), "CA$": _dollar("Canadian"), "C$": _dollar("Canadian"), "A$": _dollar("Australian"),
    "AU$": _dollar("Australian"), "NZ$": _dollar("New Zealand"), "HK$": _dollar("Hong Kong"),
    "S$": _dollar("Singapore"), "NT$": _dollar("New Taiwan"), "R$": _REAL,
}  # fmt: skip
_CODES: Final = {
    "USD": _dollar("US"), "EUR": _EURO, "GBP": _POUND, "JPY": _YEN, "CHF": _FRANC, "CAD": _dollar("Canadian"),
    "AUD": _dollar("Australian"), "NZD": _dollar("New Zealand"), "CNY": Currency("yuan", "yuan"), "KRW": _WON,
    "RMB": Currency("yuan", "yuan"), "INR": _RUPEE, "BRL": _REAL, "RUB": _ROUBLE, "PLN": _ZLOTY, "ILS": _SHEKEL,
    "SEK": Currency("Swedish krona", "Swedish kronor"), "NOK": Currency("Norwegian krone", "Norwegian kroner"),
    "DKK": Currency("Danish krone", "Danish kroner"), "CZK": Currency("Czech koruna", "Czech korunas"),
    "MXN": Currency("Mexican peso", "Mexican pesos"), "TRY": Currency("lira", "lira"),
    "ZAR": Currency("rand", "rand"), "SGD": _dollar("Singapore"), "HKD": _dollar("Hong Kong"), "zł": _ZLOTY,
}  # fmt: skip
_BY_NAME: Final = {**_SIGNS, **_CODES, "Rs": _RUPEE, "Rs.": _RUPEE, "kr": Currency("krone", "kroner")}

CURRENCY: Final = "(?:[£€¥₹₩₪₽₺₫฿₱₴₦₿]|" + "|".join(_CODES) + ")"
"""What stands behind an amount, or parted from it before."""

_MAGNITUDES: Final = {
    "K": "thousand", "k": "thousand", "M": "million", "m": "million", "mn": "million", "mm": "million",
    "B": "billion", "b": "billion", "bn": "billion", "Bn": "billion", "T": "trillion", "tn": "trillion",
}  # fmt: skip
_PERIODS: Final = {
    "s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week", "wk": "week",
    "mo": "month", "mth": "month", "y": "year", "yr": "year", "a": "year", "kg": "kilogram", "g": "gram", "lb": "pound",
    "lbs": "pound", "oz": "ounce", "l": "liter", "L": "liter", "gal": "gallon", "m": "meter", "km": "kilometer",
    "mi": "mile", "ft": "foot", "kWh": "kilowatt hour", "MWh": "megawatt hour", "GB": "gigabyte", "pp": "person",
}  # fmt: skip

_SIGN: Final = (
    r"(?P<sign>(?:(?<![A-Za-z])(?:US|CA|AU|NZ|HK|NT|[CASR])\$|[$£€¥₹₩₪₽₺₫฿₱₴₦₿])"
    r"(?:(?<![\d)] .)(?<![\d)].) (?=\d{1,24}(?!\d|/\d)))?"
    r"|(?<![A-Za-z])(?:" + "|".join(_CODES) + r") ?(?=-?[\d.])|(?<![A-Za-z])Rs\.? ?)"
)
_MAGNITUDE: Final = (
    r"(?:[ -]?(?P<{0}>(?:thousand|million|billion|trillion|quadrillion)\b)"
    r"| ?(?P<{0}1>[KkMBT]|bn|Bn|mn|tn|m|b)(?![\w/]))?"
)
_PER: Final = r"(?:/(?P<per>[A-Za-z]{1,12})(?![\w/])\.?)?"
_AMOUNT: Final = re.compile(
    rf"(?P<minus>(?<![\w)])-)?{_SIGN}(?P<minus2>-)?(?P<amount>{DECIMAL})(?!\d)"
    + _MAGNITUDE.format("size")
    + rf"(?: ?[-–] ?(?P<sign2>{_SIGN.replace('?P<sign>', '?:')})?(?P<amount2>{DECIMAL})(?![\d-])"
    + _MAGNITUDE.format("bulk")
    + ")?"
    + _PER
    + "(?P<doubled> ?(?:dollars|pounds|euros|USD)\\b)?"
)
_SIGN_AFTER: Final = re.compile(
    rf"(?P<minus>(?<![\w)])-)?(?<![\w.,:/$£€-])(?:(?P<amount>{DECIMAL})|(?P<whole>\d{{1,3}}(?:\.\d{{3}}){{0,5}}),(?P<cents>\d\d))"
    r"(?![\d,])(?: ?(?P<size>thousand|million|billion|trillion)\b)? ?"
    r"(?P<sign>[£€¥₹₩₪₽₺₫฿₱₴₦₿](?!\d)|\$(?![\w$])|(?:kr|" + "|".join(_CODES) + r")\b)" + _PER
)
_CENTS: Final = re.compile(rf"(?<![\w.,])({DECIMAL}) ?¢")
_SMALLER: Final = re.compile(r"(?<![\w.,])(\d{1,2})p\b")


def money(text: str, reading: Reading) -> str:
    """Put amounts into words, the unit behind the number: "twenty dollars fifty cents"."""
    text = rewrite(_AMOUNT, lambda match: _amount(match, reading), text)
    text = rewrite(_SIGN_AFTER, lambda match: _sign_after(match, reading), text)
    text = rewrite(_CENTS, lambda match: f"{decimal(match[1])} {'cent' if match[1] == '1' else 'cents'}", text)
    if reading.british:
        text = rewrite(_SMALLER, lambda match: f"{whole(match[1])} {'penny' if match[1] == '1' else 'pence'}", text)
    return text


def sum_of(amount: str, currency: Currency, magnitude: str, reading: Reading) -> str:
    """Return an amount such as "1,234.50" of a currency in words; `magnitude`: "million" or nothing."""
    before, _, after = amount.replace(",", "").partition(".")
    if magnitude:
        return f"{decimal(amount, british=reading.british)} {magnitude} {currency.many}"
    small = after[:2] + after[2:].rstrip("0")  # $0.010 is a cent
    if len(small) > 2 or (small.strip("0") and not currency.cents):  # noqa: PLR2004
        return f"{decimal(amount, british=reading.british)} {currency.many}"
    units = int(before or 0)
    cents = int(small.ljust(2, "0")) if small else 0
    words = []
    if units or not cents:
        words.append(f"{cardinal(units, british=reading.british)} {currency.one if units == 1 else currency.many}")
    if cents:
        words.append(f"{cardinal(cents)} {currency.cent if cents == 1 else currency.cents}")
    return " ".join(words)


def _amount(match: re.Match[str], reading: Reading) -> str:
    currency = _BY_NAME[match["sign"].strip()]
    if is_attribute(match.string, match.start(), match.end()):
        # "a $1.50 fee" is one dollar fifty cent; pence stay.
        one = currency.cent if currency.cents.endswith("s") else currency.cents
        currency = replace(currency, many=currency.one, cents=one)
    size, bulk = (_magnitude(match, name) for name in ("size", "bulk"))
    minus = "minus " if match["minus"] or match["minus2"] else ""
    if match["amount2"] and not match["sign2"]:
        # "$10-20 million": both are so many millions of dollars.
        first = decimal(match["amount"], british=reading.british) + (f" {size}" if size else "")
        words = f"{first} to {sum_of(match['amount2'], currency, bulk, reading)}"
    else:
        words = sum_of(match["amount"], currency, size, reading)
        if match["amount2"]:
            other = _BY_NAME[match["sign2"].strip()]
            words += f" to {sum_of(match['amount2'], other, bulk, reading)}"
    return minus + words + _per(match)


def _magnitude(match: re.Match[str], name: str) -> str:
    written: str | None = match[name] or match[name + "1"]
    return _MAGNITUDES.get(written, written) if written else ""


def _per(match: re.Match[str]) -> str:
    return f" per {_PERIODS.get(match['per'], match['per'])}" if match["per"] else ""


def _sign_after(match: re.Match[str], reading: Reading) -> str:
    amount = match["amount"] or f"{match['whole'].replace('.', '')}.{match['cents']}"
    words = sum_of(amount, _BY_NAME[match["sign"]], match["size"] or "", reading)
    return ("minus " if match["minus"] else "") + words + _per(match)

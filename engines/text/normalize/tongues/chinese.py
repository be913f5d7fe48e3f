"""Chinese (Mandarin): no spaces between words, ten thousands, 两 before what is counted, 幺 in telephone numbers."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from engines.text.normalize.tongues.chinese_words import COUNTED, CURRENCIES, DIGITS, UNITS, cardinal, say, spell, whole
from engines.text.normalize.tongues.dates import day_of
from engines.text.normalize.tongues.numeral import Numeral, read
from engines.text.normalize.tongues.spans import GAP, SIGN, raised, sign_of

_LETTER: Final = r"[A-Za-z]"
_NUMBER: Final = r"(?P<number>\d+(?:[.,]\d+)*)"
_START: Final = r"(?<![\d.,])"
_FULL_WIDTH: Final = re.compile("(?<=\\d)[．：](?=\\d)|[－＋％／]")
"""Signs that belong to numbers; digits have become plain before. A full-width comma parts clauses, never digits."""
_YEAR_FIRST: Final = re.compile(r"(?<![\d.,/-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:T(?=\d)|(?![\d]|[./-]\d))")
_YEAR_LAST: Final = re.compile(r"(?<![\d.,/-])(\d{1,2})([/])(\d{1,2})\2(\d{4})(?![\d]|[./-]\d)")
_YEAR: Final = re.compile(r"(?<![\d.,])(\d{4}|\d\d(?!年代))(?=年(?!前|后|後|来|來|以))")
_CLOCK: Final = re.compile(r"(?<![\d.,:])(\d{1,2}):(\d\d)(?::(\d\d))?(?![\d:]|[.,]\d)")
_RATIO: Final = re.compile(r"(?<![\d.,:])(\d{1,4}):(\d{1,4})(?![\d:]|[.,]\d)")
_RANGE: Final = re.compile(
    rf"(?<![\d.,:-])(\d+(?:[.:]\d+)?{GAP}[%°℃]?) ?[-\u2013\u2014~～] ?(?=\d+(?:[.:]\d+)?(?![-\u2013:]\d))"
)
_FRACTION: Final = re.compile(r"(?<![\d.,/])(\d{1,3})/(\d{1,3})(?![\d/]|[.,]\d)")
_DOTTED: Final = re.compile(r"(?<![\d.,])(\d+(?:\.\d+){2,})(?![\d]|\.\d)")
_PHONE: Final = re.compile(r"(?<![\d.,:/+-])\+?\(?\d+\)?(?:[ -]\d+){0,8}(?![A-Za-z\d]|[ ,:./-]\d)")
_NAMED: Final = re.compile(
    r"((?:房间|房間|客房|病房)(?:号|號)?)(\d{3,4})(?![\d.,]|[间间个個元])"
    r"|(?:(?<=列车)|(?<=高铁)|(?<=动车)|(?<=火车)|(?<=车次)|(?<![A-Za-z])(?=[GDCKTZ]\d{1,4}次))([GDCKTZ])(\d{1,4})(?![\d.,])"
    r"|(?<![\d.,A-Za-z$¥€])()(\d{3,4})(?=房间|房間|室(?!内|内))"
)
"""Rooms and trains."""
_LABELLED: Final = re.compile(
    r"((?:电话|電話|手机|手機|热线|熱線|密码|密碼|验证码|代码|代碼|编号|編號|单号|订单号|车牌|邮编|拨打|撥打|致电)(?:号码|号)?[^\d\n+]{0,3})"
    r"(\+?\d{3,}(?:[ -]\d+){0,8})"
)
_BEFORE: Final = sorted((name for name in CURRENCIES if not "\u4e00" <= name[0] <= "\u9fff"), key=len, reverse=True)
"""What stands before a sum. Characters stand behind: 3单元502室 is no money."""
_EACH: Final = re.compile(r"(?<=[元次个人升斤])/(?=小时|分|秒|天|日|周|月|年|人|次|晚|公斤|斤|间)")
_NUMERO: Final = re.compile(r"(?<![A-Za-z])No\. ?(\d{1,6})(?![\d.,A-Za-z])")
_MONEY: Final = re.compile(
    rf"{SIGN}(?P<currency>{'|'.join(map(re.escape, _BEFORE))}){GAP}{_NUMBER}"
    r"(?P<scale>万亿|[万亿千百])?(?![\d])"
)
_MONEY_BEHIND: Final = re.compile(
    rf"{SIGN}{_START}{_NUMBER}(?P<scale>万亿|[万亿千百])?{GAP}"
    rf"(?P<currency>{'|'.join(map(re.escape, sorted(CURRENCIES, key=len, reverse=True)))})(?!{_LETTER})"
)
_UNIT: Final = re.compile(
    rf"{SIGN}{_START}{_NUMBER}{GAP}(?P<unit>{'|'.join(map(re.escape, sorted(UNITS, key=len, reverse=True)))})"
    r"(?![A-Za-z0-9])"
)
_COUNTED_UNITS: Final = "|".join(map(re.escape, sorted(UNITS.keys() - {"%", "‰"}, key=len, reverse=True)))
_SEAT: Final = re.compile(r"\d{1,4}[A-Z]")
_SEATED: Final = re.compile(r"(?:座|座位|登机口|出口|单元|房间|站台|车厢)(?:号|是|为|：|:)? ?$")
_PARTED_UNIT: Final = re.compile(rf"(?<![\d.,/])(\d{{1,3}})/([1-9]\d{{0,2}}){GAP}({_COUNTED_UNITS})(?![A-Za-z0-9/])")
_ANY: Final = re.compile(rf"{SIGN}(?<!\d){_NUMBER}")
_OPERATORS: Final = {"x": "乘", "×": "乘", "*": "乘", "+": "加", "=": "等于", "\u2212": "减"}
_OPERATOR: Final = re.compile(r"(?<=\d) ?([x×*+=\u2212]) ?(?=\d)")
_GROUPED: Final = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_POWER: Final = re.compile(r"(?<=[A-Za-z0-9])\^([-\u2212]?)(\d{1,6})(?![A-Za-z0-9])")
_RAISED: Final = re.compile("[\u00b2\u00b3\u00b9\u2070-\u209c]+")
_PHONE_DIGITS: Final = range(7, 16)
_MOBILE: Final = re.compile(r"1[3-9]\d{9}")
_SIGNS: Final = {"-": "负", "+": "正", "±": "正负", "": ""}


def written_forms(text: str, *, month_first: bool = False) -> str:
    """Put the numbers of a Chinese text into words, its dates, times, money, units and telephone numbers."""
    text = _FULL_WIDTH.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    text = _YEAR_FIRST.sub(lambda found: _date(found, found[1], found[3], found[4]), text)
    month, day = (1, 3) if month_first else (3, 1)
    text = _YEAR_LAST.sub(lambda found: _date(found, found[4], found[month], found[day]), text)
    text = _NAMED.sub(_named, text)
    text = _LABELLED.sub(lambda found: found[1] + telephone(found[2]), text)
    text = _PHONE.sub(lambda found: _phone(found[0]), text)
    text = _EACH.sub("每", text)
    text = _NUMERO.sub(r"\1号", text)
    text = _YEAR.sub(lambda found: spell(found[1]), text)
    text = _DOTTED.sub(_dotted, text)
    text = _RANGE.sub(lambda found: f"{found[1]}到", text)
    text = _CLOCK.sub(lambda found: clock(found[1], found[2], found[3]) or found[0], text)
    text = _RATIO.sub(lambda found: f"{whole(found[1])}比{whole(found[2])}", text)
    text = _OPERATOR.sub(lambda found: _OPERATORS[found[1]], text)
    text = _POWER.sub(lambda found: _exponent(found[1], found[2]), text)
    text = _PARTED_UNIT.sub(lambda found: f"{whole(found[2])}分之{whole(found[1])}{UNITS[found[3]]}", text)
    for pattern in (_MONEY, _MONEY_BEHIND):
        text = pattern.sub(_money, text)
    text = _UNIT.sub(_value, text)
    text = _FRACTION.sub(lambda found: f"{whole(found[2])}分之{whole(found[1])}", text)
    text = _ANY.sub(_number, text)
    text = _RAISED.sub(lambda found: _power(found[0]), text)
    return "".join(DIGITS[unicodedata.digit(char)] if char.isdigit() else char for char in text)


def _named(found: re.Match[str]) -> str:
    return (found[1] or found[3] or "") + telephone(found[2] or found[4] or found[6])


def telephone(written: str) -> str:
    """Return digits one by one, one as 幺, a pause where anything stands between them."""
    groups = [spell(group).replace("一", "幺") for group in re.findall(r"\d+", written)]
    return ("加" if written.lstrip().startswith("+") else "") + "，".join(groups)


def clock(hour: str, minute: str, second: str | None = None) -> str | None:
    """Return the words of a time of day, or None where there is no such."""
    if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 59:
        return None
    words = ("两" if int(hour) == 2 else cardinal(int(hour))) + "点"
    if int(minute) or second:
        zero = DIGITS[0] if int(minute) < 10 else ""
        words += f"{zero if int(minute) else ''}{cardinal(int(minute))}分"
    return words + (f"{cardinal(int(second))}秒" if second and int(second) else "")


def sum_of(numeral: Numeral, currency: str, scale: str = "") -> str:
    """Return a sum of money."""
    fraction = numeral.fraction.rstrip("0")
    if scale or not fraction:
        return _counted(Numeral(numeral.whole, fraction), scale or currency) + (currency if scale else "")
    if currency == "元" and len(numeral.fraction) == 2:
        tenths, hundredths = numeral.fraction[0], numeral.fraction[1]
        words = "" if not numeral.whole.strip("0") else _counted(Numeral(numeral.whole), currency)
        if tenths != "0":
            words += _counted(Numeral(tenths), "角")
        elif words:
            words += DIGITS[0]
        return words + (f"{DIGITS[int(hundredths)]}分" if hundredths != "0" else "")
    return say(Numeral(numeral.whole, fraction)) + currency


def date(year: int | None, month: int, day: int) -> str:
    """Return a day of the calendar."""
    return (f"{spell(str(year))}年" if year is not None else "") + f"{cardinal(month)}月{cardinal(day)}日"


def value(numeral: Numeral, unit: str) -> str:
    """Return a measured value, its unit as it is written."""
    name = UNITS[unit]
    if name in {"%", "‰"}:
        return ("百分之" if name == "%" else "千分之") + say(numeral)
    return _counted(numeral, name)


def _counted(numeral: Numeral, noun: str) -> str:
    if (
        numeral.whole == "2"
        and not numeral.fraction
        and noun[0] in COUNTED | {"万", "亿", "角", "焦", "帕", "牛", "百", "欧", "转", "像"}
    ):
        return "两" + noun
    return say(numeral) + noun


def _date(found: re.Match[str], year: str, month: str, day: str) -> str:
    checked = day_of(int(day), int(month), int(year))
    return date(checked.year, checked.month, checked.day) if checked else found[0]


def _phone(written: str) -> str:
    digits = re.sub(r"\D", "", written)
    if len(digits) not in _PHONE_DIGITS or re.fullmatch(r"0+\.\d+|0+", written):
        return written
    opens = written[0] in "+("
    zero = written[0] == "0"
    mobile = bool(_MOBILE.fullmatch(digits))
    service = re.fullmatch(r"[48]00-\d{3}-?\d{4}", written) is not None
    return telephone(written) if opens or zero or mobile or service else written


def _dotted(found: re.Match[str]) -> str:
    return "点".join(map(whole, found[1].split(".")))


def _front(found: re.Match[str]) -> str:
    if not found["sign"]:
        return ""
    meant = sign_of(found.string, found.start(), found["sign"])
    chinese_before = found.start() > 0 and "\u4e00" <= found.string[found.start() - 1] <= "\u9fff"
    if chinese_before:  # words are not parted by spaces here, so a dash behind one is still a sign
        meant = "-" if found["sign"] in "-\u2212" else meant
    return _SIGNS[meant] if meant else found["sign"]


def _read(written: str) -> Numeral | None:
    """Read a number; commas group three digits or part a list, they are never decimal."""
    return None if "," in written and not _GROUPED.fullmatch(written) else read(written, decimal=".")


def _money(found: re.Match[str]) -> str:
    numeral = _read(found["number"])
    if numeral is None:
        return found[0]
    return _front(found) + sum_of(numeral, CURRENCIES[found["currency"]], found["scale"] or "")


def _value(found: re.Match[str]) -> str:
    numeral = _read(found["number"])
    seat = _SEAT.fullmatch(found[0]) and _SEATED.search(found.string[max(0, found.start() - 4) : found.start()])
    return found[0] if numeral is None or seat else _front(found) + value(numeral, found["unit"])


def _number(found: re.Match[str]) -> str:
    numeral = _read(found["number"])
    if numeral is None:
        return _front(found) + re.sub(r"\d+", lambda piece: whole(piece[0]), found["number"])
    text = found.string
    start, end = found.span("number")
    glued = text[start - 1 : start].isascii() and text[start - 1 : start].isalpha()
    if glued and len(numeral.whole) > 3:
        return _front(found) + spell(numeral.whole)
    follows = text[end : end + 1]
    second = text[end + 1 : end + 2]
    # 2分 and 2年 are counted, 2日, 2月 and 2号 are numbered; 第2个 is a place in a row.
    ordinal = text[start - 1 : start] == "第"
    counted = follows and follows in COUNTED and not ordinal and not (follows == "日" and second != "元")
    if numeral.whole == "2" and not numeral.fraction and (counted or (follows == "点" and not ordinal)):
        return _front(found) + "两"
    return _front(found) + say(numeral)


def _exponent(sign: str, digits: str) -> str:
    return "平方" if digits == "2" and not sign else f"的{'负' if sign else ''}{whole(digits)}次方"


def _power(written: str) -> str:
    digits = "".join(char for char in written if char.isdigit())
    if not digits:
        return written
    return "平方" if digits == "\u00b2" else f"的{whole(raised(digits))}次方"

"""What things are called in Chinese, and how numbers are spoken."""

from __future__ import annotations

from typing import Final

from engines.text.normalize.tongues.numeral import Numeral

DIGITS: Final = "零一二三四五六七八九"
_PLACES: Final = ("", "十", "百", "千")
_MYRIADS: Final = ("", "万", "亿", "万亿")
_LARGEST: Final = 10**15

UNITS: Final = {
    "%": "%",
    "％": "%",
    "‰": "‰",
    **dict.fromkeys(("°C", "℃"), "摄氏度"),
    "°F": "华氏度",
    "°": "度",
    **dict.fromkeys(("km/h", "kmh"), "公里每小时"),
    "m/s": "米每秒",
    "km²": "平方公里",
    "km2": "平方公里",
    "m²": "平方米",
    "m2": "平方米",
    "cm²": "平方厘米",
    "cm2": "平方厘米",
    "mm²": "平方毫米",
    "mm2": "平方毫米",
    "ha": "公顷",
    "m³": "立方米",
    "m3": "立方米",
    "cm³": "立方厘米",
    "cm3": "立方厘米",
    "km": "公里",
    "m": "米",
    "dm": "分米",
    "cm": "厘米",
    "mm": "毫米",
    "µm": "微米",
    "μm": "微米",
    "nm": "纳米",
    "kg": "公斤",
    "g": "克",
    "mg": "毫克",
    "µg": "微克",
    "μg": "微克",
    "t": "吨",
    "l": "升",
    "L": "升",
    "dl": "分升",
    "cl": "厘升",
    "ml": "毫升",
    "mL": "毫升",
    "kWh": "千瓦时",
    "Wh": "瓦时",
    "MWh": "兆瓦时",
    "MW": "兆瓦",
    "kW": "千瓦",
    "W": "瓦",
    "mW": "毫瓦",
    "kV": "千伏",
    "V": "伏",
    "mV": "毫伏",
    "A": "安",
    "mA": "毫安",
    "Ah": "安时",
    "mAh": "毫安时",
    "Hz": "赫兹",
    "kHz": "千赫兹",
    "MHz": "兆赫兹",
    "GHz": "吉赫兹",
    "kB": "千字节",
    "KB": "千字节",
    "MB": "兆字节",
    "GB": "吉字节",
    "TB": "太字节",
    "kbit/s": "千比特每秒",
    "Mbit/s": "兆比特每秒",
    "Mbps": "兆比特每秒",
    "Gbit/s": "吉比特每秒",
    "MB/s": "兆字节每秒",
    "h": "小时",
    "min": "分钟",
    "s": "秒",
    "ms": "毫秒",
    "µs": "微秒",
    "μs": "微秒",
    "Pa": "帕",
    "hPa": "百帕",
    "kPa": "千帕",
    "bar": "巴",
    "mbar": "毫巴",
    "psi": "磅每平方英寸",
    "dB": "分贝",
    "N": "牛",
    "Nm": "牛米",
    "J": "焦耳",
    "kJ": "千焦",
    "kcal": "千卡",
    "Ω": "欧姆",
    "kΩ": "千欧",
    "lx": "勒克斯",
    "lm": "流明",
    "rpm": "转每分",
    "x": "次",
    "×": "次",
    "ppm": "ppm",
    "px": "像素",
}
"""By each sign. Those of per cent and per mille keep theirs: they are said before the number."""

CURRENCIES: Final = {
    **dict.fromkeys(("¥", "￥", "CNY", "RMB"), "元"),
    **dict.fromkeys(("$", "US$", "USD"), "美元"),
    **dict.fromkeys(("€", "EUR"), "欧元"),
    **dict.fromkeys(("£", "GBP"), "英镑"),
    "CHF": "瑞士法郎",
    **{name: name for name in ("元", "美元", "欧元", "英镑", "日元")},
    "JPY": "日元",
    **dict.fromkeys(("R$", "BRL"), "雷亚尔"),
}

COUNTED: Final = frozenset(
    "个個位只隻台臺件条條张張本名人次天年周週层層种種辆輛杯瓶分秒小份家间間块塊元美欧英日斤公千米平立升克吨噸毫厘兆瓦伏安度倍岁歲句页頁双雙套片粒颗顆包盒袋罐箱万亿桶碗盘盤勺滴趟支根把头頭群对對批遍顿頓篇封幅架艘站项項款座件"
)
"""What two of is 两; save before 月, 号, 日, 楼 and the like, which are numbered."""


def cardinal(number: int) -> str:
    """Return the words of a number from 0 to below 10**15."""
    if not number:
        return DIGITS[0]
    groups = []
    while number:
        number, group = divmod(number, 10**4)
        groups.append(group)
    words = ""
    gap = False
    for place in range(len(groups) - 1, -1, -1):
        group = groups[place]
        if not group:
            gap = bool(words)
            if words and place == 2 and words.endswith("万"):  # 12 3456 0000 0000: 万 is of 亿
                words += "亿"
            continue
        if words and (gap or group < 10**3):
            words += DIGITS[0]
        trillions = place == 3 and len(groups) > 3
        words += _four(group) + ("万" if trillions else _MYRIADS[place])
        if trillions and not groups[2]:
            words += "亿"
        gap = False
    if words.startswith(("二千", "二万", "二亿")):
        return "两" + words[1:]
    return words.removeprefix("一") if words.startswith("一十") else words


def spell(digits: str) -> str:
    """Return digits one by one, as in years."""
    return "".join(DIGITS[int(digit)] for digit in digits)


def whole(digits: str) -> str:
    """Return an integer as it was written: with leading zeros, or too long for anybody, it is spelled."""
    if (len(digits) > 1 and digits[0] == "0") or len(digits) > len(str(_LARGEST)) - 1:
        return spell(digits)
    return cardinal(int(digits))


def say(numeral: Numeral) -> str:
    """Return a number with its fraction."""
    return whole(numeral.whole) + (f"点{spell(numeral.fraction)}" if numeral.fraction else "")


def _four(number: int) -> str:
    words = ""
    for place, digit in zip((3, 2, 1, 0), f"{number:04}", strict=True):
        if digit != "0":
            words += DIGITS[int(digit)] + _PLACES[place]
        elif words and not words.endswith(DIGITS[0]):
            words += DIGITS[0]
    return words.rstrip(DIGITS[0])

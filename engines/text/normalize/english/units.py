"""Units of measurement: how they are written, what they are called."""

from __future__ import annotations

from typing import Final

_PREFIXED: Final = {
    # unit: (name, plural, the prefixes that it is met with)
    "m": ("meter", "meters", "k c d n μ"),
    "g": ("gram", "grams", "k μ"),
    "mg": ("milligram", "milligrams", ""),
    "mm": ("millimeter", "millimeters", ""),
    "s": ("second", "seconds", "m μ n"),
    "A": ("ampere", "amperes", "m k μ"),
    "V": ("volt", "volts", "m k M"),
    "W": ("watt", "watts", "m k M G T"),
    "Wh": ("watt hour", "watt hours", "k M G T"),
    "Ah": ("ampere hour", "ampere hours", "m"),
    "Hz": ("hertz", "hertz", "k M G T"),
    "J": ("joule", "joules", "k M"),
    "N": ("newton", "newtons", "k"),
    "Nm": ("newton meter", "newton meters", "k"),
    "Pa": ("pascal", "pascals", "h k M"),
    "bar": ("bar", "bars", "m"),
    "Ω": ("ohm", "ohms", "m k M"),
    "F": ("farad", "farads", "μ n p m"),
    "l": ("liter", "liters", "m c d h"),
    "L": ("liter", "liters", "m c d"),
    "B": ("byte", "bytes", "k K M G T P"),
    "bit": ("bit", "bits", "k M G T"),
    "cal": ("calorie", "calories", "k"),
    "lx": ("lux", "lux", "k"),
    "lm": ("lumen", "lumens", ""),
    "cd": ("candela", "candelas", ""),
    "mol": ("mole", "moles", "m"),
    "rad": ("radian", "radians", ""),
    "Sv": ("sievert", "sieverts", "m μ"),
    "Bq": ("becquerel", "becquerels", "k M"),
    "eV": ("electron volt", "electron volts", "k M G"),
    "VA": ("volt ampere", "volt amperes", "k M"),
    "t": ("metric ton", "metric tons", ""),
    "px": ("pixel", "pixels", ""),
    "pixel": ("pixel", "pixels", "M"),
    "MP": ("megapixel", "megapixels", ""),
}
_PREFIXES: Final = {
    "n": "nano", "μ": "micro", "m": "milli", "c": "centi", "d": "deci", "h": "hecto", "k": "kilo", "K": "kilo",
    "M": "mega", "G": "giga", "T": "tera", "P": "peta", "p": "pico",
}  # fmt: skip

_OTHER: Final = {
    "in": ("inch", "inches"), "ft": ("foot", "feet"), "yd": ("yard", "yards"), "yds": ("yard", "yards"),
    "mi": ("mile", "miles"), "nmi": ("nautical mile", "nautical miles"), "oz": ("ounce", "ounces"),
    "lb": ("pound", "pounds"), "lbs": ("pound", "pounds"), "st": ("stone", "stone"),
    "gal": ("gallon", "gallons"), "pt": ("pint", "pints"), "qt": ("quart", "quarts"),
    "tsp": ("teaspoon", "teaspoons"), "tbsp": ("tablespoon", "tablespoons"),
    "fl oz": ("fluid ounce", "fluid ounces"), "fl. oz.": ("fluid ounce", "fluid ounces"),
    "fl. oz": ("fluid ounce", "fluid ounces"), "qts": ("quart", "quarts"), "gals": ("gallon", "gallons"),
    "pts": ("point", "points"), "IU": ("international unit", "international units"),
    "ly": ("light year", "light years"),
    "K": ("kelvin", "kelvins"), "Mpx": ("megapixel", "megapixels"), "inHg": ("inch of mercury", "inches of mercury"),
    "N·m": ("newton meter", "newton meters"), "kW·h": ("kilowatt hour", "kilowatt hours"),
    "ha": ("hectare", "hectares"), "ac": ("acre", "acres"),
    "kgs": ("kilogram", "kilograms"), "kms": ("kilometer", "kilometers"), "cms": ("centimeter", "centimeters"),
    "mcg": ("microgram", "micrograms"), "cc": ("CC", "CC"),
    "mph": ("mile per hour", "miles per hour"), "MPH": ("mile per hour", "miles per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"), "kmh": ("kilometer per hour", "kilometers per hour"),
    "kmph": ("kilometer per hour", "kilometers per hour"), "mpg": ("mile per gallon", "miles per gallon"),
    "kn": ("knot", "knots"), "kt": ("knot", "knots"), "kts": ("knot", "knots"),
    "rpm": ("revolution per minute", "revolutions per minute"),
    "RPM": ("revolution per minute", "revolutions per minute"),
    "bpm": ("beat per minute", "beats per minute"), "fps": ("frame per second", "frames per second"),
    "FPS": ("frame per second", "frames per second"), "dpi": ("dot per inch", "dots per inch"),
    "ppi": ("pixel per inch", "pixels per inch"), "ppm": ("part per million", "parts per million"),
    "ppb": ("part per billion", "parts per billion"),
    "kbps": ("kilobit per second", "kilobits per second"), "Kbps": ("kilobit per second", "kilobits per second"),
    "Mbps": ("megabit per second", "megabits per second"), "mbps": ("megabit per second", "megabits per second"),
    "Gbps": ("gigabit per second", "gigabits per second"), "gbps": ("gigabit per second", "gigabits per second"),
    "bps": ("bit per second", "bits per second"),
    "kb": ("kilobit", "kilobits"), "Mb": ("megabit", "megabits"), "Gb": ("gigabit", "gigabits"),
    "KiB": ("kibibyte", "kibibytes"), "MiB": ("mebibyte", "mebibytes"), "GiB": ("gibibyte", "gibibytes"),
    "TiB": ("tebibyte", "tebibytes"),
    "min": ("minute", "minutes"), "mins": ("minute", "minutes"), "sec": ("second", "seconds"),
    "secs": ("second", "seconds"), "h": ("hour", "hours"), "hr": ("hour", "hours"), "hrs": ("hour", "hours"),
    "msec": ("millisecond", "milliseconds"), "wk": ("week", "weeks"), "wks": ("week", "weeks"),
    "mo": ("month", "months"), "mos": ("month", "months"), "yr": ("year", "years"), "yrs": ("year", "years"),
    "dB": ("decibel", "decibels"), "dBA": ("decibel A", "decibels A"), "dBm": ("dBm", "dBm"),
    "hp": ("horsepower", "horsepower"),
    "HP": ("horsepower", "horsepower"), "psi": ("pound per square inch", "pounds per square inch"),
    "mmHg": ("millimeter of mercury", "millimeters of mercury"), "atm": ("atmosphere", "atmospheres"),
    "lux": ("lux", "lux"), "ohm": ("ohm", "ohms"), "ohms": ("ohm", "ohms"), "kohm": ("kiloohm", "kiloohms"),
    "sq ft": ("square foot", "square feet"), "sq. ft.": ("square foot", "square feet"),
    "sq. ft": ("square foot", "square feet"), "sq mi": ("square mile", "square miles"),
    "sq. mi.": ("square mile", "square miles"), "sq m": ("square meter", "square meters"),
    "sq km": ("square kilometer", "square kilometers"), "sq yd": ("square yard", "square yards"),
    "sq in": ("square inch", "square inches"), "cu ft": ("cubic foot", "cubic feet"),
    "cu m": ("cubic meter", "cubic meters"), "cu in": ("cubic inch", "cubic inches"),
    "BTU": ("British thermal unit", "British thermal units"), "Btu": ("British thermal unit", "British thermal units"),
    "°C": ("degree Celsius", "degrees Celsius"), "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "° C": ("degree Celsius", "degrees Celsius"), "° F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°K": ("kelvin", "kelvins"), "°": ("degree", "degrees"),
    "° N": ("degree north", "degrees north"), "° S": ("degree south", "degrees south"),
    "° E": ("degree east", "degrees east"), "° W": ("degree west", "degrees west"),
    "°N": ("degree north", "degrees north"), "°S": ("degree south", "degrees south"),
    "°E": ("degree east", "degrees east"), "°W": ("degree west", "degrees west"),
    "%": ("percent", "percent"), "‰": ("per mille", "per mille"), "℃": ("degree Celsius", "degrees Celsius"),
    "℉": ("degree Fahrenheit", "degrees Fahrenheit"),
}  # fmt: skip


def _named() -> dict[str, tuple[str, str]]:
    table = dict(_OTHER)
    for sign, (one, many, prefixes) in _PREFIXED.items():
        table.setdefault(sign, (one, many))
        for prefix in prefixes.split():
            table.setdefault(prefix + sign, (_PREFIXES[prefix] + one, _PREFIXES[prefix] + many))
            if prefix == "μ":
                table.setdefault("u" + sign, table[prefix + sign])
    del table["F"]  # Fahrenheit as often
    return table


UNITS: Final = _named()
"""What is written -> its name for one, and for any other number."""

DOUBTFUL: Final = frozenset(
    {"in", "st", "pt", "K", "mo", "kn", "kt", "ac", "cd", "rad", "B", "L", "N", "bit", "t", "us"}
)
"""Also words, letters or suffixes: units only where they follow the number at once, or a full stop ends them."""

LENGTHS: Final = frozenset({"m", "km", "cm", "mm", "dm", "ft", "in", "yd", "mi", "μm"})
"""Units that are squared and cubed."""

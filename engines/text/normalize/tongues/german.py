"""German: ein and eins, endings of places in a row by what stands before them, hundreds in years."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from engines.text.normalize.tongues.spans import before
from engines.text.normalize.tongues.times import said_time
from engines.text.normalize.tongues.tongue import Day, Form, Noun, Tongue, currencies, nouns

_ONES: Final = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
).split()
_TENS: Final = "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_POWERS: Final = (
    (10**12, "eine Billion", "Billionen"),
    (10**9, "eine Milliarde", "Milliarden"),
    (10**6, "eine Million", "Millionen"),
)
_STEMS: Final = {"eins": "ers", "drei": "drit", "sieben": "sieb", "acht": "ach"}

_UNITS: Final = nouns("""
ct Ct.      | Cent
%           | Prozent
‰           | Promille
°           | Grad
°C ℃        | Grad Celsius
°F          | Grad Fahrenheit
km/h kmh    | Kilometer pro Stunde
m/s         | Meter pro Sekunde
km          | Kilometer
m           | Meter
dm          | Dezimeter
cm          | Zentimeter
mm          | Millimeter
µm μm       | Mikrometer
nm          | Nanometer
km² km2     | Quadratkilometer
m² m2 qm    | Quadratmeter
cm² cm2     | Quadratzentimeter
mm² mm2     | Quadratmillimeter
ha          | Hektar
m³ m3       | Kubikmeter
cm³ cm3     | Kubikzentimeter
kg          | Kilogramm
g           | Gramm
mg          | Milligramm
µg μg       | Mikrogramm
t           | Tonne | Tonnen | f
l L         | Liter
dl          | Deziliter
cl          | Zentiliter
ml mL       | Milliliter
kWh         | Kilowattstunde | Kilowattstunden | f
Wh          | Wattstunde | Wattstunden | f
MWh         | Megawattstunde | Megawattstunden | f
MW          | Megawatt
kW          | Kilowatt
W           | Watt
mW          | Milliwatt
kV          | Kilovolt
V           | Volt
mV          | Millivolt
A           | Ampere
mA          | Milliampere
Ah          | Amperestunde | Amperestunden | f
mAh         | Milliamperestunde | Milliamperestunden | f
Hz          | Hertz
kHz         | Kilohertz
MHz         | Megahertz
GHz         | Gigahertz
kB KB       | Kilobyte
MB          | Megabyte
GB          | Gigabyte
TB          | Terabyte
kbit/s      | Kilobit pro Sekunde
Mbit/s Mbps | Megabit pro Sekunde
Gbit/s      | Gigabit pro Sekunde
MB/s        | Megabyte pro Sekunde
TL          | Teelöffel
EL          | Esslöffel
h Std. Std  | Stunde | Stunden | f
min Min.    | Minute | Minuten | f
s sec Sek.  | Sekunde | Sekunden | f
ms          | Millisekunde | Millisekunden | f
µs μs       | Mikrosekunde | Mikrosekunden | f
Pa          | Pascal
hPa         | Hektopascal
kPa         | Kilopascal
bar         | Bar
mbar        | Millibar
psi         | PSI
dB          | Dezibel
N           | Newton
Nm          | Newtonmeter
J           | Joule
kJ          | Kilojoule
kcal        | Kilokalorie | Kilokalorien | f
Ω           | Ohm
kΩ          | Kiloohm
lx          | Lux
lm          | Lumen
x \u00d7         | mal
rpm U/min   | Umdrehung pro Minute | Umdrehungen pro Minute | f
ppm         | ppm
px          | Pixel
""")

_CURRENCIES: Final = currencies("""
€ EUR Euro       | Euro | Euro | Cent | Cent
$ USD US$ Dollar | Dollar | Dollar | Cent | Cent
£ GBP            | Pfund | Pfund | Penny | Pence
CHF Fr. SFr. Franken | Franken | Franken | Rappen | Rappen
¥ JPY Yen        | Yen | Yen
CNY RMB          | Yuan | Yuan
R$ BRL           | Real | Real | Centavo | Centavos
""")

_MONTHS: Final = tuple("Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split())
_SHORT_MONTHS: Final = "jan feb mär apr - jun jul aug sep okt nov dez".split()

_DATIVE: Final = frozenset(
    "am im vom zum zur beim ab bis dem den des der seit einem einen keinem jedem jeden diesem diesen ihrem ihren ihrer "
    "seinem seinen seiner meinem meinen meiner unserem unseren unserer ersten und oder".split()
)
_NOMINATIVE: Final = frozenset("der die das eine jede diese ihre seine meine unsere".split())
_PREPOSITIONS: Final = frozenset("in an auf mit von bei zu aus nach seit vor hinter neben unter über ab".split())
_RANKED: Final = frozenset(
    "stock etage obergeschoss untergeschoss platz tag klasse quartal runde stufe reihe halbzeit woche mal kapitel gang "
    "liga person versuch schritt teil akt band ausgabe auflage generation stunde minute".split()
)
_FEMININE: Final = re.compile(r"(?:e|ung|heit|keit|schaft|tät|ion|ik|ur|enz|anz)$")
_ORDINAL: Final = re.compile(
    r"(?<![\w.,:])(\d{1,4})\.(?= ?[-\u2013] ?\d{1,4}\. | (?:bis|und|oder) (?:\w{2,4} )?\d{1,4}\. | ([^\W\d_]{2,}))"
)
_DECADE: Final = re.compile(r"(?<![\w.,])(\d{1,4})er(?!\w)")
_IN_ONE: Final = re.compile(
    r"(?<!\w)([IiVvNnSsMmBbAa](?:n|or|ach|eit|it|innen|us|ei|b)) 1 ?([^\W\d_]{1,40}\.?)(?![\w/]|\.?\d)"
)
_UHR: Final = re.compile(r"(?<![\w.,:])(\d{1,2})(?:\.(\d\d))? ?Uhr(?! ?\d)(?!\w)")
_IN_MANY: Final = re.compile(
    r"(?<!\w)([Ii]n|[Nn]ach|[Aa]us|[Vv]on|[Mm]it|[Vv]or|[Bb]ei|[Zz]u|[Aa]b) "
    r"(?!1 ?[a-z])(\d{1,3}(?:\.\d{3}|\d{0,3})(?:,\d{1,2})?) ?([kcm]?m|m?l)(?![\w²³/.])"
)
_DAY_AND_MONTH: Final = re.compile(r"(?<![\w.,:])(\d{1,2})\.(\d{1,2})\.(?!\d)")
_HUNDREDS_IN_YEARS: Final = range(1100, 2000)


class German(Tongue):
    """German of Germany; of Austria ("de-at") with Jänner and Feber; of Switzerland ("de-ch") with 1.5 and 1'000."""

    nouns_are_capital = True
    pairs_after_comma = False
    digits = tuple(_ONES[:10])
    comma = "Komma"
    minus, plus, plus_minus, times, equals = "minus", "plus", "plus minus", "mal", "gleich"
    dot, until, ratio, out_of = "Punkt", "bis", "zu", "von"
    squared, power = "hoch zwei", "hoch"
    also, per = "und", "pro"
    number_sign, number_signs = "Nummer", r"Nr\.|№|#"
    labels = frozenset(
        "code pin tan kennwort passwort kennziffer auftragsnummer bestellnummer seriennummer ticketnummer "
        "artikelnummer kundennummer buchungscode telefon tel tel. telefonnummer rufnummer hotline fax mobil notruf "
        "handynummer postleitzahl plz id".split()
    )
    places = frozenset(
        "gleis tor halle raum zimmer terminal nummer seite kapitel version linie bus tram etage stufe level phase "
        "punkt kanal zone platz ebene schalter ausgang eingang block sektor abschnitt reihe wagen kabine kasse box "
        "motor pumpe ventil sensor akku station roboter tisch port slot spur".split()
    )
    no_nouns = frozenset("uhr".split())
    months = _MONTHS
    month_aliases: ClassVar[dict[str, int]] = {
        **{name: i + 1 for i, name in enumerate(_SHORT_MONTHS) if name != "-"},
        "sept": 9,
        "jänner": 1,
        "feber": 2,
    }
    units = _UNITS
    currencies = _CURRENCIES
    scales = nouns("""
        Tsd. Tausend tausend | tausend
        Mio. Mio Million Millionen | Million | Millionen | f
        Mrd. Mrd Milliarde Milliarden | Milliarde | Milliarden | f
        Billion Billionen | Billion | Billionen | f
    """)
    thousands = frozenset({"tausend"})
    short_scales = frozenset({"Tsd.", "Mio.", "Mio", "Mrd.", "Mrd"})
    clock_suffix = "Uhr|h"

    def __init__(self, region: str = "") -> None:
        """`region`: "at", "ch" or neither."""
        if region == "at":
            self.months = ("Jänner", *_MONTHS[1:])
        if region == "ch":
            self.decimal = "."
            self.comma = "Punkt"

    def cardinal(self, number: int, form: Form = "alone") -> str:
        if number == 1 and form != "alone":
            return "eine" if form == "f" else "ein"
        return _compound(number)

    def ordinal(self, number: int, form: Form = "alone") -> str:
        del form
        words = _compound(number)
        small = number % 100
        for stem, changed in _STEMS.items():
            if small < len(_ONES) and words.endswith(stem):
                return words[: -len(stem)] + changed + "te"
        return words + ("te" if 0 < small < len(_ONES) else "ste")

    def fraction(self, top: int, bottom: int) -> str | None:
        if bottom == 2:
            return "ein halb" if top == 1 else None
        if top >= bottom or bottom not in {*range(3, 11), 12, 16, 20, 100}:
            return None
        return f"{self.cardinal(top, 'm')} {self.ordinal(bottom).capitalize()}l"

    def mixed(self, whole: str, fraction: str, *, half: bool) -> str:
        if half and len(whole) < len("100"):
            return f"{self.whole(whole, 'm')}einhalb"
        return super().mixed(whole, fraction, half=half)

    def date(self, day: Day, before: str) -> str:
        words = f"{self.ordinal(day.day)}{_ending(before.split(), 'r')} {self.months[day.month - 1]}"
        return f"{words} {self.year(day.year)}" if day.year is not None else words

    def year(self, year: int) -> str:
        if year not in _HUNDREDS_IN_YEARS:
            return _compound(year)
        hundreds, rest = divmod(year, 100)
        return f"{_compound(hundreds)}hundert{_compound(rest) if rest else ''}"

    def clock(self, hour: int, minute: int, before: str) -> str:
        del before
        words = f"{self.cardinal(hour, 'm')} Uhr"
        return f"{words} {_compound(minute)}" if minute else words

    def gender_of(self, noun: str) -> Form:
        return "f" if _FEMININE.search(noun) else "m"

    def is_noun(self, word: str) -> bool:
        return word[0].isupper() and super().is_noun(word)

    def lone(self, whole: str, second: str, first: str) -> str:
        del second
        year = len(whole) == len("1998") and whole[0] != "0" and first not in self.places and first not in self.labels
        return self.year(int(whole)) if year else self.whole(whole)

    def money(self, major: str, cents: int, minor: Noun) -> str:
        del minor
        return f"{major} {_compound(cents)}"

    def times_written(self, text: str) -> str:
        """8 Uhr, 8.05 Uhr."""

        def clock(found: re.Match[str]) -> str:
            said = said_time(self, found[1], found[2] or "0", None, "")
            return found[0] if said is None else said

        return _UHR.sub(clock, text)

    def ordinals(self, text: str) -> str:
        """Say 3. Stock and 80er; a number that ends a sentence is no place in a row."""
        text = _IN_ONE.sub(self._in_one, self.day_and_month(text))
        text = _IN_MANY.sub(lambda found: f"{found[1]} {found[2]} {self.units[found[3]].many}n", text)
        text = _DECADE.sub(lambda found: f"{self.year(int(found[1]))}er", text)
        return _ORDINAL.sub(lambda found: self._place(text, found), text)

    def day_and_month(self, text: str) -> str:
        """Say 3.4. where a preposition or a leading zero tells that it is a day."""

        def day(found: re.Match[str]) -> str:
            near = before(text, found.start())
            dated = near[1] in _DATIVE or near[1] in _NOMINATIVE or (found[1] + found[2]).startswith("0")
            number, month = int(found[1]), int(found[2])
            exists = 1 <= number <= 31 and 1 <= month <= 12
            return self.date(Day(number, month), " ".join(near)) if dated and exists else found[0]

        return _DAY_AND_MONTH.sub(day, text)

    def _in_one(self, found: re.Match[str]) -> str:
        """In 1 Minute, vor 1 h: the dative."""
        word, stop = found[2], "." * found[2].endswith(".")
        unit = self.units.get(word)
        if unit is None:
            word = word.rstrip(".")
            unit = self.units.get(word)
        elif not re.match(r" *(?:\n|\Z)", found.string[found.end() :]):
            stop = ""  # of the abbreviation, and of no sentence
        if unit is None and not self.is_noun(word):
            return found[0]
        gender = unit.gender if unit else self.gender_of(word)
        return f"{found[1]} {'einer' if gender == 'f' else 'einem'} {unit.one if unit else word}{stop}"

    def _place(self, text: str, found: re.Match[str]) -> str:
        near = before(text, found.start())
        noun = found[2] or ""
        if noun and near[1] not in _DATIVE | _NOMINATIVE:
            first_word = not near[1] and noun.lower() in _RANKED
            if not first_word:
                return found[0]
        elif noun and not noun[0].isupper() and noun not in {"und", "oder", "bis"}:
            return self.ordinal(int(found[1])) + _ending(near, "")
        bare = "" if self.gender_of(noun) == "f" else "r"
        return self.ordinal(int(found[1])) + _ending([word for word in near if word], bare)


def _ending(near: list[str] | tuple[str, ...], bare: str) -> str:
    """Return what "dritte" ends in after these words: n after "am" and "in der", nothing after "der", else `bare`."""
    last = near[-1] if near else ""
    ahead = near[-2] if len(near) > 1 else ""
    if last in _NOMINATIVE and not (last == "der" and ahead in _PREPOSITIONS):
        return ""
    return "n" if last in _DATIVE else bare


def _compound(number: int) -> str:
    """Return a cardinal that ends in "eins" where it ends in one."""
    words = []
    for power, one, many in _POWERS:
        count, number = divmod(number, power)
        if count:
            words.append(one if count == 1 else f"{_compound(count)} {many}")
    thousands, rest = divmod(number, 1000)
    small = (_joined(thousands) + "tausend" if thousands else "") + (_hundreds(rest) if rest else "")
    if small or not words:
        words.append(small or "null")
    return " ".join(words)


def _joined(number: int) -> str:
    words = _hundreds(number)
    return words.removesuffix("s") if words.endswith("eins") else words


def _hundreds(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    return (_joined(hundreds) + "hundert" if hundreds else "") + (_tens(rest) if rest else "")


def _tens(number: int) -> str:
    if number < len(_ONES):
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return (_joined(ones) + "und" if ones else "") + _TENS[tens]

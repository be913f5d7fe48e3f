"""Spanish: un and una, doscientas, veintiún; de after millions; coma in Spain, punto in Latin America."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from engines.text.normalize.tongues.spans import GAP, after
from engines.text.normalize.tongues.times import said_time
from engines.text.normalize.tongues.tongue import Day, Form, Noun, Tongue, currencies, nouns

_ONES: Final = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete "
    "veintiocho veintinueve"
).split()
_TENS: Final = "- - - treinta cuarenta cincuenta sesenta setenta ochenta noventa".split()
_HUNDREDS: Final = (
    "- ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
).split()
_PLACES: Final = (
    "- primero segundo tercero cuarto quinto sexto séptimo octavo noveno décimo undécimo duodécimo decimotercero "
    "decimocuarto decimoquinto decimosexto decimoséptimo decimoctavo decimonoveno"
).split()
_PLACE_TENS: Final = (
    "- - vigésimo trigésimo cuadragésimo quincuagésimo sexagésimo septuagésimo octogésimo nonagésimo"
).split()
_PARTS: Final = {2: "medio", 3: "tercio", 4: "cuarto"}

_UNITS: Final = nouns("""
%           | por ciento | | -
‰           | por mil | | -
°           | grado | grados
°C ℃        | grado Celsius | grados Celsius
°F          | grado Fahrenheit | grados Fahrenheit
km/h kmh    | kilómetro por hora | kilómetros por hora
m/s         | metro por segundo | metros por segundo
km          | kilómetro | kilómetros
m           | metro | metros
dm          | decímetro | decímetros
cm          | centímetro | centímetros
mm          | milímetro | milímetros
µm μm       | micrómetro | micrómetros
nm          | nanómetro | nanómetros
km² km2     | kilómetro cuadrado | kilómetros cuadrados
m² m2       | metro cuadrado | metros cuadrados
cm² cm2     | centímetro cuadrado | centímetros cuadrados
mm² mm2     | milímetro cuadrado | milímetros cuadrados
ha          | hectárea | hectáreas | f
m³ m3       | metro cúbico | metros cúbicos
cm³ cm3     | centímetro cúbico | centímetros cúbicos
kg          | kilogramo | kilogramos
g           | gramo | gramos
mg          | miligramo | miligramos
µg μg       | microgramo | microgramos
t           | tonelada | toneladas | f
l L         | litro | litros
dl          | decilitro | decilitros
cl          | centilitro | centilitros
ml mL       | mililitro | mililitros
kWh         | kilovatio hora | kilovatios hora
Wh          | vatio hora | vatios hora
MWh         | megavatio hora | megavatios hora
MW          | megavatio | megavatios
kW          | kilovatio | kilovatios
W           | vatio | vatios
mW          | milivatio | milivatios
kV          | kilovoltio | kilovoltios
V           | voltio | voltios
mV          | milivoltio | milivoltios
A           | amperio | amperios
mA          | miliamperio | miliamperios
Ah          | amperio hora | amperios hora
mAh         | miliamperio hora | miliamperios hora
Hz          | hercio | hercios
kHz         | kilohercio | kilohercios
MHz         | megahercio | megahercios
GHz         | gigahercio | gigahercios
kB KB       | kilobyte | kilobytes
MB          | megabyte | megabytes
GB          | gigabyte | gigabytes
TB          | terabyte | terabytes
kbit/s      | kilobit por segundo | kilobits por segundo
Mbit/s Mbps | megabit por segundo | megabits por segundo
Gbit/s      | gigabit por segundo | gigabits por segundo
MB/s        | megabyte por segundo | megabytes por segundo
cda cda. cdas. | cucharada | cucharadas | f
cdta cdta. cdtas. | cucharadita | cucharaditas | f
h hs        | hora | horas | f
min min.    | minuto | minutos
s seg seg.  | segundo | segundos
ms          | milisegundo | milisegundos
µs μs       | microsegundo | microsegundos
Pa          | pascal | pascales
hPa         | hectopascal | hectopascales
kPa         | kilopascal | kilopascales
bar         | bar | bares
mbar        | milibar | milibares
psi         | psi
dB          | decibelio | decibelios
N           | newton | newtons
Nm          | newton metro | newtons metro
J           | julio | julios
kJ          | kilojulio | kilojulios
kcal        | kilocaloría | kilocalorías | f
Ω           | ohmio | ohmios
kΩ          | kiloohmio | kiloohmios
lx          | lux
lm          | lumen | lúmenes
x \u00d7         | vez | veces | f
rpm         | revolución por minuto | revoluciones por minuto | f
ppm         | parte por millón | partes por millón | f
px          | píxel | píxeles
""")

_CURRENCIES: Final = """
€ EUR euro euros   | euro | euros | céntimo | céntimos
$ USD US$ dólar dólares | dólar | dólares | centavo | centavos
£ GBP              | libra* | libras | penique | peniques
CHF                | franco suizo | francos suizos | céntimo | céntimos
¥ JPY              | yen | yenes
CNY RMB            | yuan | yuanes
R$ BRL             | real | reales | centavo | centavos
MXN                | peso mexicano | pesos mexicanos | centavo | centavos
"""
_PESOS: Final = "$ MX$ MXN | peso | pesos | centavo | centavos"

_MONTHS: Final = tuple(
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split()
)
_SHORT_MONTHS: Final = "ene feb mar abr may jun jul ago sep oct nov dic".split()

_MASCULINE: Final = re.compile(
    r"(?:días|(?:[eoi]|gra|si|cli|dra)mas|planetas|mapas|gorilas|poetas|pilotas|kilogramas)$"
)
_FEMININE: Final = re.compile(
    r"(?:a|as|ción|ciones|sión|siones|dad|dades|tud|tudes|vez|veces|luz|luces|voz|voces|cruz|cruces|noches?|tardes?|llaves?|calles?|imagen|imágenes|orden|órdenes|señal|señales|torres?|naves?|clases?|fases?|series?|manos?)$"
)
_PLACE: Final = re.compile(
    r"(?<![\w.,])(\d{1,4})(\.?[ºo°]|\.?ª|\.?er|r[oa]|d[oa]|t[oa]|m[oa]|v[oa]|n[oa])(?!\w| ?[CF]\b)"
)
_HALF_DAY: Final = re.compile(rf"(?<![\w.,:])(\d{{1,2}})(?::(\d\d))?{GAP}([aApP])\.?{GAP}[mM](?:\.|(?!\w))")
_NOON: Final = 12
_EVENING: Final = 8


class Spanish(Tongue):
    """Spanish of Spain; of Latin America ("419", decimal point), of Mexico ("mx", its $ are pesos)."""

    digits = tuple(_ONES[:10])
    comma = "coma"
    minus, plus, plus_minus, times, equals = "menos", "más", "más menos", "por", "igual a"
    dot, until, ratio, out_of = "punto", "a", "a", "de"
    squared, power = "al cuadrado", "elevado a"
    also, per = "y", "por"
    half, and_half = ("medio ", "media "), ("y medio", "y media")
    plural_ends = ("s",)
    number_sign, number_signs = "número", r"[Nn]\.?[º°]|[Nn]úm\.|[Nn]ro\.|№|#"
    labels = frozenset(
        "código pin clave contraseña teléfono tel tel. tfno. móvil celular fax localizador llame llamar marque "
        "cp id referencia".split()
    )
    places = frozenset(
        "andén puerta sala habitación terminal número página capítulo versión línea autobús planta piso nivel fase "
        "punto canal zona plaza mostrador salida entrada sector vía vagón caja motor bomba sensor estación robot "
        "mesa".split()
    )
    no_nouns = frozenset(
        "y e o u de del a al en con por para que es son se no si sí más menos sin hasta desde entre está están fue "
        "como pero porque cuando donde ya hay ha han era según ante bajo tras sobre".split()
    )
    months = _MONTHS
    month_aliases: ClassVar[dict[str, int]] = {
        **{name: i + 1 for i, name in enumerate(_SHORT_MONTHS)},
        "sept": 9,
        "setiembre": 9,
    }
    units = _UNITS
    scales = nouns("""
        mil | mil | | -
        millón millones mill. M | millón | millones
        billón billones | billón | billones
    """)
    thousands = frozenset({"mil"})
    short_scales = frozenset({"mill."})
    of, of_pattern, of_month = "de ", "de", r"(?:del? )?"
    clock_suffix = "horas|hrs?|hs?"

    def __init__(self, region: str = "") -> None:
        """`region`: "419", "mx" or neither."""
        self.currencies = currencies(_CURRENCIES)
        self._first_day = "uno"
        if region:
            self.decimal = "."
            self.comma = "punto"
            self._first_day = "primero"
        if region == "mx":
            self.currencies |= currencies(_PESOS)

    def cardinal(self, number: int, form: Form = "alone") -> str:
        words = []
        trillions, number = divmod(number, 10**12)
        if trillions:
            words.append("un billón" if trillions == 1 else f"{_thousands(trillions, 'm')} billones")
        millions, number = divmod(number, 10**6)
        if millions:
            words.append("un millón" if millions == 1 else f"{_thousands(millions, 'm')} millones")
        if number or not words:
            words.append(_thousands(number, form))
        return " ".join(words)

    def ordinal(self, number: int, form: Form = "m") -> str:
        tens, ones = divmod(number, 10)
        if number < len(_PLACES):
            words = _PLACES[number] if number else self.cardinal(0)
        elif number < 100:
            words = _PLACE_TENS[tens] + (f" {_PLACES[ones]}" if ones else "")
        else:
            return "centésim" + ("a" if form == "f" else "o") if number == 100 else self.cardinal(number, form)
        if form == "alone":
            return re.sub(r"(primer|tercer)o$", r"\1", words)
        return re.sub(r"o\b", "a", words) if form == "f" else words

    def fraction(self, top: int, bottom: int) -> str | None:
        if top >= bottom or bottom > 10:
            return None
        part = _PARTS.get(bottom) or self.ordinal(bottom)
        if (top, bottom) == (1, 2):
            return "un medio"
        return f"{self.cardinal(top, 'm')} {part}{'s' if top > 1 else ''}"

    def date(self, day: Day, before: str) -> str:
        del before
        first = self._first_day if day.day == 1 else self.cardinal(day.day)
        words = f"{first} de {self.months[day.month - 1]}"
        return f"{words} de {self.year(day.year)}" if day.year is not None else words

    def clock(self, hour: int, minute: int, before: str) -> str:
        del before
        if not minute:
            return "una en punto" if hour == 1 else f"{self.cardinal(hour, 'f')} horas"
        return f"{self.cardinal(hour, 'f')} y {self.cardinal(minute)}"

    def gender_of(self, noun: str) -> Form:
        noun = noun.lower()
        return "f" if _FEMININE.search(noun) and not _MASCULINE.search(noun) else "m"

    def money(self, major: str, cents: int, minor: Noun) -> str:
        return f"{major} con {self.cardinal(cents, minor.gender)} {minor.one if cents == 1 else minor.many}"

    def times_written(self, text: str) -> str:
        """8:05 a. m., 5 pm."""

        def clock(found: re.Match[str]) -> str:
            hour = int(found[1])
            morning = found[3] in "aA"
            evening = "tarde" if hour == _NOON or hour < _EVENING else "noche"
            said = said_time(self, found[1], found[2] or "0", None, "") if 0 < hour <= _NOON else None
            if said is None:
                return found[0]
            said = said.removesuffix(" horas").removesuffix(" en punto")
            ends = found[0].endswith(".") and not text[found.end() :].strip()
            return f"{said} de la {'mañana' if morning else evening}{'.' if ends else ''}"

        return _HALF_DAY.sub(clock, text)

    def ordinals(self, text: str) -> str:
        """1º, 1.er, 2ª."""

        def place(found: re.Match[str]) -> str:
            suffix = found[2]
            if suffix in {"°", "o"} and not re.match(r" [a-záéíóúñ]{2}", text[found.end() : found.end() + 3]):
                return found[0]
            follows = after(text, found.end())
            short = suffix.endswith("er") or (follows.islower() and self.is_noun(follows))
            form: Form = "f" if suffix[-1] in "ªa" else "alone" if short else "m"
            return self.ordinal(int(found[1]), form)

        return _PLACE.sub(place, text)


def _thousands(number: int, form: Form) -> str:
    thousands, rest = divmod(number, 1000)
    # What is counted agrees with its hundreds, even before "mil": doscientas mil personas, but veintiún mil.
    words = (
        []
        if not thousands
        else ["mil"]
        if thousands == 1
        else [_hundreds(thousands, "f" if form == "f" else "m"), "mil"]
    )
    if rest or not words:
        words.append(_hundreds(rest, form))
    return " ".join(words)


def _hundreds(number: int, form: Form) -> str:
    if number == 100:
        return "cien"
    hundreds, rest = divmod(number, 100)
    words = []
    if hundreds:
        words.append(_HUNDREDS[hundreds].replace("ientos", "ientas") if form == "f" else _HUNDREDS[hundreds])
    if rest or not words:
        words.append(_tens(rest, form))
    return " ".join(words).replace("quinientos", "quinientas" if form == "f" else "quinientos")


def _tens(number: int, form: Form) -> str:
    if number < len(_ONES):
        words = _ONES[number]
    else:
        tens, ones = divmod(number, 10)
        words = _TENS[tens] + (f" y {_ONES[ones]}" if ones else "")
    if form == "alone" or not words.endswith("uno"):
        return words
    if form == "f":
        return words[:-1] + "a"
    return "veintiún" if words == "veintiuno" else words[:-1]

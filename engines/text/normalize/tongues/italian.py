"""Italian: one word up to a million, its vowels dropped; un, uno and una; e before cents and minutes."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from engines.text.normalize.tongues.numeral import Numeral
from engines.text.normalize.tongues.spans import after
from engines.text.normalize.tongues.times import said_time
from engines.text.normalize.tongues.tongue import Day, Form, Noun, Tongue, currencies, nouns

_ONES: Final = (
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove"
).split()
_TENS: Final = "- - venti trenta quaranta cinquanta sessanta settanta ottanta novanta".split()
_PLACES: Final = "- primo secondo terzo quarto quinto sesto settimo ottavo nono decimo".split()

_UNITS: Final = nouns("""
%           | per cento | | -
‰           | per mille | | -
°           | grado | gradi
°C ℃        | grado Celsius | gradi Celsius
°F          | grado Fahrenheit | gradi Fahrenheit
km/h kmh    | chilometro orario | chilometri orari
m/s         | metro al secondo | metri al secondo
km          | chilometro | chilometri
m           | metro | metri
dm          | decimetro | decimetri
cm          | centimetro | centimetri
mm          | millimetro | millimetri
µm μm       | micrometro | micrometri
nm          | nanometro | nanometri
km² km2     | chilometro quadrato | chilometri quadrati
m² m2 mq    | metro quadrato | metri quadrati
cm² cm2     | centimetro quadrato | centimetri quadrati
mm² mm2     | millimetro quadrato | millimetri quadrati
ha          | ettaro | ettari
m³ m3 mc    | metro cubo | metri cubi
cm³ cm3     | centimetro cubo | centimetri cubi
kg          | chilogrammo | chilogrammi
g           | grammo | grammi
mg          | milligrammo | milligrammi
µg μg       | microgrammo | microgrammi
t           | tonnellata | tonnellate | f
l L         | litro | litri
dl          | decilitro | decilitri
cl          | centilitro | centilitri
ml mL       | millilitro | millilitri
kWh         | chilowattora
Wh          | wattora
MWh         | megawattora
MW          | megawatt
kW          | chilowatt
W           | watt
mW          | milliwatt
kV          | chilovolt
V           | volt
mV          | millivolt
A           | ampere
mA          | milliampere
Ah          | amperora
mAh         | milliamperora
Hz          | hertz
kHz         | chilohertz
MHz         | megahertz
GHz         | gigahertz
kB KB       | chilobyte
MB          | megabyte
GB          | gigabyte
TB          | terabyte
kbit/s      | chilobit al secondo
Mbit/s Mbps | megabit al secondo
Gbit/s      | gigabit al secondo
MB/s        | megabyte al secondo
h           | ora | ore | f
min min.    | minuto | minuti
s sec sec.  | secondo | secondi
ms          | millisecondo | millisecondi
µs μs       | microsecondo | microsecondi
Pa          | pascal
hPa         | ettopascal
kPa         | chilopascal
bar         | bar
mbar        | millibar
psi         | psi
dB          | decibel
N           | newton
Nm          | newton metro
J           | joule
kJ          | chilojoule
kcal        | chilocaloria | chilocalorie | f
Ω           | ohm
kΩ          | chiloohm
lx          | lux
lm          | lumen
x \u00d7         | volta | volte | f
rpm giri/min | giro al minuto | giri al minuto
ppm         | parte per milione | parti per milione | f
px          | pixel
""")

_CURRENCIES: Final = currencies("""
€ EUR euro       | euro | euro | centesimo | centesimi
$ USD US$ dollaro dollari | dollaro | dollari | centesimo | centesimi
£ GBP            | sterlina* | sterline | penny | penny
CHF Fr.          | franco | franchi | centesimo | centesimi
¥ JPY            | yen | yen
CNY RMB          | yuan | yuan
R$ BRL           | real | real | centavo | centavos
""")

_MONTHS: Final = tuple(
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre".split()
)
_SHORT_MONTHS: Final = "gen feb mar apr mag giu lug ago set ott nov dic".split()

_MASCULINE: Final = re.compile(
    r"(?:[eoi]ma|gramma|panorama|sosia|delta|gorilla|pilota|poeta|pianeta|artista|turista|autista)$"
)
_FEMININE: Final = re.compile(
    r"(?:a|zione|sione|gione|tà|tù|notte|chiave|voce|luce|classe|fase|serie|parte|stazione|mano|moglie|rete|torre)$"
)
_PLACE: Final = re.compile(r"(?<![\w.,])(\d{1,4})(\.?º|ª|°(?= [a-zàèéìòù]{2}))(?!\w| ?[CF]\b)")
_ORE: Final = re.compile(r"(?<!\w)([oO]re )(\d{1,2})[.,](\d\d)(?![\w]|[.,]\d)")
_STOREYS: Final = 20
"""Up to here 3° before a noun is a storey or a place, above it degrees."""
_IMPURE: Final = re.compile(r"^(?:s[bcdfglmnpqrtvz]|z|gn|ps|pn|x|y)", re.IGNORECASE)
_VOWEL: Final = re.compile("^[aeiouhàèéìòù]", re.IGNORECASE)


_SINGULARS: Final = {"bicchieri": "bicchiere", "mesi": "mese", "cucchiai": "cucchiaio"}


class Italian(Tongue):
    """Italian of Italy; of Switzerland ("ch") with 1'000.50."""

    digits = tuple(_ONES[:10])
    comma = "virgola"
    minus, plus, plus_minus, times, equals = "meno", "più", "più o meno", "per", "uguale"
    dot, until, ratio, out_of = "punto", "a", "a", "su"
    squared, power = "al quadrato", "alla"
    also, per = "e", "al"
    half, and_half = ("mezzo ", "mezza "), ("e mezzo", "e mezza")
    number_sign, number_signs = "numero", r"[Nn]\.?[º°]|[Nn](?:um)?\.|№|#"
    labels = frozenset(
        "codice pin password telefono tel tel. cellulare fax chiamare chiami chiamate componga cap id "
        "prenotazione riferimento matricola".split()
    )
    places = frozenset(
        "binario porta sala stanza camera terminal numero pagina capitolo versione linea autobus tram piano livello "
        "fase punto canale zona posto sportello uscita entrata settore carrozza cassa motore pompa sensore stazione "
        "robot tavolo gate anni".split()
    )
    no_nouns = frozenset(
        "e ed o di del della dei delle da dal dalla a al alla in nel con per su sul tra fra che è sono si non ma se "
        "come il la lo i gli le un una poi più meno fino anche ha hanno era circa sotto sopra oggi domani".split()
    )
    months = _MONTHS
    month_aliases: ClassVar[dict[str, int]] = {name: i + 1 for i, name in enumerate(_SHORT_MONTHS)}
    units = _UNITS
    currencies = _CURRENCIES
    scales = nouns("""
        mila | mila | | -
        mln milione milioni | milione | milioni
        mld miliardo miliardi | miliardo | miliardi
    """)
    thousands = frozenset({"mila"})
    short_scales = frozenset({"mln", "mld"})
    of, of_pattern = "di ", r"di |d['’]|di"
    clock_suffix = "h"

    def __init__(self, region: str = "") -> None:
        """`region`: "ch" or not."""
        if region == "ch":
            self.decimal = "."

    def cardinal(self, number: int, form: Form = "alone") -> str:
        if number == 1:
            return {"alone": "uno", "m": "un", "f": "una"}[form]
        words = []
        for power, one, many in (
            (10**12, "bilione", "bilioni"),
            (10**9, "miliardo", "miliardi"),
            (10**6, "milione", "milioni"),
        ):
            count, number = divmod(number, power)
            if count:
                words.append(f"un {one}" if count == 1 else f"{_small(count)} {many}")
        if number or not words:
            words.append(_small(number))
        return " ".join(words)

    def ordinal(self, number: int, form: Form = "m") -> str:
        if 0 < number < len(_PLACES):
            words = _PLACES[number]
        else:
            words = self.cardinal(number)
            # Of the last vowels only those of -tré and -sei stay: ventitreesimo, ventiseiesimo.
            words = words.replace("é", "e") if words.endswith("tré") else words if words.endswith("sei") else words[:-1]
            words = words.removesuffix("mil") + "mill" if words.endswith("mil") else words
            words += "esimo"
        return words[:-1] + "a" if form == "f" else words

    def fraction(self, top: int, bottom: int) -> str | None:
        if top >= bottom or bottom > 10:
            return None
        part = "mezzo" if bottom == 2 else self.ordinal(bottom)
        return f"{self.cardinal(top, 'm')} {part if top == 1 else part[:-1] + 'i'}"

    def date(self, day: Day, before: str) -> str:
        del before
        words = f"{'primo' if day.day == 1 else self.cardinal(day.day)} {self.months[day.month - 1]}"
        return f"{words} {self.year(day.year)}" if day.year is not None else words

    def clock(self, hour: int, minute: int, before: str) -> str:
        del before
        words = self.cardinal(hour, "f")
        return f"{words} e {self.cardinal(minute)}" if minute else words if hour else "zero zero"

    def count(self, numeral: Numeral, noun: Noun) -> str:
        return super().count(numeral, noun).replace("una ora", "un'ora")

    def elided(self, number: str, noun: str) -> str:
        return number[:-1] + "'" if number.endswith("una") and _VOWEL.match(noun) else number

    def gender_of(self, noun: str) -> Form:
        noun = noun.lower()
        if _FEMININE.search(noun) and not _MASCULINE.search(noun):
            return "f"
        return "alone" if _IMPURE.match(noun) else "m"

    def per_one(self, name: str) -> str:
        return f"all'{name}" if _VOWEL.match(name) else super().per_one(name)

    def singular(self, noun: str) -> str:
        return _SINGULARS.get(noun) or re.sub("i$", "o", re.sub("e$", "a", noun))

    def money(self, major: str, cents: int, minor: Noun) -> str:
        if cents >= 10:
            return f"{major} e {self.cardinal(cents)}"
        return f"{major} e {self.cardinal(cents, minor.gender)} {minor.one if cents == 1 else minor.many}"

    def times_written(self, text: str) -> str:
        """Ore 8.05."""

        def clock(found: re.Match[str]) -> str:
            said = said_time(self, found[2], found[3], None, "ore")
            return found[0] if said is None else found[1] + said

        return _ORE.sub(clock, text)

    def ordinals(self, text: str) -> str:
        """1º, 2ª, 3° piano."""

        def place(found: re.Match[str]) -> str:
            number = int(found[1])
            if found[2] == "°" and (number > _STOREYS or not self.is_noun(after(text, found.end()))):
                return found[0]  # degrees
            return self.ordinal(number, "f" if found[2] == "ª" else "m")

        return _PLACE.sub(place, text)


def _small(number: int) -> str:
    """Return a number below a million in one word."""
    thousands, rest = divmod(number, 1000)
    if not thousands:
        return _accented(_hundreds(rest)) if rest else _ONES[0]
    words = "mille" if thousands == 1 else _hundreds(thousands) + "mila"
    return _accented(words + (_hundreds(rest) if rest else ""))


def _accented(words: str) -> str:
    return words[:-1] + "é" if words.endswith("tre") and words != "tre" else words


def _hundreds(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    words = ("" if hundreds <= 1 else _ONES[hundreds]) + "cento" if hundreds else ""
    if words and 8 in {rest, rest // 10}:  # centotto, centottanta
        words = words[:-1]
    return words + (_tens(rest) if rest else "")


def _tens(number: int) -> str:
    if number < len(_ONES):
        return _ONES[number]
    tens, ones = divmod(number, 10)
    name = _TENS[tens][:-1] if ones in {1, 8} else _TENS[tens]
    return name + (_ONES[ones] if ones else "")

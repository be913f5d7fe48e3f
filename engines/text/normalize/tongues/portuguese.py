"""Portuguese: e between hundreds, tens and ones; um and uma, dois and duas; milhar de milhão here, bilhão there."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from engines.text.normalize.tongues.numeral import Numeral
from engines.text.normalize.tongues.tongue import Day, Form, Noun, Tongue, currencies, nouns

_ONES: Final = (
    "zero um dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezasseis dezassete "
    "dezoito dezanove"
).split()
_BRAZIL: Final = {"dezasseis": "dezesseis", "dezassete": "dezessete", "dezanove": "dezenove", "catorze": "quatorze"}
_TENS: Final = "- - vinte trinta quarenta cinquenta sessenta setenta oitenta noventa".split()
_HUNDREDS: Final = (
    "- cento duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos"
).split()
_PLACES: Final = "- primeiro segundo terceiro quarto quinto sexto sétimo oitavo nono".split()
_PLACE_TENS: Final = (
    "- décimo vigésimo trigésimo quadragésimo quinquagésimo sexagésimo septuagésimo octogésimo nonagésimo"
).split()
_PARTS: Final = {2: "meio", 3: "terço"}

_UNITS: Final = """
%           | por cento | | -
‰           | por mil | | -
°           | grau | graus
°C ℃        | grau Celsius | graus Celsius
°F          | grau Fahrenheit | graus Fahrenheit
km/h kmh    | quilómetro por hora | quilómetros por hora
m/s         | metro por segundo | metros por segundo
km          | quilómetro | quilómetros
m           | metro | metros
dm          | decímetro | decímetros
cm          | centímetro | centímetros
mm          | milímetro | milímetros
µm μm       | micrómetro | micrómetros
nm          | nanómetro | nanómetros
km² km2     | quilómetro quadrado | quilómetros quadrados
m² m2       | metro quadrado | metros quadrados
cm² cm2     | centímetro quadrado | centímetros quadrados
mm² mm2     | milímetro quadrado | milímetros quadrados
ha          | hectare | hectares
m³ m3       | metro cúbico | metros cúbicos
cm³ cm3     | centímetro cúbico | centímetros cúbicos
kg          | quilograma | quilogramas
g           | grama | gramas
mg          | miligrama | miligramas
µg μg       | micrograma | microgramas
t           | tonelada | toneladas | f
l L         | litro | litros
dl          | decilitro | decilitros
cl          | centilitro | centilitros
ml mL       | mililitro | mililitros
kWh         | quilowatt-hora | quilowatts-hora
Wh          | watt-hora | watts-hora
MWh         | megawatt-hora | megawatts-hora
MW          | megawatt | megawatts
kW          | quilowatt | quilowatts
W           | watt | watts
mW          | miliwatt | miliwatts
kV          | quilovolt | quilovolts
V           | volt | volts
mV          | milivolt | milivolts
A           | ampere | amperes
mA          | miliampere | miliamperes
Ah          | ampere-hora | amperes-hora
mAh         | miliampere-hora | miliamperes-hora
Hz          | hertz
kHz         | quilohertz
MHz         | megahertz
GHz         | gigahertz
kB KB       | quilobyte | quilobytes
MB          | megabyte | megabytes
GB          | gigabyte | gigabytes
TB          | terabyte | terabytes
kbit/s      | quilobit por segundo | quilobits por segundo
Mbit/s Mbps | megabit por segundo | megabits por segundo
Gbit/s      | gigabit por segundo | gigabits por segundo
MB/s        | megabyte por segundo | megabytes por segundo
h           | hora | horas | f
min min.    | minuto | minutos
s seg seg.  | segundo | segundos
ms          | milissegundo | milissegundos
µs μs       | microssegundo | microssegundos
Pa          | pascal | pascals
hPa         | hectopascal | hectopascals
kPa         | quilopascal | quilopascals
bar         | bar | bars
mbar        | milibar | milibares
psi         | psi
dB          | decibel | decibéis
N           | newton | newtons
Nm          | newton-metro | newtons-metro
J           | joule | joules
kJ          | quilojoule | quilojoules
kcal        | quilocaloria | quilocalorias | f
Ω           | ohm | ohms
kΩ          | quiloohm | quiloohms
lx          | lux
lm          | lúmen | lúmens
x \u00d7         | vez | vezes | f
rpm         | rotação por minuto | rotações por minuto | f
ppm         | parte por milhão | partes por milhão | f
px          | píxel | píxeis
"""

_CURRENCIES: Final = """
€ EUR euro euros   | euro | euros | cêntimo | cêntimos
$ USD US$ dólar dólares | dólar | dólares | cêntimo | cêntimos
£ GBP              | libra* | libras | péni | pence
CHF                | franco suíço | francos suíços | cêntimo | cêntimos
¥ JPY              | iene | ienes
CNY RMB            | yuan | yuans
R$ BRL real reais  | real | reais | centavo | centavos
"""

_MONTHS: Final = tuple(
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro".split()
)
_SHORT_MONTHS: Final = "jan fev mar abr mai jun jul ago set out nov dez".split()

_MASCULINE: Final = re.compile(r"(?:dias?|(?:[eoi]|gra|si|cli|dra)mas?|planetas?|mapas?|poetas?|gramas?)$")
_FEMININE: Final = re.compile(
    r"(?:as?|ção|ções|são|sões|gião|giões|dades?|tudes?|gem|gens|vez|vezes|luz|luzes|voz|vozes|noites?|tardes?|chaves?|"
    r"torres?|redes?|paredes?|fases?|séries?|mãos?|partes?|ordens?|cores|flores)$"
)
_PLACE: Final = re.compile(r"(?<![\w.,])(\d{1,4})(\.?[ºo]|\.?ª|\.?a|°(?= [a-záàâãéêíóôõúç]{2}))(?!\w| ?[CF]\b)")
_SAYS_O: Final = re.compile(r" [a-záàâãéêíóôõúç]{2}")


class Portuguese(Tongue):
    """Portuguese of Portugal; of Brazil ("br")."""

    digits = tuple(_ONES[:10])
    comma = "vírgula"
    minus, plus, plus_minus, times, equals = "menos", "mais", "mais ou menos", "vezes", "igual a"
    dot, until, ratio, out_of = "ponto", "a", "por", "de"
    squared, power = "ao quadrado", "elevado a"
    also, per = "e", "por"
    half, and_half = ("meio ", "meia "), ("e meio", "e meia")
    plural_ends = ("s",)
    number_sign, number_signs = "número", r"[Nn]\.?[º°]|[Nn]úm\.|№|#"
    labels = frozenset(
        "código pin senha palavra-passe telefone tel tel. telemóvel celular fax ligue ligar disque marque cep id "
        "referência localizador".split()
    )
    places = frozenset(
        "cais plataforma porta portão sala quarto terminal número página capítulo versão linha autocarro ônibus piso "
        "andar nível fase ponto canal zona lugar balcão saída entrada setor sector carruagem vagão caixa motor bomba "
        "sensor estação robô robot mesa anos".split()
    )
    no_nouns = frozenset(
        "e ou de do da dos das a ao à aos às o os as em no na nos nas com por para que é são se não mais menos sem "
        "até desde entre está estão foi como mas porque quando onde já há tem era segundo um uma".split()
    )
    months = _MONTHS
    month_aliases: ClassVar[dict[str, int]] = {name: i + 1 for i, name in enumerate(_SHORT_MONTHS)}
    of, of_pattern, of_month = "de ", "de", r"(?:de )?"
    clock_suffix = "horas|hrs?|h"

    def __init__(self, region: str = "") -> None:
        """`region`: "br" or not."""
        self._brazil = region == "br"
        units, money = _UNITS, _CURRENCIES
        if self._brazil:
            units = units.replace("óm", "ôm").replace("píxel ", "pixel ").replace("píxeis", "pixels")
            money = money.replace("cêntimo", "centavo")
        self.units = nouns(units)
        self.currencies = currencies(money)
        self.digits = tuple(self._one(number) for number in range(10))
        large = "bilhão | bilhões" if self._brazil else "mil milhões | mil milhões"
        self.scales = nouns(f"""
            mil | mil | | -
            milhão milhões mi M | milhão | milhões
            bilhão bilhões bi | {large}
            trilhão trilhões tri | trilhão | trilhões
            bilião biliões | bilião | biliões
        """)

    thousands = frozenset({"mil"})
    short_scales = frozenset({"mi", "bi", "tri"})

    def cardinal(self, number: int, form: Form = "alone") -> str:
        powers: list[tuple[int, str, str]] = [(10**6, "milhão", "milhões")]
        if self._brazil:
            powers = [(10**12, "trilhão", "trilhões"), (10**9, "bilhão", "bilhões"), *powers]
        else:
            powers = [(10**12, "bilião", "biliões"), *powers]
        parts: list[str] = []
        rest = number
        for power, one, many in powers:
            count, rest = divmod(rest, power)
            if count:
                parts.append(f"um {one}" if count == 1 else f"{self._thousands(count, 'm')} {many}")
        if not rest and parts:
            return " ".join(parts)
        last = self._thousands(rest, form)
        joined = parts and (rest < 100 or (rest % 100 == 0 and rest < 1000) or rest % 1000 == 0)
        return " ".join([*parts, *(["e"] if joined else []), last])

    def ordinal(self, number: int, form: Form = "m") -> str:
        if not 0 < number < 200:
            return self.cardinal(number, form)
        hundreds, rest = divmod(number, 100)
        tens, ones = divmod(rest, 10)
        words = [
            *(["centésimo"] if hundreds else []),
            *([_PLACE_TENS[tens]] if tens else []),
            *([_PLACES[ones]] if ones else []),
        ]
        return " ".join(word[:-1] + "a" if form == "f" else word for word in words)

    def fraction(self, top: int, bottom: int) -> str | None:
        if top >= bottom or bottom > 10:
            return None
        part = _PARTS.get(bottom) or self.ordinal(bottom)
        return f"{self.cardinal(top, 'm')} {part}{'s' if top > 1 else ''}"

    def date(self, day: Day, before: str) -> str:
        del before
        first = "primeiro" if day.day == 1 and self._brazil else self.cardinal(day.day)
        words = f"{first} de {self.months[day.month - 1]}"
        return f"{words} de {self.year(day.year)}" if day.year is not None else words

    def clock(self, hour: int, minute: int, before: str) -> str:
        del before
        words = self.cardinal(hour, "f")
        if not minute:
            return f"{words} hora{'s' if hour > 1 else ''}"
        return f"{words} e {self.cardinal(minute)}"

    def gender_of(self, noun: str) -> Form:
        noun = noun.lower()
        return "f" if _FEMININE.search(noun) and not _MASCULINE.search(noun) else "m"

    def is_one(self, numeral: Numeral) -> bool:
        if self._brazil:
            return numeral.whole in {"0", "1"}  # 1,5 metro
        return super().is_one(numeral)

    def money(self, major: str, cents: int, minor: Noun) -> str:
        return f"{major} e {self.cardinal(cents, minor.gender)} {minor.one if cents == 1 else minor.many}"

    def ordinals(self, text: str) -> str:
        """1º, 2.ª, 1o andar."""

        def place(found: re.Match[str]) -> str:
            if found[2][-1] in "oa" and not _SAYS_O.match(text, found.end()):
                return found[0]
            return self.ordinal(int(found[1]), "f" if found[2][-1] in "ªa" else "m")

        return _PLACE.sub(place, text)

    def _thousands(self, number: int, form: Form) -> str:
        thousands, rest = divmod(number, 1000)
        if not thousands:
            return self._hundreds(rest, form)
        words = "mil" if thousands == 1 else f"{self._hundreds(thousands, 'f' if form == 'f' else 'm')} mil"
        if not rest:
            return words
        joined = rest < 100 or rest % 100 == 0
        return f"{words} {'e ' if joined else ''}{self._hundreds(rest, form)}"

    def _hundreds(self, number: int, form: Form) -> str:
        if number == 100:
            return "cem"
        hundreds, rest = divmod(number, 100)
        words = []
        if hundreds:
            name = _HUNDREDS[hundreds]
            words.append(name[:-2] + "as" if form == "f" and hundreds > 1 else name)
        if rest or not words:
            words.append(self._tens(rest, form))
        return " e ".join(words)

    def _tens(self, number: int, form: Form) -> str:
        tens, ones = divmod(number, 10)
        if number < len(_ONES):
            tens, ones = 0, number
        words = [] if not tens else [_TENS[tens]]
        if ones or not words:
            name = self._one(ones)
            words.append({"um": "uma", "dois": "duas"}.get(name, name) if form == "f" else name)
        return " e ".join(words)

    def _one(self, number: int) -> str:
        name = _ONES[number]
        return _BRAZIL.get(name, name) if self._brazil else name

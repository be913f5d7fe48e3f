"""French: quatre-vingts and its agreements, septante where it is said, un and une, de and d' after millions."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from engines.text.normalize.tongues.numeral import Numeral
from engines.text.normalize.tongues.tongue import Day, Form, Noun, Tongue, currencies, nouns

_ONES: Final = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf"
).split()
_TENS: Final = "- - vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt".split()
_PARTS: Final = {2: "demi", 3: "tiers", 4: "quart"}

_UNITS: Final = nouns("""
%           | pour cent | | -
‰           | pour mille | | -
°           | degré | degrés
°C ℃        | degré Celsius | degrés Celsius
°F          | degré Fahrenheit | degrés Fahrenheit
km/h kmh    | kilomètre par heure | kilomètres par heure
m/s         | mètre par seconde | mètres par seconde
km          | kilomètre | kilomètres
m           | mètre | mètres
dm          | décimètre | décimètres
cm          | centimètre | centimètres
mm          | millimètre | millimètres
µm μm       | micromètre | micromètres
nm          | nanomètre | nanomètres
km² km2     | kilomètre carré | kilomètres carrés
m² m2       | mètre carré | mètres carrés
cm² cm2     | centimètre carré | centimètres carrés
mm² mm2     | millimètre carré | millimètres carrés
ha          | hectare | hectares
m³ m3       | mètre cube | mètres cubes
cm³ cm3     | centimètre cube | centimètres cubes
kg          | kilogramme | kilogrammes
g           | gramme | grammes
mg          | milligramme | milligrammes
µg μg       | microgramme | microgrammes
t           | tonne | tonnes | f
l L         | litre | litres
dl          | décilitre | décilitres
cl          | centilitre | centilitres
ml mL       | millilitre | millilitres
kWh         | kilowattheure | kilowattheures
Wh          | wattheure | wattheures
MWh         | mégawattheure | mégawattheures
MW          | mégawatt | mégawatts
kW          | kilowatt | kilowatts
W           | watt | watts
mW          | milliwatt | milliwatts
kV          | kilovolt | kilovolts
V           | volt | volts
mV          | millivolt | millivolts
A           | ampère | ampères
mA          | milliampère | milliampères
Ah          | ampère-heure | ampères-heures
mAh         | milliampère-heure | milliampères-heures
Hz          | hertz
kHz         | kilohertz
MHz         | mégahertz
GHz         | gigahertz
kB KB ko Ko | kilooctet | kilooctets
MB Mo       | mégaoctet | mégaoctets
GB Go       | gigaoctet | gigaoctets
TB To       | téraoctet | téraoctets
kbit/s      | kilobit par seconde | kilobits par seconde
Mbit/s Mbps | mégabit par seconde | mégabits par seconde
Gbit/s      | gigabit par seconde | gigabits par seconde
MB/s Mo/s   | mégaoctet par seconde | mégaoctets par seconde
h           | heure | heures | f
min mn      | minute | minutes | f
s sec       | seconde | secondes | f
ms          | milliseconde | millisecondes | f
µs μs       | microseconde | microsecondes | f
Pa          | pascal | pascals
hPa         | hectopascal | hectopascals
kPa         | kilopascal | kilopascals
bar         | bar | bars
mbar        | millibar | millibars
psi         | psi
dB          | décibel | décibels
N           | newton | newtons
Nm          | newton-mètre | newtons-mètres
J           | joule | joules
kJ          | kilojoule | kilojoules
kcal        | kilocalorie | kilocalories | f
Ω           | ohm | ohms
kΩ          | kiloohm | kiloohms
lx          | lux
lm          | lumen | lumens
x \u00d7         | fois | fois | f
rpm tr/min  | tour par minute | tours par minute
ppm         | partie par million | parties par million | f
px          | pixel | pixels
""")

_CURRENCIES: Final = currencies("""
€ EUR euro euros | euro | euros | centime | centimes
$ USD US$ $US dollar dollars | dollar | dollars | cent | cents
£ GBP            | livre* | livres | penny | pence
CHF Fr. fr.      | franc | francs | centime | centimes
¥ JPY            | yen | yens
CNY RMB          | yuan | yuans
R$ BRL           | réal | réals | centavo | centavos
""")

_MONTHS: Final = tuple("janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split())
_SHORT_MONTHS: Final = "janv févr - avr - - juil - sept oct nov déc".split()

_FEMININE: Final = re.compile(
    r"^(?:heure|minute|seconde|journée|semaine|année|fois|page|personne|pièce|place|porte|voie|ligne|chambre|table|"
    r"carte|clé|clef|unité|étape|zone|salle|voiture|alarme|erreur|touche|commande|machine|batterie|panne|bouteille|"
    r"tasse|cuillère|boîte|main|nuit|demi-heure|tonne|livre|chose|équipe|ville|rue|route|lettre|image|photo|porte|borne|"
    r"caisse|station|marche|couche|vis|roue|pompe|caméra|tâche|phase|série|règle|poche|femme|fille|étoile)s?$"
    r"|(?:tion|sion|ité|ette|ance|ence|ure|euse|trice|elle|enne|esse|ière|aison)s?$"
)
_PLACE: Final = re.compile(r"(?<![\w.,])(\d{1,4})(er|ère|re|nde?|[èe]?[mM]e|ième|ème|e)(s?)(?!\w)", re.IGNORECASE)
_ALWAYS: Final = re.compile(r"(?<![\w.,:])(24|7) ?([hj]) ?/ ?(24|7)(?!\w)")
_VOWEL: Final = re.compile("^[aeiouyhéèêâôîû]", re.IGNORECASE)


class French(Tongue):
    """French of France; of Switzerland ("ch": septante, huitante, nonante) and Belgium ("be": septante, nonante)."""

    digits = tuple(_ONES[:10])
    comma = "virgule"
    minus, plus, plus_minus, times, equals = "moins", "plus", "plus ou moins", "fois", "égale"
    dot, until, ratio, out_of = "point", "à", "sur", "sur"
    squared, power = "au carré", "puissance"
    also, per = "et", "par"
    half, and_half = ("un demi-", "une demi-"), ("et demi", "et demie")
    plural_ends = ("s", "x", "z")
    number_sign, number_signs = "numéro", r"[Nn][º°]|[Nn]o\.|№|#"
    labels = frozenset(
        "code pin mot téléphone tél tél. tel tel. portable mobile fax appelez composez référence id cp "
        "matricule".split()
    )
    phone_labels = frozenset("téléphone tél tel portable mobile fax appelez composez".split())
    places = frozenset(
        "quai voie porte salle chambre terminal numéro page chapitre version ligne bus tram étage niveau phase point "
        "canal zone place guichet sortie entrée secteur hall voiture caisse moteur pompe capteur station robot table "
        "borne années".split()
    )
    no_nouns = frozenset(
        "d et ou de du des à au aux en dans sur par pour avec sans que qui est sont se ne pas le la les un une puis "
        "mais car donc si comme vers entre chez jusque sous dont où il elle on ce cette ces h".split()
    )
    months = _MONTHS
    month_aliases: ClassVar[dict[str, int]] = {name: i + 1 for i, name in enumerate(_SHORT_MONTHS) if name != "-"}
    units = _UNITS
    currencies = _CURRENCIES
    scales = nouns("""
        mille | mille | | -
        M million millions | million | millions
        Md Mds milliard milliards | milliard | milliards
        billion billions | billion | billions
    """)
    thousands = frozenset({"mille"})
    short_scales = frozenset({"Md", "Mds"})
    of, of_pattern = "de ", r"de |d['’]|d[eu]"
    clock_suffix = "heures|h"

    def __init__(self, region: str = "") -> None:
        """`region`: "ch", "be" or neither."""
        self._septante = region in {"ch", "be"}
        self._huitante = region == "ch"

    def cardinal(self, number: int, form: Form = "alone") -> str:
        words = []
        for power, name in ((10**12, "billion"), (10**9, "milliard"), (10**6, "million")):
            count, number = divmod(number, power)
            if count:
                words.append(f"{self._hundreds(count, last=True)} {name}{'s' if count > 1 else ''}")
        thousands, rest = divmod(number, 1000)
        if thousands:
            words.append("mille" if thousands == 1 else f"{self._hundreds(thousands, last=False)} mille")
        if rest or not words:
            words.append(self._hundreds(rest, last=True))
        said = " ".join(words)
        return said + "e" if form == "f" and re.search(r"\bun$", said) else said

    def ordinal(self, number: int, form: Form = "m") -> str:
        if number == 1:
            return "première" if form == "f" else "premier"
        words = self.cardinal(number)
        words = re.sub(r"(?<=vingt|.cent|llion|liard)s$", "", words)
        if words.endswith("cinq"):
            return words + "uième"
        if words.endswith("neuf"):
            return words[:-1] + "vième"
        return words.removesuffix("e") + "ième"

    def fraction(self, top: int, bottom: int) -> str | None:
        if top >= bottom or bottom > 10:
            return None
        part = _PARTS.get(bottom) or self.ordinal(bottom)
        plural = "s" if top > 1 and not part.endswith("s") else ""
        return f"{self.cardinal(top)} {part}{plural}"

    def date(self, day: Day, before: str) -> str:
        del before
        words = f"{'premier' if day.day == 1 else self.cardinal(day.day)} {self.months[day.month - 1]}"
        return f"{words} {self.year(day.year)}" if day.year is not None else words

    def clock(self, hour: int, minute: int, before: str) -> str:
        del before
        words = f"{self.cardinal(hour, 'f')} heure{'s' if hour > 1 else ''}"
        if not minute:
            return words
        return f"{words} {self.cardinal(minute, 'f')}"

    def gender_of(self, noun: str) -> Form:
        return "f" if _FEMININE.search(noun.lower()) else "m"

    def is_one(self, numeral: Numeral) -> bool:
        return numeral.whole in {"0", "1"}  # 1,5 litre: the plural begins with two

    def phone_group(self, digits: str) -> str:
        """Read by pairs, as everybody does who gives a number: 06 12 is zéro six, douze."""
        by_hundreds = 3
        if digits[0] == "0" and len(digits) in {3, 4}:
            return f"{_ONES[0]} {self.phone_group(digits[1:])}"
        if len(digits) == by_hundreds:
            return self.cardinal(int(digits))
        odd = len(digits) % 2
        pairs = [digits[:odd]] * odd + [digits[i : i + 2] for i in range(odd, len(digits), 2)]
        return ", ".join(self.spell(pair) if pair[0] == "0" else self.cardinal(int(pair)) for pair in pairs)

    def money(self, major: str, cents: int, minor: Noun) -> str:
        if cents >= 10:
            return f"{major} {self.cardinal(cents)}"
        return f"{major} {self.cardinal(cents, minor.gender)} {minor.one if cents == 1 else minor.many}"

    def elide(self, link: str, name: str) -> str:
        return "d'" + name if link == self.of and _VOWEL.match(name) else link + name

    def times_written(self, text: str) -> str:
        """24h/24, 7j/7."""

        def always(found: re.Match[str]) -> str:
            what = "heures" if found[2] == "h" else "jours"
            return f"{self.cardinal(int(found[1]))} {what} sur {self.cardinal(int(found[3]))}"

        return _ALWAYS.sub(always, text)

    def ordinals(self, text: str) -> str:
        """1er, 1re, 2e, 3ème."""

        def place(found: re.Match[str]) -> str:
            suffix = found[2].lower()
            number = int(found[1])
            if number == 2 and suffix in {"nd", "nde"}:
                return "second" + suffix[2:] + found[3]
            return self.ordinal(number, "f" if suffix in {"re", "ère"} else "m") + found[3]

        return _PLACE.sub(place, text)

    def _hundreds(self, number: int, *, last: bool) -> str:
        """`last`: nothing but a noun (million is one, mille is not) follows, so cents and vingts take their s."""
        hundreds, rest = divmod(number, 100)
        words = []
        if hundreds:
            plural = "s" if hundreds > 1 and not rest and last else ""
            words.append(("" if hundreds == 1 else _ONES[hundreds] + " ") + "cent" + plural)
        if rest or not words:
            words.append(self._tens(rest) + ("s" if rest == 80 and last and not self._huitante else ""))
        return " ".join(words)

    def _tens(self, number: int) -> str:
        if number < len(_ONES):
            return _ONES[number]
        tens, ones = divmod(number, 10)
        own = {7: "septante", 9: "nonante"} if self._septante else {}
        own |= {8: "huitante"} if self._huitante else {}
        name = own.get(tens) or _TENS[tens]
        if tens in {7, 9} and tens not in own:
            ones += 10
        if not ones:
            return name
        if ones in {1, 11} and not name.startswith("quatre"):
            return f"{name} et {_ONES[ones]}"
        return f"{name}-{_ONES[ones]}"

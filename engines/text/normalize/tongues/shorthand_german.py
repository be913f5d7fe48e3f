"""German abbreviations, signs and Roman numerals."""

from __future__ import annotations

from typing import Final

from engines.text.normalize.tongues.shorthand_words import Shorthand, days_of, figures, relations, table
from engines.text.normalize.tongues.table import tongue_of

_QUEENS: Final = frozenset("Elisabeth Elizabeth Katharina Maria Margarethe Königin Kaiserin Zarin Beatrix".split())


def _german(name: str, number: int) -> str:
    tongue = tongue_of("de")
    place = tongue.ordinal(number) if tongue else str(number)
    return f"{'die' if name.partition(' ')[0] in _QUEENS else 'der'} {place.capitalize()}"


def _german_figures(_: str, number: int) -> str:
    return "eins" if number == 1 else str(number)  # "Typ eins Diabetes", not "ein Diabetes"


_GERMAN_RULERS: Final = (
    "Heinrich|Ludwig|Friedrich|Friedrich Wilhelm|Wilhelm|Karl|Otto|Maximilian|Franz(?! X\\. [A-Z])|Joseph|Leopold|"
    "Philipp|Elisabeth|"
    "Katharina|Johannes Paul|Johannes|Paul|Pius|Benedikt|Leo|Gregor|Georg|Eduard|Napoleon|Albert|"
    "(?:König|Königin|Kaiser|Kaiserin|Papst|Zar|Zarin) [A-ZÄÖÜ][a-zäöüß]+"
)
_GERMAN_THINGS: Final = (
    "Kapitel|Teil|Band|Akt|Halle|Terminal|Abschnitt|Artikel|Stufe|Phase|Tor|Saal|Raum|Klasse|Typ|Level|Zone|Apollo|"
    "Vatikanum|Bahnsteig|Gleis"
)
_MONTHS: Final = "Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez"
_DAYS: Final = "Mo Di Mi Do Fr Sa So"
_DAY_NAMES: Final = "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag"


def _no_francs(day: str) -> str:
    """Return what tells a Friday from money: "ab Fr. 14 Uhr", not "ab Fr. 12.50"."""
    return r"(?! \d+(?:[.,]\d\d)?(?![.,:\d])(?! ?(?:Uhr|[-–])))" if day == "Fr" else ""


GERMAN: Final = Shorthand(
    dot="Punkt",
    at="ät",
    slash="Schrägstrich",
    dash="Bindestrich",
    underscore="Unterstrich",
    colon="Doppelpunkt",
    signs={"&": "und", "§§": "Paragrafen", "§": "Paragraf"}
    | relations("kleiner gleich|größer gleich|ungleich|ungefähr|geteilt durch|unendlich|Wurzel aus"),
    until="bis",
    days=days_of(_DAYS, _DAY_NAMES),
    titles={
        "Dr": "Doktor",
        "Prof": "Professor",
        "Hr": "Herr",
        "Hrn": "Herrn",
        "St": "Sankt",
        "Dipl.-Ing": "Diplomingenieur",
    },
    abbreviations=table("""
        z. B.  | zum Beispiel
        d. h.  | das heißt
        u. a.  | unter anderem
        z. T.  | zum Teil
        i. d. R. | in der Regel
        u. U.  | unter Umständen
        v. Chr. | vor Christus
        n. Chr. | nach Christus
        usw.   | und so weiter
        etc.   | et cetera
        bzw.   | beziehungsweise
        ca.    | circa
        inkl.  | inklusive
        exkl.  | exklusive
        zzgl.  | zuzüglich
        ggf.   | gegebenenfalls
        evtl.  | eventuell
        vgl.   | vergleiche
        sog.   | sogenannt
        geb.   | geboren
        gest.  | gestorben
        gegr.  | gegründet
        max.   | maximal
        mind.  | mindestens
        MwSt.  | Mehrwertsteuer
        Abb.   | Abbildung
        Kap.   | Kapitel
        Jh.    | Jahrhundert
        Jhd.   | Jahrhundert
        Tel.   | Telefon
        Str.   | Straße
        Abt.   | Abteilung
        Bhf.   | Bahnhof
        Hbf.   | Hauptbahnhof
    """),
    phrases=(
        (r"(?<=[a-zäöüß])str\.", "straße"),
        (r"(?<=\d) ?[Mm]in\.(?= [a-zäöü])", " min"),
        (r"(?<!\w)([Ii]n|[Nn]ach|[Vv]or|[Ss]eit) 1/2 (?=(?:Stunde|Minute)\b)", r"\1 einer halben "),
        (r"(?<![\w/])(?<!\d )1/2 (?=(?:Stunde|Flasche|Tasse|Minute|Seite|Portion|Million)\b)", "eine halbe "),
        (r"(?<![\w/])(?<!\d )1/2 (?=(?:Liter|Kilometer|Meter|Tag|Löffel)\b)", "ein halber "),
        (r"(?<![\w/])(?<!\d )1/2 (?=(?:Kilo|Kilogramm|Pfund|Jahr|Glas)\b)", "ein halbes "),
        (r"(?<=\d) ?%-?(?=ige)", "prozent"),
        (r"(?<![\w/])(?<!\d )1/2 TL\b", "ein halber Teelöffel"),
        (r"(?<![\w/])(?<!\d )1/2 EL\b", "ein halber Esslöffel"),
        (r"(?<![\w.])([Ss])\. (?=(?:S|Abb|Kap)\. ?\d|Seite \d)", r"\1iehe "),
        (r"(?<![\w.])S\. ?(?=\d)", "Seite "),
        (r"(?<![\w.])Fa\. (?=[A-ZÄÖÜ])", "Firma "),
        (r"(?<![\w.])Zi\. ?(?=\d)", "Zimmer "),
        (r"(?<![\w.])Art\. ?(?=\d)", "Artikel "),
        (r"(?<![\w.])Abs\. ?(?=\d)", "Absatz "),
        (r"(?<![\w.])Bd\. ?(?=\d)", "Band "),
        (r"\b([Bb]lutdruck:? (?:von |ist |beträgt )?\d{2,3})/(?=\d{2,3}(?!\d))", r"\1 zu "),
        (r"\b([Aa]b|[Mm]it|[Vv]on|[Uu]nter|[Üü]ber) (\d{1,3}) J\.(?!\w)", r"\1 \2 Jahren"),
        (rf"(?<![\w.])(\d{{1,2}})\. ?[-–] ?(?=\d{{1,2}}\. ?(?:{_MONTHS}))", r"\1. bis "),
        *(
            (rf"\b(am|ab|vom|bis|von) {day}\.{_no_francs(day)}(?=[ ,;:)])", rf"\1 {name}")
            for day, name in zip(_DAYS.split(), _DAY_NAMES.split(), strict=True)
        ),
        *(
            (rf"(?<![\w.]){day}\.{_no_francs(day)}(?=,? (?:\d|den \d|ab \d|von \d|um \d))", name)
            for day, name in zip(_DAYS.split(), _DAY_NAMES.split(), strict=True)
        ),
        *(
            (rf"(\w(?:tag|woch|abend) (?:und|oder|bis) ){day}(?:\.(?= [a-zäöüß])|(?=\.))", rf"\1{name}")
            for day, name in zip(_DAYS.split(), _DAY_NAMES.split(), strict=True)
        ),
        (r"(?<=[\w€$£])/(Tag|Nacht|Woche|Monat|Jahr|Person|Stunde|Minute|Stück|Zimmer)(?!\w)", r" pro \1"),
        (r"(?<![\w.])(?<!\d )Fr\. (?=[A-ZÄÖÜ][a-zäöüß]{2})", "Frau "),
    ),
    romans=(
        (
            rf"(?<!\w)((?:{_GERMAN_RULERS}) )ROMAN(?:\.(?!\s*$)|(?=\.?\s*$)|(?![\w.]))",
            _german,
        ),
        (rf"(?<!\w)((?:{_GERMAN_THINGS}) )ROMAN(?![\w-])", _german_figures),
        (r"(?<!\w)()ROMAN(?=\. (?:Weltkrieg|Jahrhundert|Stock|Akt|Kapitel|Etage|Olymp))", figures),
    ),
)

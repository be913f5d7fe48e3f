"""What `shorthand` knows of each language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from engines.text.normalize.tongues.table import tongue_of

_NAME: Final = r"(?<!\w)([A-ZÀ-Þ][a-zß-ÿ]{2,20}(?: [A-ZÀ-Þ][a-zß-ÿ]{2,20})? )"
_NUMERAL_OF_NAME: Final = _NAME + r"(?=[IVX]{2,6}\b|[IV]\b)ROMAN(?![\w'’./-]\w|\w)"
_ALONE: Final = 10
"""Spanish and Portuguese say "Felipe sexto", but "Alfonso trece"."""


@dataclass(frozen=True, slots=True, eq=False)
class Shorthand:
    """A language's words for signs in addresses, its abbreviations, and where it writes Roman numerals."""

    dot: str
    at: str
    slash: str
    dash: str
    underscore: str
    colon: str
    signs: Mapping[str, str] = field(default_factory=dict)
    spaced: bool = True
    """Whether its words are parted by spaces."""
    until: str = ""
    days: Mapping[str, str] = field(default_factory=dict)
    """Days of the week, as they are shortened in ranges."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Before a name, with or without a full stop; behind a slash what a woman has."""
    abbreviations: Mapping[str, str] = field(default_factory=dict)
    """With their full stops; a space in them may be missing."""
    phrases: tuple[tuple[str, str], ...] = ()
    """Patterns and what they become, such as halves that are no numbers."""
    romans: tuple[tuple[str, Callable[[str, int], str]], ...] = ()
    """Patterns with what stays as their first group and ROMAN for the numeral; and its figures, given that group."""


def _table(text: str) -> dict[str, str]:
    rows = (line.split("|") for line in text.strip().splitlines())
    return {short.strip(): said.strip() for short, said in rows}


def _days(short: str, names: str) -> dict[str, str]:
    """`short` may have several rows of seven, one after the other."""
    written, said = short.split(), names.split()
    return {day: said[i % len(said)] for i, day in enumerate(written)}


def _relations(names: str) -> dict[str, str]:
    return dict(zip("≤≥≠≈÷∞√", names.split("|"), strict=True))


def _figures(_: str, number: int) -> str:
    return str(number)


_MEN_IN_A: Final = frozenset(("Andrea", "Luca", "Nicola", "Papa", "Mattia", "Enea"))


def _italian(name: str, number: int) -> str:
    feminine = name.rstrip().endswith("a") and name.rsplit(maxsplit=1)[-1] not in _MEN_IN_A
    return f"{number}{'ª' if feminine else 'º'}"


def _place(_: str, number: int) -> str:
    return f"{number}º"


def _iberian(name: str, number: int) -> str:
    feminine = name.rstrip().endswith("a") or name.startswith("Isabel")
    return (f"{number}ª" if feminine else f"{number}º") if number <= _ALONE else str(number)


_REINES: Final = frozenset(
    "Elizabeth Élisabeth Elisabeth Catherine Marie Victoria Isabelle Anne Jeanne Marguerite Christine Reine".split()
)


def _french(name: str, number: int) -> str:
    if number > 1:
        return str(number)
    return "1re" if name.partition(" ")[0] in _REINES else "1er"


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
_GERMAN: Final = Shorthand(
    dot="Punkt",
    at="ät",
    slash="Schrägstrich",
    dash="Bindestrich",
    underscore="Unterstrich",
    colon="Doppelpunkt",
    signs={"&": "und", "§§": "Paragrafen", "§": "Paragraf"}
    | _relations("kleiner gleich|größer gleich|ungleich|ungefähr|geteilt durch|unendlich|Wurzel aus"),
    until="bis",
    days=_days("Mo Di Mi Do Fr Sa So", "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag"),
    titles={
        "Dr": "Doktor",
        "Prof": "Professor",
        "Hr": "Herr",
        "Hrn": "Herrn",
        "St": "Sankt",
        "Dipl.-Ing": "Diplomingenieur",
    },
    abbreviations=_table("""
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
        (r"(?<![\w/])1 ?1/2(?= [A-Z])", "eineinhalb"),
        (r"(?<!\w)([Ii]n|[Nn]ach|[Vv]or|[Ss]eit) 1/2 (?=(?:Stunde|Minute)\b)", r"\1 einer halben "),
        (r"(?<![\w/])(?<!\d )1/2 (?=(?:Stunde|Flasche|Tasse|Minute|Seite|Portion|Million)\b)", "eine halbe "),
        (r"(?<![\w/])(?<!\d )1/2 (?=(?:Liter|Kilometer|Meter|Tag|Löffel)\b)", "ein halber "),
        (r"(?<![\w/])(?<!\d )1/2 (?=(?:Kilo|Kilogramm|Pfund|Jahr|Glas)\b)", "ein halbes "),
        (r"(?<=\d) ?%-?(?=ige)", "prozent"),
    ),
    romans=(
        (
            rf"(?<!\w)((?:{_GERMAN_RULERS}) )ROMAN(?:\.(?!\s*$)|(?=\.?\s*$)|(?![\w.]))",
            _german,
        ),
        (rf"(?<!\w)((?:{_GERMAN_THINGS}) )ROMAN(?![\w-])", _german_figures),
        (r"(?<!\w)()ROMAN(?=\. (?:Weltkrieg|Jahrhundert|Stock|Akt|Kapitel|Etage|Olymp))", _figures),
    ),
)

_FRENCH_THINGS: Final = (
    "[Ss]iècle|[Cc]hapitre|[Tt]ome|[Aa]cte|[Pp]artie|[Tt]erminal|[Hh]all|[Pp]hase|[Tt]ype|[Nn]iveau|[Ss]alle|[Gg]roupe|"
    "[Zz]one|[Pp]orte|[Cc]lasse|[Ss]ection|[Éé]tape|[Bb]âtiment|[Tt]our|[Vv]olume|[Qq]uai|[Vv]oie"
)
_FRENCH: Final = Shorthand(
    dot="point",
    at="arobase",
    slash="barre oblique",
    dash="tiret",
    underscore="tiret bas",
    colon="deux-points",
    signs={"&": "et", "§": "paragraphe"}
    | _relations(
        "inférieur ou égal à|supérieur ou égal à|différent de|environ|divisé par|infini|racine de"
    ),
    until="à",
    days=_days(
        "lun mar mer jeu ven sam dim Lun Mar Mer Jeu Ven Sam Dim",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
    ),
    titles={"M": "monsieur", "MM": "messieurs", "Mme": "madame", "Mmes": "mesdames", "Mlle": "mademoiselle",
            "Dr": "docteur", "Pr": "professeur", "Me": "maître", "Mgr": "monseigneur"},
    abbreviations=_table("""
        av. J.-C. | avant Jésus-Christ
        apr. J.-C. | après Jésus-Christ
        p. ex.  | par exemple
        c.-à-d. | c'est-à-dire
        etc.    | et cetera
        env.    | environ
        tél.    | téléphone
        bd.     | boulevard
        av.     | avenue
        max.    | maximum
        min.    | minimum
    """),
    phrases=(
        (r"(?<!\w)S(t|te)-(?=[A-ZÀ-Þ])", r"Sain\1-"),
        (r"(?<![\w/])(?<!\d )1/2[ -](?=heures?\b|journée|finale|page)", "une demi-"),
    ),
    romans=(
        (rf"(?<!\w)((?:{_FRENCH_THINGS}) )ROMAN(?![\w-])", _figures),
        (r"(?<!\w)()ROMAN(?=(?:e|ème|er|ère)(?!\w))", _figures),
        (_NAME + r"(?=[IVX]{2,6}\b|[IV]\b)ROMAN(?![\w'’./-]\w|\w)", _french),
    ),
)  # fmt: skip

_SPANISH: Final = Shorthand(
    dot="punto",
    at="arroba",
    slash="barra",
    dash="guion",
    underscore="guion bajo",
    colon="dos puntos",
    signs={"&": "y", "§": "párrafo"}
    | _relations(
        "menor o igual que|mayor o igual que|distinto de|aproximadamente|dividido por|infinito|raíz de"
    ),
    until="a",
    days=_days(
        "lun mar mié jue vie sáb dom Lun Mar Mié Jue Vie Sáb Dom L M X J V S D",
        "lunes martes miércoles jueves viernes sábado domingo",
    ),
    titles={"Sr": "señor", "Sra": "señora", "Srta": "señorita", "Sres": "señores", "Dr": "doctor", "Dra": "doctora",
            "D": "don", "Dña": "doña", "Prof": "profesor", "Ud": "usted", "Lic": "licenciado", "Ing": "ingeniero"},
    abbreviations=_table("""
        EE. UU. | Estados Unidos
        a. C.   | antes de Cristo
        d. C.   | después de Cristo
        p. ej.  | por ejemplo
        etc.    | etcétera
        aprox.  | aproximadamente
        pág.    | página
        tel.    | teléfono
        tfno.   | teléfono
        avda.   | avenida
        máx.    | máximo
        mín.    | mínimo
        Ud.     | usted
        Uds.    | ustedes
    """),
    phrases=(
        (r"(?<![\w/])(?<!\d )1/2 (?=hora|docena|página|botella)", "media "),
        (r"(?<![\w/])(?<!\d )1/2 (?=litro|kilo|día)", "medio "),
    ),
    romans=(
        (
            (r"(?<!\w)((?:[Ss]iglos?|[Cc]apítulo|[Tt]omo|[Aa]cto|[Pp]arte|[Ff]ase|[Tt]ipo|[Nn]ivel|[Tt]erminal|"
            r"[Ss]ala|[Zz]ona|[Gg]rupo|[Cc]lase|[Pp]lanta|[Vv]olumen) )ROMAN(?![\w-])"),
            _figures,
        ),
        (_NUMERAL_OF_NAME, _iberian),
    ),
)  # fmt: skip

_ITALIAN: Final = Shorthand(
    dot="punto",
    at="chiocciola",
    slash="barra",
    dash="trattino",
    underscore="trattino basso",
    colon="due punti",
    signs={"&": "e", "§": "paragrafo"}
    | _relations(
        "minore o uguale a|maggiore o uguale a|diverso da|circa|diviso|infinito|radice di"
    ),
    until="a",
    days=_days(
        "lun mar mer gio ven sab dom Lun Mar Mer Gio Ven Sab Dom",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    ),
    titles={"Sig": "signor", "Sig.ra": "signora", "Sig.na": "signorina", "Dott": "dottor", "Dott.ssa": "dottoressa",
            "Prof": "professor", "Prof.ssa": "professoressa", "Ing": "ingegner", "Avv": "avvocato", "Dr": "dottor"},
    abbreviations=_table("""
        a. C.  | avanti Cristo
        d. C.  | dopo Cristo
        p. es. | per esempio
        ad es. | ad esempio
        ecc.   | eccetera
        ca.    | circa
        pag.   | pagina
        tel.   | telefono
        max.   | massimo
        min.   | minimo
    """),
    phrases=(
        (r"(?<![\w/])(?<!\d )1/2 ora\b", "mezz'ora"),
        (r"(?<![\w/])(?<!\d )1/2 (?=litro|chilo)", "mezzo "),
    ),
    romans=(
        (r"(?<!\w)()ROMAN(?= (?:secolo|secc?\.))", _place),
        (
            (r"(?<!\w)((?:[Ss]ecolo|[Cc]apitolo|[Pp]arte|[Ff]ase|[Tt]ipo|[Ll]ivello|[Tt]erminal|"
            r"[Ss]ala|[Zz]ona|[Gg]ruppo|[Cc]lasse|[Vv]olume) )ROMAN(?![\w-])"),
            _figures,
        ),
        (_NUMERAL_OF_NAME, _italian),
    ),
)  # fmt: skip

_PORTUGUESE: Final = Shorthand(
    dot="ponto",
    at="arroba",
    slash="barra",
    dash="hífen",
    underscore="sublinhado",
    colon="dois pontos",
    signs={"&": "e", "§": "parágrafo"}
    | _relations(
        "menor ou igual a|maior ou igual a|diferente de|aproximadamente|dividido por|infinito|raiz de"
    ),
    until="a",
    days=_days(
        "seg ter qua qui sex sáb dom Seg Ter Qua Qui Sex Sáb Dom",
        "segunda terça quarta quinta sexta sábado domingo",
    ),
    titles={"Sr": "senhor", "Sra": "senhora", "Srta": "senhorita", "Dr": "doutor", "Dra": "doutora", "D": "Dom/Dona",
            "Prof": "professor", "Profa": "professora", "Eng": "engenheiro"},
    abbreviations=_table("""
        a. C.  | antes de Cristo
        d. C.  | depois de Cristo
        p. ex. | por exemplo
        etc.   | et cetera
        aprox. | aproximadamente
        pág.   | página
        av.    | avenida
        máx.   | máximo
        mín.   | mínimo
    """),
    phrases=(
        (r"(?<![\w/])(?<!\d )1/2 (?=hora|dúzia|página)", "meia "),
        (r"(?<![\w/])(?<!\d )1/2 (?=litro|quilo|dia)", "meio "),
    ),
    romans=(
        (
            (r"(?<!\w)((?:[Ss]éculos?|[Cc]apítulo|[Pp]arte|[Ff]ase|[Tt]ipo|[Nn]ível|[Tt]erminal|"
            r"[Ss]ala|[Zz]ona|[Gg]rupo|[Cc]lasse|[Vv]olume) )ROMAN(?![\w-])"),
            _figures,
        ),
        (_NUMERAL_OF_NAME, _iberian),
    ),
)  # fmt: skip

_CHINESE: Final = Shorthand(
    dot="点",
    at="艾特",
    slash="斜杠",
    dash="杠",
    underscore="下划线",
    colon="冒号",
    spaced=False,
    signs={"&": "和"} | _relations("小于等于|大于等于|不等于|约等于|除以|无穷|根号"),
)

LANGUAGES: Final = {
    "de": _GERMAN,
    "fr": _FRENCH,
    "es": _SPANISH,
    "it": _ITALIAN,
    "pt": _PORTUGUESE,
    "zh": _CHINESE,
}

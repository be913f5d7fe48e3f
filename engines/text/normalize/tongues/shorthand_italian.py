"""Italian abbreviations, signs and Roman numerals."""

from __future__ import annotations

from typing import Final

from engines.text.normalize.tongues.shorthand_words import (
    NUMERAL_OF_NAME,
    Shorthand,
    days_of,
    figures,
    relations,
    table,
)

_MEN_IN_A: Final = frozenset(("Andrea", "Luca", "Nicola", "Papa", "Mattia", "Enea"))


def _italian(name: str, number: int) -> str:
    feminine = name.rstrip().endswith("a") and name.rsplit(maxsplit=1)[-1] not in _MEN_IN_A
    return f"{number}{'ª' if feminine else 'º'}"


def _place(_: str, number: int) -> str:
    return f"{number}º"


ITALIAN: Final = Shorthand(
    dot="punto",
    at="chiocciola",
    slash="barra",
    dash="trattino",
    underscore="trattino basso",
    colon="due punti",
    signs={"&": "e", "§": "paragrafo"}
    | relations(
        "minore o uguale a|maggiore o uguale a|diverso da|circa|diviso|infinito|radice di"
    ),
    until="a",
    days=days_of(
        "lun mar mer gio ven sab dom Lun Mar Mer Gio Ven Sab Dom",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    ),
    titles={"Sig": "signor", "Sig.ra": "signora", "Sig.na": "signorina", "Dott": "dottor", "Dott.ssa": "dottoressa",
            "Prof": "professor", "Prof.ssa": "professoressa", "Ing": "ingegner", "Avv": "avvocato", "Dr": "dottor"},
    abbreviations=table("""
        a. C.  | avanti Cristo
        d. C.  | dopo Cristo
        p. es. | per esempio
        ad es. | ad esempio
        ecc.   | eccetera
        ca.    | circa
        pag.   | pagina
        pagg.  | pagine
        tel.   | telefono
        max.   | massimo
        min.   | minimo
    """),
    phrases=(
        (r"(?<!\w)([Pp])(?:\.?zz|\.z)a (?=[A-Z])", r"\1iazza "),
        (r"(?<![\w.])nn\. ?(?=\d)", "numeri "),
        (r"(?<=[\w€$£])/(giorno|mese|minuto)(?!\w)", r" al \1"),
        (r"(?<=[\w€$£])/(notte|persona|settimana)(?!\w)", r" a \1"),
        (r"(?<=[\w€$£])/(ora|anno)(?!\w)", r" all'\1"),
        (r"(?<!\w)([Vv])\.le (?=[A-Z])", r"\1iale "),
        (r"(?<!\w)([Cc])\.so (?=[A-Z])", r"\1orso "),
        (r"(?<![\w.])([Ss])ec\. (?=[IVX])", r"\1ecolo "),
        (r"(?<![\w.])([Aa])rt\. ?(?=\d)", r"\1rticolo "),
        (r"\b(articolo \d{1,4},?) c(?:omma)?\. ?(?=\d)", r"\1 comma "),
        (r"(?<![\w.])([Cc])ap\. ?(?=[\dIVX])", r"\1apitolo "),
        (r"(?<![\w.])([Ff])ig\. ?(?=\d)", r"\1igura "),
        (r"(?<![\w/])(?<!\d )1/2 ora\b", "mezz'ora"),
        (r"(?<![\w/])(?<!\d )1/2 (?=litro|chilo)", "mezzo "),
    ),
    romans=(
        (r"(?<!\w)()ROMAN(?= (?:secolo|secc?\.))", _place),
        (r"(?<!\w)([Ss]ecolo )ROMAN(?![\w-])", _place),
        (
            (r"(?<!\w)((?:[Cc]apitolo|[Pp]arte|[Ff]ase|[Tt]ipo|[Ll]ivello|[Tt]erminal|"
            r"[Ss]ala|[Zz]ona|[Gg]ruppo|[Cc]lasse|[Vv]olume) )ROMAN(?![\w-])"),
            figures,
        ),
        (NUMERAL_OF_NAME, _italian),
    ),
)  # fmt: skip

"""Spanish and Portuguese abbreviations, signs and Roman numerals."""

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

_ALONE: Final = 10
"""Spanish and Portuguese say "Felipe sexto", but "Alfonso trece"."""


def _feminine(_: str, number: int) -> str:
    return f"{number}ª"


def _iberian(name: str, number: int) -> str:
    feminine = name.rstrip().endswith("a") or name.startswith("Isabel")
    return (f"{number}ª" if feminine else f"{number}º") if number <= _ALONE else str(number)


SPANISH: Final = Shorthand(
    dot="punto",
    at="arroba",
    slash="barra",
    dash="guion",
    underscore="guion bajo",
    colon="dos puntos",
    signs={"&": "y", "§": "párrafo"}
    | relations(
        "menor o igual que|mayor o igual que|distinto de|aproximadamente|dividido por|infinito|raíz de"
    ),
    until="a",
    days=days_of(
        "lun mar mié jue vie sáb dom Lun Mar Mié Jue Vie Sáb Dom L M X J V S D",
        "lunes martes miércoles jueves viernes sábado domingo",
    ),
    titles={"Sr": "señor", "Sra": "señora", "Srta": "señorita", "Sres": "señores", "Dr": "doctor", "Dra": "doctora",
            "D": "don", "Dña": "doña", "Prof": "profesor", "Ud": "usted", "Lic": "licenciado", "Ing": "ingeniero"},
    abbreviations=table("""
        EE. UU. | Estados Unidos
        a. C.   | antes de Cristo
        d. C.   | después de Cristo
        p. ej.  | por ejemplo
        etc.    | etcétera
        aprox.  | aproximadamente
        pág.    | página
        págs.   | páginas
        núm.    | número
        dpto.   | departamento
        ctra.   | carretera
        izq.    | izquierda
        dcha.   | derecha
        tel.    | teléfono
        tfno.   | teléfono
        avda.   | avenida
        máx.    | máximo
        mín.    | mínimo
        Ud.     | usted
        Uds.    | ustedes
    """),
    phrases=(
        (r"(?<=[\w€$£])/(día|noche|semana|mes|año|persona|hora|minuto)(?!\w)", r" por \1"),
        (r"(?<!\w)([Cc])/ ?(?=[A-ZÁÉÍÓÚÑ][a-záéíóúñ])", r"\1alle "),
        (r"(?<!\w)([Pp])za\. (?=[A-ZÁÉÍÓÚÑ])", r"\1laza "),
        (r"(?<![\w.])([Aa])rt\. ?(?=\d)", r"\1rtículo "),
        (r"(?<![\w.])([Cc])ap\. ?(?=[\dIVX])", r"\1apítulo "),
        (r"(?<![\w.])([Ff])ig\. ?(?=\d)", r"\1igura "),
        (r"(?<![\w/])(?<!\d )1/2 (?=hora|docena|página|botella)", "media "),
        (r"(?<![\w/])(?<!\d )1/2 (?=litro|kilo|día)", "medio "),
    ),
    romans=(
        (
            (r"(?<!\w)((?:[Ss]iglos?|[Cc]apítulo|[Tt]omo|[Aa]cto|[Pp]arte|[Ff]ase|[Tt]ipo|[Nn]ivel|[Tt]erminal|"
            r"[Ss]ala|[Zz]ona|[Gg]rupo|[Cc]lase|[Pp]lanta|[Vv]olumen) )ROMAN(?![\w-])"),
            figures,
        ),
        (r"(?<!\w)()ROMAN(?= (?:Guerra|Feria|Edición|República|Semana)\b)", _feminine),
        (NUMERAL_OF_NAME, _iberian),
    ),
)  # fmt: skip

PORTUGUESE: Final = Shorthand(
    dot="ponto",
    at="arroba",
    slash="barra",
    dash="hífen",
    underscore="sublinhado",
    colon="dois pontos",
    signs={"&": "e", "§": "parágrafo"}
    | relations(
        "menor ou igual a|maior ou igual a|diferente de|aproximadamente|dividido por|infinito|raiz de"
    ),
    until="a",
    days=days_of(
        "seg ter qua qui sex sáb dom Seg Ter Qua Qui Sex Sáb Dom",
        "segunda terça quarta quinta sexta sábado domingo",
    ),
    titles={"Sr": "senhor", "Sra": "senhora", "Srta": "senhorita", "Dr": "doutor", "Dra": "doutora", "D": "Dom/Dona",
            "Prof": "professor", "Profa": "professora", "Eng": "engenheiro"},
    abbreviations=table("""
        a. C.  | antes de Cristo
        d. C.  | depois de Cristo
        p. ex. | por exemplo
        etc.   | et cetera
        aprox. | aproximadamente
        pág.   | página
        págs.  | páginas
        tel.   | telefone
        Pç.    | Praça
        Lg.    | Largo
        esq.   | esquerdo
        dto.   | direito
        Exmo.  | excelentíssimo
        Exma.  | excelentíssima
        av.    | avenida
        máx.   | máximo
        mín.   | mínimo
    """),
    phrases=(
        (r"(?<=[\w€$£])/(dia|noite|semana|mês|ano|pessoa|hora|minuto)(?!\w)", r" por \1"),
        (r"(?<![\w.])([Aa])rt\. ?(?=\d)", r"\1rtigo "),
        (r"(?<![\w.])([Cc])ap\. ?(?=[\dIVX])", r"\1apítulo "),
        (r"(?<![\w.])([Ff])ig\. ?(?=\d)", r"\1igura "),
        (r"(?<![\w/])(?<!\d )1/2 (?=hora|dúzia|página)", "meia "),
        (r"(?<![\w/])(?<!\d )1/2 (?=litro|quilo|dia)", "meio "),
    ),
    romans=(
        (
            (r"(?<!\w)((?:[Ss]éculos?|[Cc]apítulo|[Pp]arte|[Ff]ase|[Tt]ipo|[Nn]ível|[Tt]erminal|"
            r"[Ss]ala|[Zz]ona|[Gg]rupo|[Cc]lasse|[Vv]olume) )ROMAN(?![\w-])"),
            figures,
        ),
        (NUMERAL_OF_NAME, _iberian),
    ),
)  # fmt: skip

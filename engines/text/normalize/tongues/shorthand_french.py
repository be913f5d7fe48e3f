"""French abbreviations, signs and Roman numerals."""

from __future__ import annotations

from typing import Final

from engines.text.normalize.tongues.shorthand_words import NAME, Shorthand, days_of, figures, relations, table

_REINES: Final = frozenset(
    "Elizabeth Élisabeth Elisabeth Catherine Marie Victoria Isabelle Anne Jeanne Marguerite Christine Reine".split()
)


def _french(name: str, number: int) -> str:
    if number > 1:
        return str(number)
    return "1re" if name.partition(" ")[0] in _REINES else "1er"


_FRENCH_THINGS: Final = (
    "[Ss]iècle|[Cc]hapitre|[Tt]ome|[Aa]cte|[Pp]artie|[Tt]erminal|[Hh]all|[Pp]hase|[Tt]ype|[Nn]iveau|[Ss]alle|[Gg]roupe|"
    "[Zz]one|[Pp]orte|[Cc]lasse|[Ss]ection|[Éé]tape|[Bb]âtiment|[Tt]our|[Vv]olume|[Qq]uai|[Vv]oie"
)
FRENCH: Final = Shorthand(
    dot="point",
    at="arobase",
    slash="barre oblique",
    dash="tiret",
    underscore="tiret bas",
    colon="deux-points",
    signs={"&": "et", "§": "paragraphe"}
    | relations(
        "inférieur ou égal à|supérieur ou égal à|différent de|environ|divisé par|infini|racine de"
    ),
    until="à",
    days=days_of(
        "lun mar mer jeu ven sam dim Lun Mar Mer Jeu Ven Sam Dim",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
    ),
    titles={"M": "monsieur", "MM": "messieurs", "Mme": "madame", "Mmes": "mesdames", "Mlle": "mademoiselle",
            "Dr": "docteur", "Pr": "professeur", "Me": "maître", "Mgr": "monseigneur"},
    abbreviations=table("""
        av. J.-C. | avant Jésus-Christ
        apr. J.-C. | après Jésus-Christ
        p. ex.  | par exemple
        c.-à-d. | c'est-à-dire
        etc.    | et cetera
        env.    | environ
        tél.    | téléphone
        bd.     | boulevard
        bât.    | bâtiment
        ét.     | étage
        apt.    | appartement
        appt.   | appartement
        av.     | avenue
        max.    | maximum
        min.    | minimum
    """),
    phrases=(
        (r"(?<!\w)S(t|te)-(?=[A-ZÀ-Þ])", r"Sain\1-"),
        (r"(?<=[\w€$£])/(jour|nuit|semaine|mois|an|personne|heure|minute)(?!\w)", r" par \1"),
        (r"(?<!\w)([Rr])dv(?!\w)", r"\1endez-vous"),
        (r"(?<!\w)([Nn])° de(?!\w)", r"\1uméro de"),
        (r"(?<=[IVX]e) s\.(?!\w)", " siècle"),
        (r"(?<!\w)([Bb])d\.? (?=[A-ZÀ-Þ])", r"\1oulevard "),
        (r"(?<![\w.,/])(?<!\d )(1/2|1) c\. ?à ?s\.(?!\w)", r"\1 cuillère à soupe"),
        (r"(?<![\w.,/])(?<!\d )(1/2|1) c\. ?à ?c\.(?!\w)", r"\1 cuillère à café"),
        (r"(?<!\w)c\. ?à ?s\.(?!\w)", "cuillères à soupe"),
        (r"(?<!\w)c\. ?à ?c\.(?!\w)", "cuillères à café"),
        (r"(?<![\w.])(?<!\d )p\. ?(?=\d)", "page "),
        (r"(?<![\w.])pp\. ?(?=\d)", "pages "),
        (r"(?<![\w.])([Aa])rt\. ?(?=\d)", r"\1rticle "),
        (r"(?<![\w.])([Cc])hap\. ?(?=[\dIVX])", r"\1hapitre "),
        (r"(?<![\w.])([Ff])ig\. ?(?=\d)", r"\1igure "),
        (r"(?<![\w/])(?<!\d )1/2[ -](?=heures?\b|journée|finale|page)", "une demi-"),
    ),
    romans=(
        (rf"(?<!\w)((?:{_FRENCH_THINGS}) )ROMAN(?![\w-])", figures),
        (r"(?<!\w)()ROMAN(?=(?:e|ème|er|ère)(?!\w))", figures),
        (NAME + r"(?=[IVX]{2,6}\b|[IV]\b)ROMAN(?![\w'’./-]\w|\w)", _french),
    ),
)  # fmt: skip

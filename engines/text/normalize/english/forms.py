"""English written forms in words, kind after kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from engines.text.normalize.english.abbreviations import LETTER_A, PLAIN, TITLES, abbreviations, acronyms
from engines.text.normalize.english.addresses import STREETS, addresses
from engines.text.normalize.english.arithmetic import arithmetic
from engines.text.normalize.english.dates import dates
from engines.text.normalize.english.electronic import electronic
from engines.text.normalize.english.figures import figures
from engines.text.normalize.english.fractions import fractions
from engines.text.normalize.english.measures import measures
from engines.text.normalize.english.money import money
from engines.text.normalize.english.names import names
from engines.text.normalize.english.quantities import decimals, ordinals, ranges, wholes
from engines.text.normalize.english.reading import Reading
from engines.text.normalize.english.roman import BEFORE_ONE, roman
from engines.text.normalize.english.serials import serials
from engines.text.normalize.english.signs import number_signs, signs
from engines.text.normalize.english.telephone import telephone
from engines.text.normalize.english.times import times
from engines.text.normalize.english.weekdays import weekdays

Kind = tuple[str, Callable[[str, Reading], str]]

KINDS: Final[tuple[Kind, ...]] = (
    ("figures", figures),
    ("weekdays", weekdays),
    ("times", times),
    ("net addresses", electronic),
    ("figure by figure", telephone),
    ("names", names),
    ("money", money),
    ("roman numerals", roman),
    ("addresses", addresses),
    ("measures", measures),
    ("dates", dates),
    ("abbreviations", abbreviations),
    ("arithmetic", arithmetic),
    ("fractions", fractions),
    ("number signs", number_signs),
    ("ordinals", ordinals),
    ("ranges", ranges),
    ("decimals", decimals),
    ("serials", serials),
    ("whole numbers", wholes),
    ("signs", signs),
    ("acronyms", acronyms),
)
"""In this order: what has the most around it first, since it leaves only words to the next."""

_FORMS: Final = re.compile(
    r"[\d|¦†‡$£€¥₹₩₪₽₺₫฿₱₴₦₿¢%&@#+=*~^_\\/<>°©®™§¶÷×±√∛‰−№♯♭≤≥≠≈≡∝∈→⇒∞∑∏∫∂∆²³\u2160-\u2188\u0391-\u03c9]"
)
_SHORT: Final = re.compile(
    r"[IVXLCDM]{2}|[A-Z]{3}|\b[IVX]\b(?!['’]| [a-z])"
    r"|\b[A-Za-z]\. ?[A-Za-z]\.?(?!\w)|\b[A-HJ-Z]\.|\w\.[A-Za-z]|, [A-Z]{2}\b"
    rf"|\b(?:{'|'.join(TITLES)})\b|\b(?i:vs|etc|approx|dept|jr|sr|(?:{'|'.join([*PLAIN, *STREETS])})\.)(?!\w)|\bSt\b"
)
"""What may be in a text without digits and signs: abbreviations, initials, Roman numerals, states."""

_DAYS: Final = re.compile(
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}(?:\.(?!\w)| ?[-–])"
    rf"|\b(?:{BEFORE_ONE}) I\b|(?:^| )\.[a-zN]|[\u2190-\u21ff]|\bA-Z\b|\b[ivx]{{2,7}}\b"
)
_SPACES: Final = re.compile(r"[ \t]{2,}")
_BEFORE_MARK: Final = re.compile(r"[ \t]+(?=[,;:!?]|\.(?![a-z]))")


def english(text: str, reading: Reading) -> str:
    """Return `text` with its written forms in words."""
    for _name, kind in kinds(text):
        text = kind(text, reading)
    return text


def kinds(text: str) -> tuple[Kind, ...]:
    """Return the kinds that may be in a text, found out in the time of one search or two: a plain sentence has none."""
    if _FORMS.search(text):
        return KINDS
    return KINDS if _SHORT.search(text) or _DAYS.search(text) or LETTER_A.search(text) else ()


def tidy(text: str) -> str:
    """Return `text` without the spaces that rules have left: two in a row, or one before a mark."""
    return _BEFORE_MARK.sub("", _SPACES.sub(" ", text)).strip()

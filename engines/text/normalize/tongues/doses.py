"""So many of what holds so much: 2 500 mg tablets are two, however a thousand is grouped."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from engines.text.normalize.tongues.amounts import unit_names, unit_of
from engines.text.normalize.tongues.numeral import Numeral
from engines.text.normalize.tongues.spans import GAP
from engines.text.normalize.tongues.tongue import Tongue

_HOLDS: Final = (
    "tablet|kapsel|ampulle|dos[ei]|pille|pilul|píldora|pílula|pillol|beutel|zäpfchen|packung|flasche|tüte|gläser|"
    "pastill|comprim|c[aáà]psul|gélul|ampol|sobre|bustin|sachet|saqueta|compress|suppo|botell|bouteill|bottigli|garraf|"
    "paquet|pacot|pacch|lata|lattin|canett|bote|boîte|flacon|frasc"
)
"""How the names of what medicine and goods come in begin, in all languages."""


def doses(tongue: Tongue, text: str) -> str:
    """Part the count from the amount in 2 500 mg Tabletten: a thousand times as much is no risk to take."""

    def dose(found: re.Match[str]) -> str:
        count = tongue.say(Numeral(found["count"]), tongue.gender_of(found["thing"]))
        amount = tongue.count(Numeral(found["amount"]), unit_of(tongue, found["unit"]))
        return f"{count} {amount}"

    return _doses(tongue).sub(dose, text)


@cache
def _doses(tongue: Tongue) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w.,:/])(?<!\d )(?P<count>[1-9]\d?) (?P<amount>[1-9]\d\d){GAP}(?P<unit>{unit_names(tongue)})"
        rf"(?=[ -](?:de |d'|da |di )?(?P<thing>(?i:{_HOLDS})[^\W\d_]{{0,20}}))"
    )

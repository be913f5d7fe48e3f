"""Half of something, and so many and a half: media taza, une heure et demie."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.tongues.numeral import Numeral
from engines.text.normalize.tongues.spans import before
from engines.text.normalize.tongues.tongue import IN_PARTS, Tongue

_HALF: Final = re.compile(r"(?<![\w.,/])(?<!\d )1/2[ -]([^\W\d_]{3,30})(?!\w)")
_WITH_WHOLE: Final = re.compile(r"(?<![\w.,/])(\d{1,3}) 1/2[ -]([^\W\d_]{3,30})(?!\w)")


def halves(tongue: Tongue, text: str) -> str:
    """Put 1/2 and 2 1/2 before a noun into words, where the half takes the noun's gender."""
    if not tongue.half or "1/2" not in text:
        return text

    def alone(found: re.Match[str]) -> str:
        noun = found[1]
        if not tongue.is_noun(noun) or before(found.string, found.start())[1] in IN_PARTS:
            return found[0]
        return f"{tongue.half[tongue.gender_of(noun) == 'f']}{noun}"

    def mixed(found: re.Match[str]) -> str:
        number, noun = found[1], found[2]
        if not tongue.is_noun(noun):
            return found[0]
        gender = tongue.gender_of(tongue.singular(noun))
        name = tongue.singular(noun) if number == "1" else noun
        words = tongue.elided(tongue.say(Numeral(number), gender), name)
        gap = "" if words.endswith("'") else " "
        return f"{words}{gap}{name} {tongue.and_half[gender == 'f']}"

    return _HALF.sub(alone, _WITH_WHOLE.sub(mixed, text))

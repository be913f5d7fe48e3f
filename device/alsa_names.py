"""Names of sound cards that stay the same when cards come and go.

A card's place (`hw:1,0`) depends on which one the kernel met first; its id (`hw:CARD=Device,DEV=0`) does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

_BY_PLACE: Final = re.compile(r"(?P<kind>[A-Za-z_]\w*):(?:CARD=)?(?P<index>\d+)(?:,(?P<rest>.*))?")
_REST: Final = ("DEV", "SUBDEV")
"""The parameters that follow the card, where they are given by their place too."""


def place_of(device: str) -> int | None:
    """Give the index by which an ALSA name calls its card; None where it does not."""
    match = _BY_PLACE.fullmatch(device)
    return int(match["index"]) if match else None


def by_id(device: str, card: str) -> str:
    """Give the same name with the card's id in place of its index: `hw:1,0` -> `hw:CARD=Device,DEV=0`."""
    match = _BY_PLACE.fullmatch(device)
    if match is None:
        return device
    parts = match["rest"].split(",") if match["rest"] else []
    named = [part if "=" in part else f"{key}={part}" for key, part in zip(_REST, parts, strict=False)]
    return f"{match['kind']}:{','.join([f'CARD={card}', *named])}"


def card_of(device: str) -> str | None:
    """Give the card that an ALSA name means, by its id or index; None where the name leaves that to ALSA."""
    match = re.search(r"\bCARD=(?P<card>\w+)", device) or re.match(r"[A-Za-z_]\w*:(?P<card>\w+)(?![\w=])", device)
    return match["card"] if match else None


def id_at(binding: Any, index: int) -> str | None:  # noqa: ANN401  alsaaudio has no types
    """Give the id of the card that has this index now."""
    cards: dict[int, str] = dict(zip(binding.card_indexes(), binding.cards(), strict=False))
    return cards.get(index)


def advice(cards: Sequence[str]) -> str:
    """Say what `audio.device` may be, for somebody whose card was not found."""
    if not cards:
        return "ALSA knows no card now; `--output file.wav` works without one"
    names = ", ".join(f'"plughw:CARD={card}"' for card in cards)
    return f"audio.device may be {names} or what else `aplay -L` lists; `--output file.wav` works without a card"

"""What espeak-ng calls a language that a person names as BCP 47 does."""

from __future__ import annotations

from typing import Final

_OTHER_NAMES: Final = {
    "zh": "cmn",
    "zh-hk": "yue",
    "zh-mo": "yue",
    "zh-hant-hk": "yue",
    "no": "nb",
    "nn": "nb",  # the nearest there is
    "iw": "he",
    "in": "id",
    "fil": "tl",
    "en-gb": "en-gb-x-rp",
    "en-au": "en-gb-x-rp",
    "en-ie": "en-gb-x-rp",
    "en-nz": "en-gb-x-rp",
    "es-mx": "es-419",
}
"""espeak-ng's own are the names of its files, and it takes no others here."""


def espeak_names(language: str) -> list[str]:
    """Give the names under which espeak-ng may have `language`, of "zh_CN", "de-AT" or "en-gb", the nearest first."""
    parts = language.lower().replace("_", "-").split("-")
    tags = ["-".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return list(dict.fromkeys([language, *(name for tag in tags for name in (tag, _OTHER_NAMES.get(tag)) if name)]))

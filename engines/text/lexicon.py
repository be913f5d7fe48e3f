"""How words and phrases are to be read that no rule gets right: names above all.

An entry is a table of a TOML file, or an object of JSON, with the same keys. A lexicon does not change: whoever has new
entries makes a new one, so that every thread sees a whole one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from engines.text.inline import TOKEN
from engines.text.ipa import clean_ipa
from engines.text.neighbours import Part, around, is_part
from engines.text.script import Reading

MOST_ENTRIES: Final = 10_000
"""Of one lexicon. They take 15 MB then, and finding them in a text takes no longer than in one of ten."""

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_ATOM: Final = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]")
"""By what entries are found: a word, a sign, or a character of a script that writes no spaces."""

_ANY_SPACE: Final = re.compile(r"(?:\\\s|\s)+")

_Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$", max_length=200)]


class Entry(BaseModel):
    """One word or phrase, and its reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    written: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$", min_length=1, max_length=100)]
    """The word or phrase, as it stands in texts."""
    spoken: _Line = ""
    """What to read in its place: other words, or a spelling that sounds right."""
    ipa: _Line = ""
    """Or its sound, in IPA."""
    language: Annotated[str, Field(pattern=r"^([A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*)?$", max_length=35)] = ""
    """Only in this language: `en` is of every English; left out: of all."""
    case: Literal["any", "exact"] = "any"
    """Whether capital letters matter."""
    part: Part | None = None
    """Only where it is this part of its sentence: `noun`, `verb`, `adjective` or `past` (English), `first`, `last`."""

    @field_validator("written")
    @classmethod
    def _has_something(cls, value: str) -> str:
        if not _ATOM.search(value) or TOKEN.search(value):
            raise ValueError("it holds nothing that could be found in a text")
        return value.strip()

    @model_validator(mode="after")
    def _has_one_reading(self) -> Entry:
        if bool(self.spoken.strip()) == bool(self.ipa):
            raise ValueError("give exactly one of spoken and ipa")
        if self.ipa and not clean_ipa(self.ipa):
            raise ValueError("its ipa holds no sound")
        return self

    def is_for(self, language: str) -> bool:
        """Tell whether it counts in a language."""
        wanted, spoken = self.language.lower(), language.lower()
        return not wanted or spoken == wanted or spoken.startswith(wanted + "-")

    @property
    def reading(self) -> Reading:
        """What is said in its place."""
        return Reading(self.written, ipa=clean_ipa(self.ipa), words=self.spoken.strip(), source="lexicon")


class _Finder:
    """An entry, made ready to be found."""

    def __init__(self, entry: Entry) -> None:
        first = _ATOM.search(entry.written)
        assert first is not None  # noqa: S101  an entry holds one
        self.entry = entry
        self.key = first[0].casefold()
        escaped = _ANY_SPACE.sub(r"\\s+", re.escape(entry.written))
        before = r"(?<!\w)" if _closed(entry.written[0]) else ""
        after = r"(?!\w)" if _closed(entry.written[-1]) else ""
        self._pattern = re.compile(before + escaped + after, re.IGNORECASE if entry.case == "any" else 0)
        self._reading = entry.reading
        self.rank = (-len(entry.written), entry.case != "exact", entry.part is None, not entry.language)

    def match(self, text: str, start: int) -> re.Match[str] | None:
        """Find it at this place."""
        match = self._pattern.match(text, start)
        if match is None or self.entry.part is None:
            return match
        return match if is_part(self.entry.part, around(text, match.start(), match.end())) else None

    def reading(self, written: str) -> Reading:
        """Give its reading, of a text in which it is written so."""
        reading = self._reading
        return Reading(written, ipa=reading.ipa, words=reading.words, source="lexicon")


def _closed(character: str) -> bool:
    """Tell whether a letter beside this one would make it another word."""
    return (character.isalnum() or character == "_") and re.match(rf"[{_CJK}]", character) is None


class Lexicon:
    """Entries, the first of those that are alike counting. Never changes."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        """ValueError where there are more than `MOST_ENTRIES`."""
        self.entries: Final = tuple(entries)
        if len(self.entries) > MOST_ENTRIES:
            raise ValueError(f"it has {len(self.entries)} entries, {MOST_ENTRIES} are allowed")
        self._finders: dict[str, list[_Finder]] = {}
        for finder in map(_Finder, self.entries):
            self._finders.setdefault(finder.key, []).append(finder)
        for finders in self._finders.values():
            finders.sort(key=lambda finder: finder.rank)

    def __len__(self) -> int:
        """Give how many entries there are."""
        return len(self.entries)

    @property
    def digest(self) -> str:
        """Tell lexica apart: another one has another digest. Empty for one without entries."""
        if not self.entries:
            return ""
        content = json.dumps([entry.model_dump(exclude_defaults=True) for entry in self.entries])
        return hashlib.sha256(content.encode()).hexdigest()

    def replaced(self, text: str, language: str, put: Callable[[Reading], str]) -> str:
        """Give `text` with what `put` gives for each entry's reading in place of its words.

        At one place the longest entry counts. Time grows with the text, not with the entries.
        """
        if not self._finders:
            return text
        parts: list[str] = []
        done = 0
        for atom in _ATOM.finditer(text):
            finders = self._finders.get(atom[0].casefold())
            if finders is None or atom.start() < done:
                continue
            found = _first(finders, text, atom.start(), done, language)
            if found is not None:
                finder, match = found
                parts += (text[done : match.start()], put(finder.reading(match[0])))
                done = match.end()
        return "".join((*parts, text[done:]))


def _first(
    finders: Sequence[_Finder], text: str, start: int, done: int, language: str
) -> tuple[_Finder, re.Match[str]] | None:
    for finder in finders:
        if finder.entry.is_for(language) and start >= done and (match := finder.match(text, start)) is not None:
            return finder, match
    return None

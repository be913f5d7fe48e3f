from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engines.text.lexicon import MOST_ENTRIES, Entry, Lexicon
from engines.text.lexicon_files import LexiconFolder
from engines.text.script import Reading


def read(text: str, *entries: dict[str, str], language: str = "en-us") -> str:
    lexicon = Lexicon(Entry.model_validate(entry) for entry in entries)
    return lexicon.replaced(text, language, lambda reading: f"[{reading.ipa or reading.words}]")


@pytest.mark.parametrize(
    ("written", "text", "expected"),
    [
        ("Ode", "Ode, ODE and ode's.", "[x], [x] and [x]'s."),
        ("Ode", "Model code", "Model code"),
        ("New York", "in new  york.", "in [x]."),
        ("New York", "New Yorker", "New Yorker"),
        ("C++", "in C++.", "in [x]."),
        (".NET", "the .NET way", "the [x] way"),
        ("AT&T", "AT&T's", "[x]'s"),
        ("→", "a→b", "a[x]b"),
        ("R2-D2", "R2-D2!", "[x]!"),
        ("東京", "私は東京へ", "私は[x]へ"),
        ("naïve", "NAÏVE", "[x]"),
    ],
)
def test_words_and_phrases_are_found_where_they_stand_alone(written: str, text: str, expected: str) -> None:
    assert read(text, {"written": written, "spoken": "x"}) == expected


def test_capitals_matter_where_an_entry_says_so() -> None:
    entry = {"written": "US", "spoken": "you ess", "case": "exact"}
    assert read("US tells us", entry) == "[you ess] tells us"


def test_an_entry_counts_in_its_language() -> None:
    entry = {"written": "Joe", "ipa": "dʒoʊ", "language": "en"}
    assert read("Joe", entry, language="en-gb-x-rp") == "[dʒoʊ]"
    assert read("Joe", entry, language="de") == "Joe"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("noun", "Record it. The [x]. I record."),
        ("verb", "[x] it. The record. I [x]."),
        ("first", "[x] it. The record. I record."),
        ("last", "Record it. The [x]. I [x]."),
    ],
)
def test_an_entry_counts_for_its_part_of_the_sentence(part: str, expected: str) -> None:
    assert read("Record it. The record. I record.", {"written": "record", "spoken": "x", "part": part}) == expected


def test_the_longest_entry_counts_then_the_first() -> None:
    entries = [{"written": w, "spoken": s} for w, s in (("a b", "1"), ("a b c", "2"), ("a b c", "3"), ("b", "4"))]
    assert read("a b c a b b", *entries) == "[2] [1] [4]"


def test_what_an_entry_makes_is_not_read_again() -> None:
    assert read("Sam", {"written": "Sam", "spoken": "Sam uel"}, {"written": "uel", "spoken": "x"}) == "[Sam uel]"


def test_ipa_is_taken_as_people_type_it() -> None:
    found: list[Reading] = []
    lexicon = Lexicon([Entry(written="Gig", ipa="/'gɪg:/")])
    lexicon.replaced("gig", "en-us", lambda reading: str(found.append(reading)))
    assert found == [Reading("gig", ipa="ˈɡɪɡː", source="lexicon")]


@pytest.mark.parametrize(
    "entry",
    [
        {"written": "a"},
        {"written": "a", "spoken": "b", "ipa": "b"},
        {"written": " ", "spoken": "b"},
        {"written": "\ue000", "spoken": "b"},
        {"written": "a", "ipa": "ˈː"},
        {"written": "a", "spoken": "b\n"},
        {"written": "a" * 101, "spoken": "b"},
        {"written": "a", "spoken": "b", "case": "upper"},
        {"written": "a", "spoken": "b", "colour": "red"},
        {"written": "a", "spoken": "b", "language": "no such thing"},
    ],
)
def test_what_is_no_entry_is_refused(entry: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Entry.model_validate(entry)


def test_a_lexicon_is_bounded_and_told_apart_from_others() -> None:
    entry = Entry(written="a", spoken="b")
    with pytest.raises(ValueError, match=str(MOST_ENTRIES)):
        Lexicon([entry] * (MOST_ENTRIES + 1))
    assert Lexicon([entry]).digest == Lexicon([entry]).digest != Lexicon([Entry(written="a", spoken="c")]).digest


def test_time_grows_with_neither_entries_nor_hostile_texts() -> None:
    lexicon = Lexicon(Entry(written=f"word{i} {i}", spoken="x") for i in range(MOST_ENTRIES))
    for text in ("word1 " * 700, "word1" * 800, " " * 4000, "a" * 4000, "東" * 4000, "'" * 4000):
        began = time.thread_time()
        assert lexicon.replaced(text, "en-us", lambda _: "x") == text
        assert time.thread_time() - began < 2, "a thousandth of that, usually"


@given(text=st.text(), entries=st.lists(st.text("ab .'+É", min_size=1, max_size=5), max_size=5))
def test_only_what_is_written_in_entries_changes(text: str, entries: list[str]) -> None:
    taken: list[str] = []
    lexicon = Lexicon(Entry(written=w, spoken="x") for w in entries if w.strip())

    def put(reading: Reading) -> str:
        taken.append(reading.written)
        return reading.written

    assert lexicon.replaced(text, "en-us", put) == text
    lower = {" ".join(w.split()).lower() for w in entries}
    assert all(" ".join(w.split()).lower() in lower for w in taken)


class TestFolder:
    @pytest.fixture
    def problems(self) -> list[str]:
        return []

    @pytest.fixture
    def folder(self, tmp_path: Path, problems: list[str]) -> LexiconFolder:
        return LexiconFolder(tmp_path, problems.append)

    def write(self, path: Path, content: str, at: int) -> None:
        path.write_text(content, encoding="utf-8")
        os.utime(path, ns=(at, at))

    def test_files_are_read_when_they_come_change_and_go(self, tmp_path: Path, folder: LexiconFolder) -> None:
        assert folder.entries() is None
        self.write(tmp_path / "b.toml", '[[entry]]\nwritten = "b"\nspoken = "bee"\n', 1)
        self.write(tmp_path / "a.toml", '[[entry]]\nwritten = "a"\nipa = "eɪ"\n', 1)
        (tmp_path / "notes.txt").write_text("x")
        assert [entry.written for entry in folder.entries() or ()] == ["a", "b"]
        assert folder.entries() is None
        self.write(tmp_path / "a.toml", '[[entry]]\nwritten = "c"\nspoken = "sea"\n', 2)
        assert [entry.written for entry in folder.entries() or ()] == ["c", "b"]
        (tmp_path / "b.toml").unlink()
        assert [entry.written for entry in folder.entries() or ()] == ["c"]

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("[[entry]\n", "line 1"),
            ('[[entry]]\nwritten = "a"\n', "entry number 1"),
            ('[[entries]]\nwritten = "a"\n', "entries"),
            ('[[entry]]\nwritten = "a"\nspoken = 3\n', "spoken"),
        ],
    )
    def test_a_file_with_a_mistake_leaves_all_as_it_was(
        self, tmp_path: Path, folder: LexiconFolder, problems: list[str], content: str, problem: str
    ) -> None:
        self.write(tmp_path / "a.toml", '[[entry]]\nwritten = "a"\nspoken = "ay"\n', 1)
        folder.entries()
        self.write(tmp_path / "a.toml", content, 2)
        assert [entry.written for entry in folder.entries() or ()] == ["a"]
        assert folder.entries() is None
        assert len(problems) == 1
        assert "a.toml" in problems[0]
        assert problem in problems[0]

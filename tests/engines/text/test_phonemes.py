from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from piper.phoneme_ids import DEFAULT_PHONEME_ID_MAP, phonemes_to_ids

from engines.text.phonemes import Clause, clean_text, phoneme_ids, sentences_of


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("one\0two\x07\x9fthree", "one two  three"),
        ("cafe\u0301", "caf\u00e9"),
        ("\ud83d\ude42 \ud83d", "\U0001f642 \ufffd"),
        ("List:\nApple\nPear", "List:\nApple.\nPear"),
        ("the door\nis open", "the door,\nis open"),
        ("the door\n\nis open", "the door.\nis open"),
        ("Stop.\r\n\r\nGo", "Stop.\nGo"),
        ("“Stop!”\nGo", "“Stop!”\nGo"),
        ("(no)\u2028Go", "(no).\nGo"),
        ("wait... go", "wait, go"),
        ("Wait…", "Wait."),
        ("… and\n…", "and"),
        ("really...? yes,… no", "really? yes, no"),
        (" \t\n", ""),
    ],
)
def test_text_is_cleaned(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


@given(st.text(st.characters(codec=None), max_size=60))
def test_cleaned_text_holds_nothing_that_espeak_stumbles_over(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f…]|\n\n", cleaned)
    assert unicodedata.is_normalized("NFC", cleaned)
    letters = [c for c in unicodedata.normalize("NFC", text) if c.isalpha()]
    assert [c for c in cleaned if c.isalpha()] == letters


def test_clauses_become_sentences_with_their_marks() -> None:
    clauses = [
        Clause("wˈʌn", ",", ends_sentence=False),
        Clause("tˈuː", "", ends_sentence=False),
        Clause("ɑ̃", "?", ends_sentence=True),
        Clause("fˈɔː", "", ends_sentence=False),
    ]
    first, second = sentences_of(clauses, max_phonemes=100)
    assert "".join(first) == "wˈʌn, tˈuː ɑ̃?"
    assert "".join(second) == "fˈɔː"


def test_phonemes_are_single_code_points() -> None:
    (sentence,) = sentences_of([Clause("\u00e7\u00e3", ".", ends_sentence=True)], max_phonemes=100)
    assert sentence == ["c", "\u0327", "a", "\u0303", "."]


@pytest.mark.parametrize(
    ("clauses", "most", "expected"),
    [
        (["ab cd,", "ef gh,", "ij"], 14, ["ab cd, ef gh, ", "ij"]),
        (["ab cd,", "ef gh,", "ij"], 13, ["ab cd, ", "ef gh, ij"]),
        (["ab cd ef"], 7, ["ab cd ", "ef"]),
        (["abcdef"], 4, ["abcd", "ef"]),
        (["abcd."], 4, ["abcd"]),
    ],
)
def test_a_long_sentence_is_cut_at_the_best_place(clauses: list[str], most: int, expected: list[str]) -> None:
    parts = [Clause(c.rstrip(",."), c[len(c.rstrip(",.")) :], ends_sentence=False) for c in clauses]
    assert ["".join(piece) for piece in sentences_of(parts, max_phonemes=most)] == expected


clause = st.builds(Clause, st.text("aˈː ɑ̃z"), st.sampled_from(["", *".,:;?!"]), ends_sentence=st.booleans())


@given(clauses=st.lists(clause), most=st.integers(1, 12))
def test_cutting_loses_no_phoneme(clauses: list[Clause], most: int) -> None:
    pieces = sentences_of(clauses, max_phonemes=most)
    spoken = [c for clause in clauses for c in unicodedata.normalize("NFD", clause.phonemes) if c.isalpha()]
    assert [c for piece in pieces for c in piece if c.isalpha()] == spoken
    assert all(len(piece) <= most for piece in pieces)
    assert all(any(c.isalpha() for c in piece) for piece in pieces)


def test_a_sentence_of_marks_vanishes() -> None:
    clauses = [Clause("", ".", ends_sentence=True), Clause(" ", ",", ends_sentence=False), Clause("", "", True)]  # noqa: FBT003
    assert sentences_of(clauses, max_phonemes=100) == []


def test_a_limit_below_one_phoneme_is_refused() -> None:
    with pytest.raises(ValueError, match="0"):
        sentences_of([], max_phonemes=0)


def test_ids_are_those_of_piper() -> None:
    sentence = list("həlˈoʊ, wˈɜːld.")
    assert phoneme_ids(sentence, DEFAULT_PHONEME_ID_MAP) == (phonemes_to_ids(sentence), [])


def test_a_phoneme_of_several_ids_keeps_them_together() -> None:
    assert phoneme_ids(["a"], {"^": [1], "_": [0], "$": [2], "a": [7, 8]}) == ([1, 0, 7, 8, 0, 2], [])


def test_an_unknown_phoneme_is_decomposed_else_dropped_and_named_once() -> None:
    id_map = {"^": [1], "_": [0], "$": [2], "a": [7], "\u0303": [8]}
    assert phoneme_ids(["\u00e3", "q", "a", "q", "\u0161"], id_map) == (
        [1, 0, 7, 0, 8, 0, 7, 0, 2],
        ["q", "s", "\u030c"],
    )

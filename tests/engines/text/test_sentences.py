# ruff: noqa: RUF001  the marks of many scripts
from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.text.sentences import blocks, complete

# Words of few letters with every kind of cut between them, so that each kind is often the best that fits.
pages = st.lists(
    st.sampled_from(
        ["a", "word", "ünï", "。", "，", ". ", '."', "?", "…", ", ", ";", " ", "\t", "\n", "\n\n", "\r\n \r\n"]
    )
).map("".join)


@given(text=st.one_of(pages, st.text()), max_chars=st.integers(1, 40))
def test_everything_but_space_at_cuts_is_in_the_blocks_in_order(text: str, max_chars: int) -> None:
    position = 0
    for block in blocks(text, max_chars=max_chars):
        assert block == block.strip() != ""
        assert len(block) <= max_chars
        found = text.index(block, position)
        assert not text[position:found].strip()
        position = found + len(block)
    assert not text[position:].strip()


@pytest.mark.parametrize(
    ("text", "max_chars", "expected"),
    [
        ("  One. Two.\n\nThree. ", 17, ["One. Two.\n\nThree."]),
        ("One. Two.\n\nThree. Four.", 17, ["One. Two.", "Three. Four."]),
        ("One. Two.\r\n \r\nThree. Four.", 17, ["One. Two.", "Three. Four."]),
        ("One, two. Three, four five", 20, ["One, two.", "Three, four five"]),
        ("He said “no.” She left soon", 20, ["He said “no.”", "She left soon"]),
        ("One two\nthree, four", 15, ["One two", "three, four"]),
        ("好。早，安晚安晚安", 6, ["好。", "早，", "安晚安晚安"]),
        ("Version 1.2.3, as asked", 15, ["Version 1.2.3,", "as asked"]),
        ("one two three", 7, ["one two", "three"]),
        ("Go, now. Then", 8, ["Go, now.", "Then"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("One.", 4, ["One."]),
        ("One. Two", 4, ["One.", "Two"]),
        (" \n\t ", 4, []),
        ("", 4, []),
    ],
)
def test_the_best_cut_that_fits_is_taken(text: str, max_chars: int, expected: list[str]) -> None:
    assert list(blocks(text, max_chars=max_chars)) == expected


def test_the_first_block_is_cut_without_reading_the_rest() -> None:
    text = "word " * 2_000_000
    first = next(blocks(text, max_chars=200))
    assert re.fullmatch(r"(word ){39}word", first)


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="0"):
        list(blocks("a", max_chars=0))


@given(parts=st.lists(st.one_of(pages, st.text(max_size=30)), max_size=6), least_chars=st.integers(1, 30))
def test_a_text_that_grows_is_divided_without_loss(parts: list[str], least_chars: int) -> None:
    rest = ready = ""
    for part in parts:
        first, rest = complete(rest + part, least_chars=least_chars)
        assert not first or len(first) >= least_chars
        ready += first
    assert ready + rest == "".join(parts)


@pytest.mark.parametrize("run", [".", "…", '."', "!? ", "A. "])
def test_a_line_of_marks_takes_no_longer_than_another(run: str) -> None:
    """With the square of its length it would be half a minute and more."""
    text = (run * 40_000)[:40_000]
    began = time.thread_time()
    ready, rest = complete(text, least_chars=10)
    assert ready + rest == text
    assert "".join("".join(blocks(text, max_chars=600)).split()) == "".join(text.split())
    assert time.thread_time() - began < 10


@pytest.mark.parametrize(
    ("text", "ready"),
    [
        ("The light is on. And", "The light is on."),
        ("The light is on.", ""),  # "on.5" may follow
        ("The light is on. ", "The light is on."),
        ("Yes. The light", ""),  # too short to be worth it
        ("He said “it is on.” Then", "He said “it is on.”"),
        ("One sentence. Another one. A third", "One sentence. Another one."),
        ("It is 20.5 degrees outside", ""),
        ("A line of a poem\nand the next", "A line of a poem"),
        ("灯光已经打开了现在可以进来。然后", "灯光已经打开了现在可以进来。"),
    ],
)
def test_what_is_complete_is_known_once_something_follows(text: str, ready: str) -> None:
    assert complete(text, least_chars=10) == (ready, text[len(ready) :])


@pytest.mark.parametrize(
    ("text", "ready"),
    [
        ("We saw Dr. Smith. He", "We saw Dr. Smith."),
        ("It was written by J. R. Kim. He", "It was written by J. R. Kim."),
        ("At 9 a.m. we left. Then", "At 9 a.m. we left."),
        ("It opens at 9 a.m. Be there", "It opens at 9 a.m."),
        ("Es gibt z.B. diese hier. Und", "Es gibt z.B. diese hier."),
        ("In the U.S. this is so. And", "In the U.S. this is so."),
        ("He took plan B with no. 5 in hand. Then", "He took plan B with no. 5 in hand."),
        ("That was I. Then", "That was I."),
        ("It is version 1.2.3 now. And", "It is version 1.2.3 now."),
    ],
)
def test_a_full_stop_within_a_sentence_ends_none(text: str, ready: str) -> None:
    assert complete(text, least_chars=10) == (ready, text[len(ready) :])
    assert next(blocks(text, max_chars=len(text) - 1)) == ready

"""Texts through all steps, with the real espeak-ng."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.text.explain import explain
from engines.text.lexicon import Entry, Lexicon
from engines.text.phonemes import Phonemizer
from engines.text.reading import Front, Reader
from engines.text.script import Script, plain
from engines.text.ssml import parse

LEXICON = Lexicon(
    [
        Entry(written="Zyra", ipa="zˈaɪɹə"),
        Entry(written="Ode", spoken="Oddie"),
        Entry(written="kWh", spoken="units of energy"),
    ]
)


@pytest.fixture(scope="module")
def reader(phonemizer: Phonemizer) -> Reader:
    return Reader(phonemizer, Front(lexicon=lambda: LEXICON))


Said = Callable[..., list[str]]


@pytest.fixture(scope="module")
def warnings() -> list[str]:
    return []


@pytest.fixture(scope="module")
def said(reader: Reader, warnings: list[str]) -> Iterator[Said]:
    def run(text: str | Script, language: str = "en-us") -> list[str]:
        warnings.clear()
        script = plain(text) if isinstance(text, str) else text
        return [
            "".join(sentence.phonemes).strip()
            for passage in script.passages
            for sentences, _ in reader.read(passage, language, "espeak", warnings.append)
            for sentence in sentences
            if sentence.phonemes
        ]

    return run


def ssml(inside: str) -> Script:
    return parse(f"<speak>{inside}</speak>")


class TestIpaInASentence:
    def test_nothing_around_it_changes(self, said: Said) -> None:
        whole = said("I say, in the end, melons are best of all!")
        spliced = said(ssml('I say, in the end, <phoneme ph="tˈɛst">melons</phoneme> are best of all!'))
        assert [s.replace("tˈɛst", "X") for s in spliced] == [s.replace("mˈɛlənz", "X") for s in whole]

    @pytest.mark.parametrize("mark", [".", "?", "!", ",", ":", ";"])
    @pytest.mark.parametrize("language", ["en-us", "en-gb-x-rp", "de", "fr", "es", "it", "pt-br", "nl", "pl"])
    def test_the_marks_beside_it_stay(self, said: Said, language: str, mark: str) -> None:
        sentences = said(ssml(f'Robot <phoneme ph="tˈɛst">x</phoneme>{mark} Robot'), language)
        assert f"tˈɛst{mark}" in " ".join(sentences)
        assert len(sentences) == (2 if mark in ".?!" else 1)

    def test_it_begins_a_sentence_like_any_word(self, said: Said) -> None:
        assert said("Stop. Zyra is here.") == ["stˈɑːp.", "zˈaɪɹə ɪz hˈɪɹ."]

    def test_the_article_before_it_knows_its_sound(self, said: Said) -> None:
        assert said(ssml('the <phoneme ph="ˈoʊdi">x</phoneme>'))[0].startswith("ðɪ")
        assert said(ssml('the <phoneme ph="tˈoʊdi">x</phoneme>'))[0].startswith("ðə")

    @pytest.mark.parametrize(("written", "said_as"), [("bɝd", "bɜːd"), ("bɝːd", "bɜːd"), ("ˈbɛt̬ɚ", "ˈbɛɾɚ")])
    def test_signs_of_american_dictionaries_keep_their_sound(self, said: Said, written: str, said_as: str) -> None:
        assert said(ssml(f'<phoneme ph="{written}">x</phoneme>')) == [said_as]

    def test_its_ending_is_spoken(self, said: Said) -> None:
        assert said("Zyra's arm") == ["zˈaɪɹəz ˈɑːɹm"]
        assert said(ssml('<phoneme ph="tˈɛst">x</phoneme>\'s')) == ["tˈɛsts"]
        assert said(ssml('<phoneme ph="tˈɛs">x</phoneme>\'s'))[0] in {"tˈɛsᵻz", "tˈɛsɪz"}

    def test_a_text_that_looks_like_our_made_up_word_loses_nothing(self, said: Said) -> None:
        (alone,) = said("nulimen")
        assert said("Nulimen and Zyra and nulimen") == [f"{alone} ænd zˈaɪɹə ænd {alone}"]


class TestWhatIsTold:
    @pytest.mark.parametrize(
        ("inside", "same_as"),
        [
            ('Go 5 <sub alias="kilometres">km</sub> now.', "Go five kilometres now."),
            ('Call <say-as interpret-as="digits">112</say-as> now.', "Call one one two now."),
            ('The <say-as interpret-as="ordinal">2</say-as> door.', "The second door."),
            ('It is <say-as interpret-as="cardinal">21</say-as>.', "It is twenty one."),
        ],
    )
    def test_words_in_place_of_others(self, said: Said, inside: str, same_as: str) -> None:
        assert said(ssml(inside)) == said(same_as)

    def test_a_kind_that_nobody_knows_is_told_and_spoken(self, said: Said, warnings: list[str]) -> None:
        red = said("red")
        assert said(ssml('<say-as interpret-as="colour">red</say-as>')) == red
        assert "colour" in warnings[0]

    def test_the_lexicon_counts_before_and_after_written_forms_become_words(self, said: Said) -> None:
        assert said("3 kWh for Ode.") == said("three units of energy for Oddie.")


class TestMarks:
    def marks(self, reader: Reader, inside: str) -> list[tuple[int, str]]:
        (passage,) = ssml(inside).passages
        return [
            mark
            for sentences, _ in reader.read(passage, "en-us", "espeak", print)
            for s in sentences
            for mark in s.marks
        ]

    def test_a_mark_is_before_its_word(self, reader: Reader) -> None:
        inside = '<mark name="a"/>One of the <mark name="b"/>best robots, <mark name="c"/>isn\'t it?<mark name="d"/>'
        # "of the" is one word to espeak-ng.
        assert self.marks(reader, inside) == [(0, "a"), (2, "b"), (4, "c"), (6, "d")]

    def test_a_mark_in_a_later_sentence_counts_from_there(self, reader: Reader) -> None:
        assert self.marks(reader, 'Stop now. Then <mark name="a"/>go.') == [(1, "a")]

    def test_a_mark_without_words_is_not_lost(self, reader: Reader) -> None:
        assert self.marks(reader, '<mark name="a"/>') == [(0, "a")]


class TestHeteronyms:
    @pytest.mark.parametrize(
        ("text", "sound"),
        [
            ("I read it yesterday.", "ɹˈɛd"),
            ("I have read it.", "ɹˈɛd"),
            ("Please read it.", "ɹˈiːd"),
            ("I read it every day.", "ɹˈiːd"),
            ("Wind the cable.", "wˈaɪnd"),
            ("The wind is strong.", "wˈɪnd"),
            ("The feed is live.", "lˈaɪv"),
            ("I live here.", "lˈɪv"),
            ("Close the door.", "klˈoʊz"),
            ("The doors close in ten seconds.", "klˈoʊz"),
            ("Stand close to me.", "klˈoʊs"),
            ("Use the lift.", "jˈuːz"),
            ("For your use.", "jˈuːs"),
            ("Excuse me!", "ɛkskjˈuːz"),
            ("A lead pipe.", "lˈɛd"),
            ("Lead the way.", "lˈiːd"),
            ("Tear the paper.", "tˈɛɹ"),
            ("A tear in her eye.", "tˈɪɹ"),
            ("Take a bow.", "bˈaʊ"),
            ("A bow and arrow.", "bˈoʊ"),
            ("Record the video.", "ɹᵻkˈɔːɹd"),
            ("A new record.", "ɹˈɛkɚd"),
            ("They object to it.", "ɑːbdʒˈɛkt"),
            ("An object.", "ˈɑːbdʒɛkt"),
            ("Present the card.", "pɹɪzˈɛnt"),
            ("A present.", "pɹˈɛzənt"),
            ("A minute detail.", "maɪnˈuːt"),
            ("One minute.", "mˈɪnɪt"),
            ("Do not desert the ship.", "dᵻzˈɜːt"),
            ("The desert.", "dˈɛzɚt"),
            ("Separate the parts.", "sˈɛpɚɹˌeɪt"),
            ("A separate room.", "sˈɛpɹət"),
        ],
    )
    def test_neighbours_tell_the_sound(self, said: Said, text: str, sound: str) -> None:
        assert sound in " ".join(said(text)).replace(".", " ").replace("!", " ").split()

    def test_other_languages_are_left_alone(self, said: Said, phonemizer: Phonemizer) -> None:
        (clause,) = phonemizer.phonemize("read close use", "de")
        assert said("read close use", "de") == [clause.phonemes]


@pytest.mark.parametrize(
    ("text", "same_as", "warned"),
    [
        ("שלום robot", "robot", "Hebrew"),
        ("בְּרֵאשִׁית robot", "robot", "Hebrew"),
        ("你好 robot", "robot", "Chinese"),
        ("привет robot", "robot", "Cyrillic"),
        ("κόσμος robot", "robot", "Greek"),
        ("angle \u03b1", "angle alpha", ""),
        ("١٢٣ robots", "one hundred twenty three robots", ""),
        ("१२ robots", "twelve robots", ""),
        ("ro\u200bbot", "robot", ""),
        ("\u202erobot\u202c", "robot", ""),
        ("\ue000 robot", "robot", ""),
    ],
)
def test_scripts_that_the_voice_does_not_know(
    said: Said, warnings: list[str], text: str, same_as: str, warned: str
) -> None:
    told = said(text), list(warnings)
    assert told[0] == said(same_as)
    assert any(warned in warning for warning in told[1]) if warned else told[1] == []


def test_a_voice_of_another_script_knows_its_own(said: Said, warnings: list[str]) -> None:
    assert said("привет", "ru")
    assert warnings == []


@pytest.mark.parametrize(
    "text", ["", "   ", "...", "🙂", "😂😂😂", "\u200b", "\ud800", "?!", "שלום", "\ue000", "()", "\0"]
)
def test_nothing_to_say(said: Said, text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize("text", ["a", "x", "Ä", "7", "é"])
def test_one_character_is_said(said: Said, text: str) -> None:
    assert len(said(text)) == 1


@pytest.mark.parametrize("text", ["wait... go", "wait… go", "List:\nApple\nPear", "a &lt; b"])
def test_signs_that_part_are_heard(said: Said, text: str) -> None:
    assert any(mark in " ".join(said(text)) for mark in ",.:") or "lˈɛs" in said(text)[0]


@pytest.mark.parametrize(
    "text",
    ["s'" * 68, "s'" * 5000, "a" * 2000, "ab1" * 2000, "é" * 4000, "你" * 2000, "<" * 4000, "&" * 4000, "word " * 2000],
)
def test_hostile_texts_take_bounded_time_and_harm_nobody(said: Said, text: str) -> None:
    began = time.perf_counter()
    sentences = said(text)
    assert time.perf_counter() - began < 60
    assert all(len(sentence) <= 600 for sentence in sentences)
    assert said("Yes.") == ["jˈɛs."]


@settings(max_examples=150)
@given(text=st.text(max_size=80), language=st.sampled_from(["en-us", "de", "ru"]))
def test_any_text_is_read(said: Said, text: str, language: str) -> None:
    for sentence in said(text, language):
        assert not set(sentence) & set("()\0\n\ue000")


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("wait... go", "wait, go"),
        ("wait\u2026 go", "wait, go"),
        ("Ready? Go now.", "Ready?\nGo now."),
        ("List:\nApple\nPear", "List:\nApple.\nPear"),
        ("**Stop** now", "Stop now"),
        ("# Alert", "Alert"),
        ("\u2705 Done", "Done"),
        ("\U0001f469\u200d\U0001f52c", ""),
        ("<b>Go</b> &amp; stop", "Go and stop"),
        ("don\u2019t go", "don't go"),
        ("don\u02bct go", "don't go"),
        ("don`t go", "don't go"),
        ("\u201cgo\u201d", '"go"'),
        ("one\0two", "one two"),
    ],
)
def test_what_users_reported(said: Said, text: str, same_as: str) -> None:
    assert said(text) == said(same_as)


@pytest.mark.parametrize("text", ["a < b now", "x &ndash; why", "say 5 > 3 now", "a <b now", "if a<b then now"])
def test_an_open_bracket_swallows_nothing(said: Said, text: str) -> None:
    assert any(word in "".join(said(text)) for word in ("nˈaʊ", "wˈaɪ"))


def test_language_switches_are_never_spoken(said: Said) -> None:
    (sentence,) = said("le parking est en streaming", "fr")
    assert not set(sentence) & set("()")
    assert "stɹ" in sentence


def test_an_explanation_says_who_told_each_sound(reader: Reader) -> None:
    script = parse('<speak>Use the Zyra at <phoneme ph="tˈɛst">5</phoneme>, one of 3 robots.</speak>')
    explained = explain(reader, script, "en-us")
    words = {word.word: (word.phonemes, word.source) for word in explained.words}
    assert words["Use"] == ("jˈuːz", "heteronym")
    assert words["Zyra"] == ("zˈaɪɹə", "lexicon")
    assert words["5"] == ("tˈɛst", "ssml")
    assert words["three"] == ("θɹˈiː", "espeak")
    assert explained.steps[0].step == "text"
    assert {"lexicon", "heteronyms"} <= {step.step for step in explained.steps}

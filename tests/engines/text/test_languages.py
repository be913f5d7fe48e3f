from __future__ import annotations

import time

import pytest

from engines.text.languages import by_language, guess
from engines.text.script import Mark, Passage, Script, plain
from engines.text.ssml import parse

INSTALLED = ["en-us", "de", "fr", "es", "it", "ru", "el"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Welcome to the museum.", "en-us"),
        ("Please open the door", "en-us"),
        ("Willkommen im Museum.", "de"),
        ("Bitte schließen Sie die Tür.", "de"),
        ("Der Download ist fertig", "de"),
        ("Le musée ferme dans dix minutes.", "fr"),
        ("le parking est en streaming", "fr"),
        ("El museo cierra en diez minutos.", "es"),
        ("Il museo chiude tra dieci minuti.", "it"),
        ("Привет", "ru"),
        ("Καλημέρα", "el"),
        ("The German word for hello is Hallo.", "en-us"),
        ("Die Hard is a movie.", None),
        ("Download complete", None),
        ("42", None),
        ("", None),
        ("你好", None),
    ],
)
def test_clear_sentences_are_told_apart_and_others_are_not(text: str, language: str | None) -> None:
    assert guess(text, INSTALLED) == language


def test_a_text_in_several_languages_has_several_voices() -> None:
    script = by_language(plain("Welcome to the museum. Willkommen im Museum. OK. Bienvenue!"), "en-us", INSTALLED)
    assert [(p.language, p.text) for p in script.passages] == [
        (None, "Welcome to the museum."),
        ("de", " Willkommen im Museum. OK."),
        ("fr", " Bienvenue!"),
    ]


def test_foreign_words_stay_with_the_voice_of_their_sentence() -> None:
    script = by_language(plain("Please say Guten Tag to the robot of the house."), "en-us", INSTALLED)
    assert [p.language for p in script.passages] == [None]


@pytest.mark.parametrize("installed", [[], ["en-us"], ["en-us", "en-gb-x-rp"]])
def test_voices_of_one_language_leave_no_choice(installed: list[str]) -> None:
    script = plain("Willkommen im Museum.")
    assert by_language(script, "en-us", installed) is script


def test_what_is_declared_is_not_guessed() -> None:
    script = parse('<speak>The door is <lang xml:lang="es">bitte nicht die Tür</lang><break/></speak>')
    found = by_language(script, "en-us", INSTALLED)
    assert [(p.language, p.pause_s) for p in found.passages] == [(None, 0), ("es", 0.5)]


def test_marks_and_pauses_stay_where_they_are() -> None:
    passage = Passage(("Das ist ", Mark("m"), "nicht gut."), pause_s=1.0)
    (found,) = by_language(Script((passage,)), "en-us", INSTALLED).passages
    assert (found.spans, found.pause_s, found.language) == (passage.spans, 1.0, "de")


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "the a " * 15_000, ". " * 50_000, "." * 100_000, "\n" * 100_000, '."' * 50_000]
)
def test_no_text_takes_long_or_loses_a_character(text: str) -> None:
    began = time.perf_counter()
    script = by_language(plain(text), "en-us", INSTALLED)
    assert time.perf_counter() - began < 30
    assert "".join(p.text for p in script.passages) == text

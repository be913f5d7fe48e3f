"""Which voice speaks, where several are installed: tiny ones of three languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from simulators import tiny_voice
from simulators.casts import KINDS, voices_of

from engines import importer, piper
from engines.backends import Wanted
from engines.casting import Voices, Wish, direct
from engines.pack_store import PackStore
from engines.shelf import Preferences
from engines.text.script import Script, plain
from engines.text.ssml import parse

PREFERRED = Preferences(voice="english", engine=Wanted(backend="ort", precision="fp32", threads=1))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PackStore:
    store = PackStore(tmp_path_factory.mktemp("packs"))
    for name, language in (("english", "en-us"), ("deutsch", "de"), ("british", "en-gb-x-rp")):
        model = tiny_voice.write(tmp_path_factory.mktemp(name), name, language=language)
        importer.import_voice(piper.find(str(model)), store, name=name)
    return store


@pytest.fixture(scope="module", params=KINDS)
def voices(request: pytest.FixtureRequest, store: PackStore) -> Iterator[Voices]:
    with voices_of(request.param, store, PREFERRED) as voices:
        yield voices


def cast(voices: Voices, script: Script) -> tuple[list[str], list[str]]:
    """Give who says each passage, and the warnings."""
    warnings: list[str] = []
    script, casting = direct(script, Wish(gain=0.5, rate=2.0), voices, warnings.append)
    said = [casting(passage) for passage in script.passages]
    assert {(delivery.gain, delivery.length_scale) for _, delivery in said} <= {(0.5, 0.5)}
    return [voice.info.name for voice, _ in said], warnings


@pytest.mark.parametrize(
    ("inside", "names"),
    [
        ("Hello.", ["english"]),
        ('<voice name="deutsch">Hello.</voice> you', ["deutsch", "english"]),
        ('<lang xml:lang="de-AT">Servus</lang>', ["deutsch"]),
        ('One <lang xml:lang="de">zwei</lang> three', ["english", "deutsch", "english"]),
        ('<lang xml:lang="en-GB-x-rp">Hello</lang> you', ["british", "english"]),
        ('<lang xml:lang="en-au">Hello</lang> you', ["english", "english"]),
    ],
)
def test_ssml_chooses_voices(voices: Voices, inside: str, names: list[str]) -> None:
    found, warnings = cast(voices, parse(f"<speak>{inside}</speak>"))
    assert (found, warnings) == (names, [])


@pytest.mark.parametrize(
    ("inside", "told"), [('<voice name="nobody">a</voice> b', "nobody"), ('<lang xml:lang="fr">a</lang> b', "fr")]
)
def test_who_is_not_there_is_told_and_spoken_for(voices: Voices, inside: str, told: str) -> None:
    names, (warning,) = cast(voices, parse(f"<speak>{inside}</speak>"))
    assert names == ["english", "english"]
    assert told in warning


def test_a_sentence_has_the_voice_of_its_language(voices: Voices) -> None:
    assert cast(voices, plain("Willkommen im Museum."))[0] == ["deutsch"]
    assert cast(voices, plain("Welcome to the museum. Bitte nicht die Bilder anfassen."))[0] == ["english", "deutsch"]
    assert cast(voices, plain("OK."))[0] == ["english"]


def test_languages_are_those_of_the_voices_that_are_there(store: PackStore, tmp_path: Path) -> None:
    assert store.languages() == ("de", "en-gb-x-rp", "en-us")
    empty = PackStore(tmp_path)
    assert empty.languages() == ()
    (tmp_path / "late").symlink_to((store.folder / "deutsch").resolve())
    assert empty.languages() == ("de",)
    (tmp_path / "late").unlink()
    assert empty.languages() == ()

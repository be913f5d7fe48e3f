"""Kokoro's languages: a pack and a default voice each, found by declaration and by what a sentence is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from simulators import tiny_kokoro

from engines.backends import Wanted
from engines.casting import Casting, Wish, direct
from engines.errors import VoiceError
from engines.kokoro_import import KokoroSource, import_kokoro
from engines.pack_store import PackStore
from engines.shelf import Preferences, VoiceShelf
from engines.text.script import Script, plain
from engines.text.ssml import parse

NAMES = [
    "af_heart",
    "bf_emma",
    "ef_dora",
    "ff_siwis",
    "hf_alpha",
    "if_sara",
    "pf_dora",
    "am_adam",
    "jf_alpha",
    "zf_xia",
]
STYLES = {name: tiny_kokoro.style(seed) for seed, name in enumerate(NAMES)}
ENGINE = Wanted(backend="ort", precision="int8", threads=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PackStore:
    store = PackStore(tmp_path_factory.mktemp("packs"))
    source = KokoroSource(tiny_kokoro.model(), tiny_kokoro.VOCABULARY, STYLES, {})
    import_kokoro(source, store, [name for name in STYLES if name[0] not in "jz"])
    return store


@pytest.fixture(scope="module")
def voices(store: PackStore) -> Iterator[VoiceShelf]:
    preferred = Preferences(voice="kokoro-en-us", engine=ENGINE)
    with closing(VoiceShelf(store, preferred)) as shelf:
        yield shelf


def directed(voices: VoiceShelf, script: Script, language: str | None = None) -> tuple[Script, Casting]:
    return direct(script, Wish(language=language), voices, pytest.fail)


@pytest.mark.parametrize(
    ("language", "pack", "speaker"),
    [
        ("en-us", "kokoro-en-us", "af_heart"),
        ("en", "kokoro-en-us", "af_heart"),
        ("en-gb", "kokoro-en-gb", "bf_emma"),
        ("es", "kokoro-es", "ef_dora"),
        ("es-mx", "kokoro-es", "ef_dora"),
        ("fr", "kokoro-fr", "ff_siwis"),
        ("fr-ca", "kokoro-fr", "ff_siwis"),
        ("hi", "kokoro-hi", "hf_alpha"),
        ("it", "kokoro-it", "if_sara"),
        ("pt", "kokoro-pt-br", "pf_dora"),
        ("pt-br", "kokoro-pt-br", "pf_dora"),
    ],
)
def test_a_declared_language_has_its_voice(language: str, pack: str, speaker: str, voices: VoiceShelf) -> None:
    _, casting = directed(voices, plain("1, 2."), language)
    assert casting.own.info.name == pack
    assert casting.delivery.speaker == casting.own.info.speaker_names[speaker]
    script, casting = directed(voices, parse(f'<speak>So: <lang xml:lang="{language}">1, 2.</lang></speak>'))
    voice, delivery = casting(script.passages[1])
    assert (voice.info.name, delivery.speaker) == (pack, voice.info.speaker_names[speaker])


@pytest.mark.parametrize(
    ("text", "pack"),
    [
        ("The lift is closed today, please take the stairs.", "kokoro-en-us"),
        ("El ascensor está cerrado hoy; por favor, use las escaleras.", "kokoro-es"),
        ("L'ascenseur est fermé aujourd'hui, veuillez prendre l'escalier.", "kokoro-fr"),
        ("आज लिफ्ट बंद है, कृपया सीढ़ियों का प्रयोग करें।", "kokoro-hi"),
        ("L'ascensore è chiuso oggi: per favore usate le scale.", "kokoro-it"),
        ("O elevador está fechado hoje; por favor, use as escadas.", "kokoro-pt-br"),
    ],
)
def test_a_sentence_goes_to_the_voice_of_its_language(text: str, pack: str, voices: VoiceShelf) -> None:
    _, casting = directed(voices, plain(text))
    assert casting.own.info.name == pack
    script, casting = directed(voices, plain(f"Please listen to this. {text}"))
    assert casting(script.passages[-1])[0].info.name == pack


@pytest.mark.parametrize("language", ["ja", "zh", "cmn"])
def test_what_no_voice_speaks_is_refused_with_a_reason(language: str, voices: VoiceShelf) -> None:
    with pytest.raises(VoiceError, match=f"{language} is spoken by no voice.*languages: en-gb-x-rp, en-us, es"):
        directed(voices, plain("1, 2."), language)


@pytest.mark.parametrize(("style", "language"), [("jf_alpha", "Japanese"), ("zf_xia", "Chinese")])
def test_nor_can_it_be_added(style: str, language: str, tmp_path: Path) -> None:
    source = KokoroSource(tiny_kokoro.model(), tiny_kokoro.VOCABULARY, STYLES, {})
    with pytest.raises(VoiceError, match=f"{style} is {language}, which espeak-ng has no phonemes of"):
        import_kokoro(source, PackStore(tmp_path), ["af_heart", style])
    assert PackStore(tmp_path).names() == []


def test_the_owner_says_who_comes_first_in_a_language(store: PackStore, tmp_path: Path) -> None:
    both = PackStore(tmp_path)
    for name in store.names():
        (tmp_path / name).symlink_to((store.folder / name).resolve())
    pack = store.open("kokoro-es")
    for name in ("a-es", "z-es"):
        info = pack.info.model_copy(update={"name": name})
        both.put(name, info, {file: pack.folder / file for file in pack.info.files})  # type: ignore[call-overload]
    preferred = Preferences(voice="kokoro-en-us", engine=ENGINE)
    for names, found in (((), "a-es"), (("kokoro-fr", "z-es", "kokoro-es"), "z-es"), (("nobody",), "a-es")):
        with closing(VoiceShelf(both, replace(preferred, for_languages=names))) as shelf:
            assert directed(shelf, plain("1, 2."), "es")[1].own.info.name == found
            assert directed(shelf, plain("1, 2."))[1].own.info.name == "kokoro-en-us"
    with closing(VoiceShelf(both, replace(preferred, voice="kokoro-es", for_languages=("z-es",)))) as shelf:
        assert directed(shelf, plain("1, 2."), "es")[1].own.info.name == "kokoro-es", "the usual voice is first"

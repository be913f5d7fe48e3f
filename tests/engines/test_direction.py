"""Who speaks in which style, where commands and SSML ask for one: tiny voices of two families."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simulators import tiny_kokoro, tiny_voice
from simulators.casts import KINDS, voices_of

from engines import importer, piper
from engines.backends import Wanted
from engines.blends import Mix
from engines.casting import Voices, Wish, direct
from engines.errors import SpeakerError, SpeechError, SsmlError, StyleError, VoiceError
from engines.kokoro_import import KokoroSource, import_kokoro
from engines.pack_store import PackStore
from engines.shelf import Preferences
from engines.styles import read_definitions
from engines.text.gaps import gaps
from engines.text.script import Script, plain
from engines.text.ssml import parse
from engines.vits import Delivery

ENGINE = Wanted(backend="ort", precision="fp32", threads=1)
STYLES = read_definitions(
    [
        "calm = rate=0.5 gain=0.5 sentence_gap_ms=200 paragraph_gap_ms=600",
        "urgent = af_one:3+am_two:1 rate=2",
        "mood = speaker_1 voice=deutsch",
        "gone = voice=nobody rate=2",
        "other = am_two",
    ]
)
PREFERRED = Preferences(voice="kokoro-en-us", engine=ENGINE, styles=STYLES, gaps=gaps(100, 100))
FEMALE, MALE = 0, 1


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PackStore:
    folder = tmp_path_factory.mktemp("packs")
    store = PackStore(folder / "packs")
    styles = {"af_one": tiny_kokoro.style(1), "am_two": tiny_kokoro.style(2)}
    import_kokoro(KokoroSource(tiny_kokoro.model(), tiny_kokoro.VOCABULARY, styles, {}), store, list(styles))
    for name in ("deutsch", "broken"):
        model = tiny_voice.write(folder, name, language="de" if name == "deutsch" else "fr", speakers=2)
        importer.import_voice(piper.find(str(model)), store, name=name)
    (store.folder / "broken" / "vocoder.onnx").write_bytes(b"x")
    return store


@pytest.fixture(scope="module", params=KINDS)
def voices(request: pytest.FixtureRequest, store: PackStore) -> Iterator[Voices]:
    with voices_of(request.param, store, PREFERRED) as voices:
        yield voices


def said(voices: Voices, script: Script | str, **wish: object) -> tuple[list[tuple[str, Delivery]], list[str]]:
    """Give who says each passage and how, and the warnings."""
    warnings: list[str] = []
    script, casting = direct(
        parse(f"<speak>{script}</speak>") if isinstance(script, str) else script,
        Wish(**wish),  # type: ignore[arg-type]
        voices,
        warnings.append,
    )
    return [(voice.info.name, delivery) for voice, delivery in map(casting, script.passages)], warnings


def sound(delivery: Delivery) -> int | Mix:
    return delivery.speaker if delivery.mix is None else delivery.mix


def test_a_style_holds_for_the_voice_element_and_no_longer(voices: Voices) -> None:
    found, warnings = said(voices, 'One. <voice style="urgent">Two.</voice> Three.', gain=0.5)
    assert warnings == []
    assert [name for name, _ in found] == ["kokoro-en-us"] * 3
    assert [sound(delivery) for _, delivery in found] == [FEMALE, Mix(((0, 0.75), (1, 0.25))), FEMALE]
    assert [delivery.length_scale for _, delivery in found] == [1.0, 0.5, 1.0]
    assert len({delivery.gain for _, delivery in found}) == 1


def test_a_style_within_another_takes_its_place_but_who_speaks_stays(voices: Voices) -> None:
    found, _ = said(voices, 'One. <voice style="calm">Two. <voice style="other">Three.</voice></voice>', style="urgent")
    assert [sound(delivery) for _, delivery in found] == [Mix(((0, 0.75), (1, 0.25)))] * 2 + [MALE]
    assert [delivery.length_scale for _, delivery in found] == [0.5, 2.0, 1.0]
    assert [delivery.gaps for _, delivery in found] == [gaps(100, 100), gaps(200, 600), gaps(100, 100)]
    assert found[1][1].gain == 0.5 * found[0][1].gain


@pytest.mark.parametrize(
    ("inside", "names", "speakers"),
    [
        ('<voice name="deutsch" style="speaker_1">Ja.</voice> Yes.', ["deutsch", "kokoro-en-us"], [1, FEMALE]),
        ('<voice style="mood">Ja.</voice> Yes.', ["deutsch", "kokoro-en-us"], [1, FEMALE]),
        ('<voice style="other">Yes. <voice name="deutsch">Ja.</voice></voice>', ["kokoro-en-us", "deutsch"], [MALE, 0]),
        # What a style of the configuration adds counts for every language; who speaks is the language's.
        ('<voice style="urgent"><lang xml:lang="de">Ja.</lang></voice>', ["deutsch"], [0]),
        ('<voice name="kokoro-en-us" style="other" xml:lang="de">Ja.</voice>', ["kokoro-en-us"], [MALE]),
        ('<voice style="am_two">Willkommen im Museum.</voice>', ["kokoro-en-us"], [MALE]),
        ('<voice style="calm">Willkommen im Museum.</voice>', ["deutsch"], [0]),
    ],
)
def test_a_style_beside_a_voice_or_language(inside: str, names: list[str], speakers: list[int], voices: Voices) -> None:
    found, warnings = said(voices, inside)
    assert warnings == []
    assert ([name for name, _ in found], [sound(delivery) for _, delivery in found]) == (names, speakers)


def test_a_style_that_is_none_is_refused_where_it_stands() -> None:
    with pytest.raises(SsmlError, match=r"line 2, column 2.*should read like calm") as error:
        parse('<speak>Hello\n, <voice style="a:b:c">you</voice></speak>')
    assert error.value.code == "style"


@pytest.mark.parametrize(
    "inside",
    [
        'One. <voice style="nobody">Two.</voice>',
        'One. <voice name="deutsch" style="am_two">Zwei.</voice>',
        'One. <voice name="deutsch" style="speaker_0+speaker_1">Zwei.</voice>',
        'One. <voice style="nobody"><lang xml:lang="de">Zwei.</lang></voice>',
        'One. <voice style="nobody" xml:lang="ja">Two.</voice>',
    ],
)
def test_unknown_styles_are_refused_before_anything_is_said(inside: str, voices: Voices) -> None:
    with pytest.raises(StyleError):
        direct(parse(f"<speak>{inside}</speak>"), Wish(), voices, pytest.fail)


@pytest.mark.parametrize("style", ["", "other", "am_two"])
def test_where_a_voice_fails_the_usual_one_says_it_in_its_own_way(style: str, voices: Voices) -> None:
    found, warnings = said(voices, plain("Hello."), voice="broken", speaker=1, style=style)
    assert [(name, sound(delivery)) for name, delivery in found] == [("kokoro-en-us", MALE if style else FEMALE)]
    assert "has changed since its import" in warnings[0]
    found, warnings = said(voices, plain("Salut."), language="fr")
    assert found[0][0] == "kokoro-en-us"
    assert "has changed since its import" in warnings[0]
    found, warnings = said(voices, '<voice name="broken" style="speaker_1">Hello.</voice>')
    assert [(name, sound(delivery)) for name, delivery in found] == [("kokoro-en-us", FEMALE)]
    assert "has changed since its import" in warnings[0]
    found, warnings = said(voices, '<voice xml:lang="fr" style="speaker_1">Salut.</voice>')
    assert [(name, sound(delivery)) for name, delivery in found] == [("kokoro-en-us", FEMALE)]
    assert "no voice speaks 'fr'" in warnings[0]
    found, warnings = said(voices, '<voice style="gone">Hello.</voice>')
    assert (found[0][0], found[0][1].length_scale) == ("kokoro-en-us", 0.5)
    assert "there is no voice 'nobody'" in warnings[0]


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        ({"voice": "nobody"}, VoiceError),
        ({"style": "gone"}, VoiceError),
        ({"language": "ja"}, VoiceError),
        ({"speaker": 7}, SpeakerError),
        ({"style": "nobody", "language": "de"}, StyleError),
        ({"style": "am_two", "voice": "deutsch"}, StyleError),
    ],
)
def test_what_is_not_there_is_refused(wish: dict[str, object], error: type[SpeechError], voices: Voices) -> None:
    with pytest.raises(error):
        said(voices, plain("Hello."), **wish)


def test_a_style_of_the_configuration_fits_every_language(voices: Voices) -> None:
    for wish in ({"language": "de"}, {}):
        found, warnings = said(voices, plain("Willkommen im Museum."), style="calm", **wish)
        assert warnings == []
        assert [(name, delivery.length_scale, delivery.gaps) for name, delivery in found] == [
            ("deutsch", 2.0, gaps(200, 600))
        ]
    (found, *_), _ = said(voices, plain("Willkommen im Museum."), style="urgent", language="de")
    assert found[0] == "deutsch"
    (found, *_), _ = said(voices, plain("Willkommen im Museum."), style="urgent")
    assert found[0] == "kokoro-en-us", "a style that names somebody is said by that one"

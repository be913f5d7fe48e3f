from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulators import tiny_kokoro, tiny_voice

from device.format import RATE, Samples
from engines import importer, piper
from engines.backends import Wanted
from engines.blends import Mix, check, read_blend, read_vector
from engines.errors import SpeechError, StyleError
from engines.families import load
from engines.kokoro_import import KokoroSource, import_kokoro
from engines.pack_store import PackStore
from engines.shelf import Preferences
from engines.styles import USUAL, Style, dressed, find, read_definitions
from engines.text.gaps import gaps
from engines.vits import Delivery
from engines.voice import Voice

NAMED = read_definitions(
    ["calm = one rate=0.9", "urgent = one:3+two:1 rate=1.25 gain=1.5", "quiet = gain=0.3", "slow = sentence_gap_ms=390"]
)


@pytest.fixture(scope="module")
def kokoro(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Voice]:
    styles = {"af_one": tiny_kokoro.style(1), "am_two": tiny_kokoro.style(2)}
    source = KokoroSource(tiny_kokoro.model(), tiny_kokoro.VOCABULARY, styles, {})
    (pack,) = import_kokoro(source, PackStore(tmp_path_factory.mktemp("packs")), list(styles))
    with closing(load(pack, Wanted(threads=1, precision="fp32"))) as voice:
        yield voice


@pytest.fixture(scope="module")
def moods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Voice]:
    """A Piper voice whose speakers are moods of one person."""
    folder = tmp_path_factory.mktemp("moods")
    pack = importer.import_voice(piper.find(str(tiny_voice.write(folder, speakers=3))), PackStore(folder / "packs"))
    with closing(load(pack, Wanted(threads=1))) as voice:
        yield voice


def said(voice: Voice, style: str = "", vector: bytes = b"", gain: float = 1.0) -> Samples:
    usual = Preferences().delivery(voice.info, gain=gain)
    delivery = dressed(usual, voice.info, find(style, {}), vector, {})
    pieces = voice.speak(voice.ids(list("hæləʊ ðə fɪʃ"))[0], delivery, np.random.default_rng(1), capacity=RATE).pieces
    parts = [np.empty(piece.needed, np.float32) for piece in pieces]
    for piece, part in zip(pieces, parts, strict=True):
        piece.render(part)
    return np.concatenate([part[: piece.frames] for piece, part in zip(pieces, parts, strict=True)])


def encoded(vector: np.ndarray) -> str:
    return base64.b64encode(vector.astype("<f2").tobytes()).decode()


@pytest.mark.parametrize("blend", ["af_one:1+am_two:0", "am_two:0.0+af_one:0.4", "af_one:100", "af_one:1+af_one:2"])
def test_all_of_one_is_that_one_to_the_sample(blend: str, kokoro: Voice) -> None:
    np.testing.assert_array_equal(said(kokoro, blend), said(kokoro, "af_one"))


def test_a_blend_lies_in_between(kokoro: Voice) -> None:
    one, half, two = (said(kokoro, style) for style in ("af_one", "af_one+am_two", "am_two"))
    nearly = said(kokoro, "af_one:0.999+am_two:0.001")
    assert half.size != one.size or np.abs(half - one).max() > 0.001
    assert half.size != two.size or np.abs(half - two).max() > 0.001
    np.testing.assert_allclose(nearly, one, atol=0.01)


def test_a_vector_speaks_as_the_style_that_it_is(kokoro: Voice) -> None:
    row = np.frombuffer(tiny_kokoro.style(2), np.float32).reshape(510, 256)[len("hæləʊ ðə fɪʃ") - 2]
    vector = read_vector(encoded(row))
    found, expected = said(kokoro, vector=vector, gain=0.5), said(kokoro, "am_two", gain=0.5)
    assert found.size == expected.size
    assert np.corrcoef(found, expected)[0, 1] > 0.999


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        ("???", "base64"),
        (encoded(np.ones(255)), "has 510 bytes"),
        (encoded(np.ones(257)), "has 514 bytes"),
        (encoded(np.full(256, np.nan)), "no number"),
        (encoded(np.full(256, np.inf)), "no number"),
        (encoded(np.zeros(256)), "norm of 0"),
        (encoded(np.full(256, 1000.0)), "norm of 1.6e\\+04"),
    ],
)
def test_what_is_no_style_vector_is_refused(vector: str, reason: str) -> None:
    with pytest.raises(StyleError, match=reason):
        check("", vector)


@pytest.mark.parametrize(
    "blend",
    ["+", "a+", "a:", "a:x", "a:1.2.3", "a:-1", "a:nan", "a:0+b:0", "a b", "a:1e9", "+".join("abcdefghi"), "ä", "\n"],
)
def test_what_is_no_blend_is_refused(blend: str) -> None:
    with pytest.raises(StyleError):
        check(blend, "")


@given(st.text(max_size=40))
def test_any_text_is_a_blend_whose_weights_add_up_or_refused(text: str) -> None:
    try:
        blend = read_blend(text)
    except StyleError:
        return
    assert sum(weight for _, weight in blend) == pytest.approx(1)
    assert all(0 < weight <= 1 for _, weight in blend)


def test_both_at_once_are_refused() -> None:
    with pytest.raises(StyleError, match="not both"):
        check("calm", encoded(np.ones(256)))


def test_styles_by_name() -> None:
    assert find("calm", NAMED) == Style((("one", 1.0),), rate=0.9)
    assert find("urgent", NAMED) == Style((("one", 0.75), ("two", 0.25)), rate=1.25, gain=1.5)
    assert find("quiet", NAMED) == Style(gain=0.3)
    assert find("", NAMED) == USUAL
    assert read_definitions(["x = voice=de_DE-thorsten"])["x"].voice == "de_DE-thorsten"


@pytest.mark.parametrize(
    ("definition", "sentence_ms", "paragraph_ms"),
    [
        ("rate=1", 100, 300),
        ("sentence_gap_ms=50", 60, 300),
        ("sentence_gap_ms=400", 400, 400),
        ("paragraph_gap_ms=0", 100, 0),
        ("sentence_gap_ms=0 paragraph_gap_ms=900", 0, 900),
    ],
)
def test_pauses_are_the_style_s_where_it_has_any(definition: str, sentence_ms: int, paragraph_ms: int) -> None:
    style = read_definitions([f"x = {definition}"])["x"]
    assert style.gaps(gaps(100, 300)) == gaps(sentence_ms, paragraph_ms)


@pytest.mark.parametrize(
    "lines",
    [
        ["calm"],
        ["calm = rate=9"],
        ["calm = rate=x"],
        ["calm = gain=nan"],
        ["calm = pitch=1"],
        ["calm = sentence_gap_ms=10001"],
        ["calm = paragraph_gap_ms=-1"],
        ["a = b", "a = c"],
        ["a = b:"],
    ],
)
def test_wrong_definitions_are_told(lines: list[str]) -> None:
    with pytest.raises(ValueError, match=r"such|without"):
        read_definitions(lines)


def test_moods_of_a_piper_voice_are_styles(moods: Voice) -> None:
    first, second = said(moods, "speaker_0"), said(moods, "speaker_2")
    np.testing.assert_array_equal(first, said(moods))
    assert first.size != second.size or np.abs(first - second).max() > 0.001
    by_id = Preferences().delivery(moods.info, speaker=2)
    assert dressed(Delivery(), moods.info, find("speaker_2", {}), b"", {}).speaker == by_id.speaker


def test_what_a_family_cannot_do_is_refused(moods: Voice, kokoro: Voice) -> None:
    with pytest.raises(StyleError, match="vits family blend no speakers"):
        said(moods, "speaker_0+speaker_1")
    with pytest.raises(StyleError, match="vits family take none"):
        said(moods, vector=b"x" * 512)
    with pytest.raises(SpeechError, match="nobody is no style of kokoro-en-us: there are af_one, am_two"):
        said(kokoro, "af_one+nobody")
    assert dressed(Delivery(), kokoro.info, find("af_one+am_two", {}), b"", {}).mix == Mix(((0, 0.5), (1, 0.5)))


def test_one_speaker_takes_the_place_of_a_blend(kokoro: Voice) -> None:
    blended = dressed(Delivery(), kokoro.info, find("af_one+am_two", {}), b"", {})
    assert dressed(blended, kokoro.info, find("am_two", {}), b"", {}) == Delivery(speaker=1)

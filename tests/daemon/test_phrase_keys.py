"""What a kept phrase is named by: all that decides how it sounds, and nothing else."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulators import tiny_kokoro, tiny_voice

from daemon import cache
from daemon.cache import key_of
from engines import importer, kokoro, kokoro_import, piper, vits
from engines.backends import Wanted
from engines.blends import Mix, read_vector
from engines.families import load
from engines.pack import AnyPack
from engines.pack_store import PackStore
from engines.synthesizer import Utterance
from engines.text.gaps import Gaps, gaps
from engines.text.script import Script, plain
from engines.text.ssml import parse
from engines.vits import Delivery
from engines.voice import Voice

Patch = pytest.MonkeyPatch
READINGS = "1 digest"


def of_vits(folder: Path) -> AnyPack:
    return importer.import_voice(piper.find(str(tiny_voice.write(folder))), PackStore(folder / "packs"))


def of_kokoro(folder: Path) -> AnyPack:
    styles = {"af_one": tiny_kokoro.style(1), "am_two": tiny_kokoro.style(2)}
    source = kokoro_import.KokoroSource(tiny_kokoro.model(), tiny_kokoro.VOCABULARY, styles, {})
    return kokoro_import.import_kokoro(source, PackStore(folder / "packs"), list(styles))[0]


@pytest.fixture(scope="module", params=[of_vits, of_kokoro], ids=["vits", "kokoro"])
def pack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AnyPack:
    make: Callable[[Path], AnyPack] = request.param
    return make(tmp_path_factory.mktemp("family"))


def voice_of(pack: AnyPack, **info: object) -> Voice:
    changed = replace(pack, info=pack.info.model_copy(update=info))  # type: ignore[type-var]
    with closing(load(changed, Wanted(threads=1, precision="fp32"))) as voice:
        return voice


@pytest.fixture(scope="module")
def voice(pack: AnyPack) -> Iterator[Voice]:
    with closing(load(pack, Wanted(threads=1, precision="fp32"))) as voice:
        yield voice


def inside(attributes: str) -> Script:
    return parse(f"<speak><prosody {attributes}>Hello.</prosody></speak>")


def vector(number: float) -> bytes:
    return read_vector(base64.b64encode(np.full(256, number, "<f2").tobytes()).decode())


USUAL = Utterance("Hello.", Delivery(), seed=1)

SOUNDS: Mapping[str, Utterance] = {
    "usual": USUAL,
    "text": replace(USUAL, text="Hallo."),
    "speed in it": replace(USUAL, text=inside('rate="80%"')),
    "volume in it": replace(USUAL, text=inside('volume="soft"')),
    "said otherwise": replace(USUAL, text=parse('<speak><sub alias="Bye">Hello</sub>.</speak>')),
    "a pause after it": replace(USUAL, text=parse('<speak>Hello.<break time="1s"/></speak>')),
    "seed": replace(USUAL, seed=2),
    "any seed": replace(USUAL, seed=None),
    "speaker": replace(USUAL, delivery=Delivery(speaker=1)),
    "speed": replace(USUAL, delivery=Delivery(length_scale=1.1)),
    "variation": replace(USUAL, delivery=Delivery(noise_scale=0.5)),
    "rhythm": replace(USUAL, delivery=Delivery(noise_w=0.5)),
    "gain": replace(USUAL, delivery=Delivery(gain=0.5)),
    "pause after sentences": replace(USUAL, delivery=Delivery(gaps=gaps(20, 0))),
    "pause after paragraphs": replace(USUAL, delivery=Delivery(gaps=gaps(0, 20))),
    "blend": replace(USUAL, delivery=Delivery(mix=Mix(((0, 0.5), (1, 0.5))))),
    "another blend": replace(USUAL, delivery=Delivery(mix=Mix(((0, 0.6), (1, 0.4))))),
    "vector": replace(USUAL, delivery=Delivery(mix=Mix(vector=vector(0.1)))),
    "another vector": replace(USUAL, delivery=Delivery(mix=Mix(vector=vector(0.2)))),
}


def test_whatever_sounds_otherwise_has_a_name_of_its_own(voice: Voice) -> None:
    keys = {what: key_of(utterance, voice, READINGS) for what, utterance in SOUNDS.items()}
    assert len(set(keys.values())) == len(keys)
    assert key_of(USUAL, voice, "2 digest") not in keys.values()


@pytest.mark.parametrize(
    "same",
    [
        replace(USUAL, text=plain("Hello.")),
        replace(USUAL, text=parse("<speak>Hello.</speak>")),
        replace(USUAL, volume=0.5),  # of sounds that are played, of which a kept phrase has none
        replace(USUAL, delivery=Delivery(gaps=gaps(0, 0))),
    ],
)
def test_what_sounds_alike_has_one_name(same: Utterance, voice: Voice) -> None:
    assert key_of(same, voice, READINGS) == key_of(USUAL, voice, READINGS)


@pytest.mark.parametrize(
    ("paragraphs", "lines"),
    [
        ("One.\n\nTwo.", "One.\nTwo."),
        (parse("<speak><p>One.</p><p>Two.</p></speak>"), parse("<speak><s>One.</s><s>Two.</s></speak>")),
    ],
    ids=["plain", "ssml"],
)
def test_paragraphs_are_told_from_lines_where_they_sound_otherwise(
    paragraphs: str | Script, lines: str | Script, voice: Voice
) -> None:
    def key(text: str | Script, **delivery: Gaps) -> str:
        return key_of(Utterance(text, Delivery(**delivery), seed=1), voice, READINGS)

    assert key(paragraphs) == key(lines)
    assert key(paragraphs, gaps=gaps(0, 400)) != key(lines, gaps=gaps(0, 400))


def other_files(pack: AnyPack) -> Mapping[str, object]:
    return {"files": {**pack.info.files, next(iter(pack.info.files)): "0" * 64}}


def other_signs(pack: AnyPack) -> Mapping[str, object]:
    first, second, *_ = pack.info.phoneme_ids
    ids = pack.info.phoneme_ids
    return {"phoneme_ids": {**ids, first: ids[second], second: ids[first]}}


@pytest.mark.parametrize("change", [other_files, other_signs, lambda _: {"language": "en-gb-x-rp"}])
def test_another_pack_has_other_names(
    change: Callable[[AnyPack], Mapping[str, object]], pack: AnyPack, voice: Voice
) -> None:
    assert key_of(USUAL, voice_of(pack, **change(pack)), READINGS) != key_of(USUAL, voice, READINGS)


def test_so_has_one_whose_styles_are_as_loud_as_others(pack: AnyPack, voice: Voice) -> None:
    louder = {"gains": [2.0, 2.0]} if hasattr(pack.info, "gains") else {"loudness_lufs": -20.0}
    assert key_of(USUAL, voice_of(pack, **louder), READINGS) != key_of(USUAL, voice, READINGS)


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(cache, "_espeak_version", lambda: "another"),
        lambda patch: [patch.setattr(family, "VERSION", 0) for family in (vits, kokoro)],
    ],
)
def test_another_program_has_other_names(change: Callable[[Patch], object], pack: AnyPack, monkeypatch: Patch) -> None:
    before = key_of(USUAL, voice_of(pack), READINGS)
    change(monkeypatch)
    assert key_of(USUAL, voice_of(pack), READINGS) != before


def test_the_table_of_signs_is_in_kokoro_s_names(tmp_path: Path, monkeypatch: Patch) -> None:
    pack = of_kokoro(tmp_path)
    before = key_of(USUAL, voice_of(pack), READINGS)
    monkeypatch.setattr(kokoro, "table_for", lambda _: {"a": "b"})
    assert key_of(USUAL, voice_of(pack), READINGS) != before


def test_another_precision_has_other_names(tmp_path: Path) -> None:
    pack = of_kokoro(tmp_path)
    keys = set()
    for precision in ("fp32", "int8"):
        with closing(load(pack, Wanted(threads=1, precision=precision))) as voice:
            keys.add(key_of(USUAL, voice, READINGS))
    assert len(keys) == 2


@pytest.mark.parametrize("element", ['voice name="x"', 'voice style="calm"', 'lang xml:lang="de"', 'mark name="m"'])
def test_what_others_decide_is_not_kept(element: str) -> None:
    script = parse(f"<speak><{element}>Hello.</{element.split(maxsplit=1)[0]}></speak>")
    assert not script.is_repeatable_by("en-us")

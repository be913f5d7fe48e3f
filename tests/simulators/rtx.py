"""TensorRT for RTX in TensorRT's place: NVIDIA's own parser and builder, which need no GPU.

It cannot run what it builds here, nor build for a Jetson's GPU, but it refuses what TensorRT would refuse.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import tensorrt_rtx_bindings

from engines.precision_search import LATENTS, in_half
from engines.runtime import trt
from engines.runtime.quantize import quantized, sites, worthwhile
from engines.runtime.ranges import Grid

GENERATIONS = ("SM80", "SM86", "SM89")
"""The GPUs nearest to Orin's SM 87 that it builds for."""


def put_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let our builder find it; its versions are counted differently."""
    monkeypatch.setitem(sys.modules, "tensorrt", tensorrt_rtx_bindings)
    monkeypatch.setattr(trt, "_MAJORS", (1,))


def generation(*names: str) -> Callable[[Any, Any], None]:
    """Give the settings of a build for GPUs of these generations."""

    def configure(binding: Any, config: Any) -> None:  # noqa: ANN401
        config.num_compute_capabilities = len(names)
        for i, name in enumerate(names):
            config.set_compute_capability(getattr(binding.ComputeCapability, name), i)

    return configure


def written_in(precision: str, vocoder: onnx.ModelProto) -> onnx.ModelProto:
    """Give a pack's vocoder graph in 'fp32', 'fp16' or 'int8': all convolutions, with ranges out of the air."""
    if precision == "fp32":
        return vocoder
    if precision == "fp16":
        return in_half(vocoder)
    found = worthwhile(sites(vocoder, LATENTS))
    grids = {site: Grid(0.05, np.ones(site.convolutions[0].rows.shape[1], np.float32)) for site in found}
    return in_half(quantized(vocoder, grids))

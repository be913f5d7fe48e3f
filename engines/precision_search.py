"""Which convolutions of a vocoder part may compute in INT8: found by trying. Needs onnx, and some minutes.

Each tensor that convolutions take is given its grid from real speech, then tried alone. Those that gain most
multiply-adds for what they cost in sound go first; as many as the quality gate lets pass are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx

from engines.errors import SynthesisError
from engines.hearing import Hearing
from engines.quality import Quality
from engines.runtime.graph import GraphIndex, copied
from engines.runtime.half import half, rounded
from engines.runtime.ort import evaluate
from engines.runtime.quantize import Site, quantized, sites, worthwhile
from engines.runtime.ranges import Array, Grid, Method, fit

Progress = Callable[[str, float], None]
"""Told what is being done, and which share of the whole is done."""

LATENTS: Final = "latents"

_MOMENTS: Final = 64
"""Of each calibration sentence, per convolution: with 24 sentences 1,500 equations for what is then two numbers."""

_FEW: Final = 3
"""Sentences that suffice to compare one site with another."""

_SECOND_CHANCES: Final = 6
"""Sites beyond the first that failed that are tried once more, each taking a full hearing."""

_FITTED: Final = 0.15
_COMPARED: Final = 0.8
"""Shares of the whole time, about, after which ranges are chosen and sites compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The largest set of sites that passes, and how it sounds in FP16 with these in INT8."""

    grids: Mapping[Site, Grid]
    share: float
    """Of the multiply-adds of all convolutions, the flow's included."""
    quality: Quality | None
    """None where nothing passes."""


_NOTHING: Final = Found({}, 0.0, None)


def search(model: onnx.ModelProto, hearing: Hearing, progress: Progress = lambda _what, _share: None) -> Found:
    """Find what of `model`, a pack's float vocoder, may be INT8; takes minutes.

    EngineError where it cannot be run, GraphError where it is of an opset that is not known.
    """
    every = sites(model, LATENTS)
    total = sum(site.macs for site in every)
    tried = worthwhile(every)
    if not tried:
        return _NOTHING
    grids = fit_all(model, tried, hearing, lambda share: progress("choosing ranges", _FITTED * share))
    costs: dict[Site, float] = {}
    for number, site in enumerate(tried):
        progress("comparing convolutions", _FITTED + (_COMPARED - _FITTED) * number / len(tried))
        quality = _judge(quantized(model, {site: grids[site]}), hearing, _FEW)
        costs[site] = quality.mean_db if quality else np.inf
    order = sorted(tried, key=lambda site: costs[site] / site.macs)
    heard = 0

    def passes(chosen: Iterable[Site]) -> bool:
        nonlocal heard
        heard += 1
        progress("listening", _COMPARED + (1 - _COMPARED) * heard / (heard + _SECOND_CHANCES))
        quality = _judge(quantized(model, {site: grids[site] for site in chosen}), hearing)
        return quality is not None and quality.passes

    chosen = {site: grids[site] for site in _most(order, passes)}
    while chosen:  # as a GPU will compute it; that FP16 costs more than what was left is seldom
        quality = _judge(rounded(in_half(quantized(model, chosen))), hearing)
        if quality is not None and quality.passes:
            return Found(chosen, sum(site.macs for site in chosen) / total, quality)
        del chosen[max(chosen, key=costs.__getitem__)]
    return _NOTHING


def fit_all(
    model: onnx.ModelProto,
    tried: list[Site],
    hearing: Hearing,
    progress: Callable[[float], None] = lambda _: None,
    method: Method = "output",
) -> dict[Site, Grid]:
    """Choose the grid of each site, from what it holds during the calibration sentences."""
    columns = _columns(model, tried, hearing)
    grids = {}
    for number, site in enumerate(tried):
        progress(number / len(tried))
        grids[site] = fit(site.takers(columns.pop(site)), method)
    return grids


def in_half(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give a vocoder part in FP16, from the latents to the last convolution.

    The resampler stays float32: in FP16, samples are worth 11 bits, and its product takes 3 % of the time.
    """
    last = sites(model, LATENTS)[-1].convolutions[-1].output
    behind = GraphIndex(model.graph).downstream([last]) - {last}

    def keep(node: onnx.NodeProto) -> bool:
        return node.output[0] in behind or node.op_type == "ConstantOfShape"

    return half(model, keep)


def _judge(graph: onnx.ModelProto, hearing: Hearing, count: int | None = None) -> Quality | None:
    """Listen to a graph; None where what it gives are no numbers."""
    try:
        return hearing.quality(graph.SerializeToString(), count)
    except SynthesisError:
        return None


def _most(order: list[Site], passes: Callable[[Iterable[Site]], bool]) -> list[Site]:
    """Find how many of the first pass together, by bisection, then whether one or another of the rest fits in."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        if passes(order[:middle]):
            low = middle
        else:
            high = middle - 1
    chosen = order[:low]
    for site in sorted(order[low + 1 :], key=lambda site: -site.macs)[:_SECOND_CHANCES]:
        if passes([*chosen, site]):
            chosen.append(site)
    return chosen


def _columns(model: onnx.ModelProto, tried: list[Site], hearing: Hearing) -> dict[Site, list[Array]]:
    """Give what each convolution takes at some moments of the calibration sentences."""
    told = copied(model)
    names = [site.source for site in tried]
    told.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name != LATENTS)
    content = told.SerializeToString()
    rng = np.random.default_rng(0)
    parts: dict[Site, list[list[Array]]] = {site: [[] for _ in site.convolutions] for site in tried}
    for latents in hearing.calibration:
        frames = latents.shape[2]
        feeds = {
            LATENTS: latents,
            "crop": np.array([0, frames]),
            "starts": np.zeros(1, np.int64),
            "gain": np.ones(1, np.float32),
            "sid": np.array([hearing.info.default_speaker]),
        }
        held = {LATENTS: latents, **evaluate(content, feeds, [name for name in names if name != LATENTS])}
        for site in tried:
            source = held[site.source][0]
            moments = rng.integers(0, source.shape[1], _MOMENTS)
            for convolution, kept in zip(site.convolutions, parts[site], strict=True):
                kept.append(convolution.columns(source, moments))
    return {site: [np.concatenate(kept, axis=2) for kept in lists] for site, lists in parts.items()}

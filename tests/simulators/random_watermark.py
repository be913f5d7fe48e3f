"""A watermark whose nets are of the real ones' shape, with weights by lot: it marks something, nobody knows what."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from engines.perth import Weights
from engines.runtime.ort import OrtEngine
from engines.watermark import BANDS, CHANNELS, LAYERS, WIDTH
from engines.watermark_files import Watermark
from engines.watermark_graph import marker_graph


@functools.cache
def random_watermark() -> Watermark:
    """Give the same one each time."""
    return Watermark(OrtEngine(marker_graph(random_weights()), threads=1), "by lot")


def random_weights() -> Weights:
    """Give weights with which gains are of some decibels."""
    rng = np.random.default_rng(0)
    weights = {}
    sizes = [BANDS, *[CHANNELS] * (LAYERS + 1), BANDS]
    for layer, (taken, given) in enumerate(itertools.pairwise(sizes)):
        width = WIDTH if 1 <= layer <= LAYERS else 1
        scale = np.sqrt(2 / (taken * width)) * (0.02 if layer > LAYERS else 1)
        kernel = rng.standard_normal((given, taken, width)) * scale
        weights[f"encoder.layers.{layer}.conv.weight"] = kernel.astype(np.float32)
        weights[f"encoder.layers.{layer}.conv.bias"] = (rng.standard_normal(given) * 0.01).astype(np.float32)
    return weights

"""Convolutions in INT8, said explicitly: Q/DQ around what each one takes. Needs onnx.

The one recipe that TensorRT 10 and 11 share: symmetric, activations per tensor, weights per output channel, biases and
everything between convolutions in float. A tensor is quantised once for all convolutions that take it.

Tried on the default voice's residual stages and left out, as PESQ-WB gained 0.06 at most: rounding weights by
reconstruction (GPTQ, Frantar et al., 2023), correcting biases by the mean error, and centring what LeakyReLU made
one-sided by a constant per channel, which padding and masks would have to know of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from engines.errors import GraphError
from engines.runtime.graph import GraphIndex, constant, copied, prune
from engines.runtime.ranges import Array, Grid, Taker, to_levels, weight_scales

_OPSET: Final = 19
"""The first in which a tensor of FP16 can be quantised."""

_IR: Final = 9
"""That belongs to it."""

_ZERO: Final = "quantize/zero"
"""The zero point of every activation."""

_LEAST_CHANNELS: Final = 16
"""Tensor cores multiply INT8 in blocks of 16 channels and more; below, most of the work would be padding."""


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """One convolution over time, transposed or not, with constant weights."""

    output: str
    weights: Array
    """As the graph has them: [out, in, taps], or [in, out, taps] where transposed."""
    transposed: bool
    taps: tuple[int, ...]
    """Where each tap looks, relative to the output frame; not of transposed ones."""
    macs: int
    """Multiply-adds per frame of the graph's input."""

    @property
    def rows(self) -> Array:
        """The weights as [rows, in, taps] of a matrix product; a transposed one gives all taps of a frame at once."""
        if not self.transposed:
            return self.weights
        inputs = self.weights.shape[0]
        return np.ascontiguousarray(self.weights.reshape(inputs, -1).T)[:, :, None]

    def columns(self, source: Array, moments: NDArray[np.int64]) -> Array:
        """Cut what it takes at some moments out of `source` [in, T]; gives [in, taps, moments]."""
        if self.transposed:
            return source[:, moments][:, None, :]
        before, behind = max(0, -self.taps[0]), max(0, self.taps[-1])
        padded = np.pad(source, ((0, 0), (before, behind)))
        return np.stack([padded[:, moments + tap + before] for tap in self.taps], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A tensor that can be quantised, and all convolutions that take it."""

    source: str
    convolutions: tuple[Convolution, ...]

    @property
    def macs(self) -> int:
        """Multiply-adds of all these convolutions per frame of the graph's input."""
        return sum(one.macs for one in self.convolutions)

    def takers(self, columns: Sequence[Array]) -> list[Taker]:
        """Join the convolutions with what they take, in the same order."""
        return [Taker(one.rows, part) for one, part in zip(self.convolutions, columns, strict=True)]


def sites(model: onnx.ModelProto, source: str) -> list[Site]:
    """Find every convolution over time downstream of the input `source`, by the tensor that it takes, in order."""
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    flowing = GraphIndex(graph).downstream([source])
    rates = {source: 1}
    found: dict[str, list[Convolution]] = {}
    for node in graph.node:
        rate = max((rates.get(name, 0) for name in node.input), default=0)
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        is_convolution = node.op_type in {"Conv", "ConvTranspose"}
        if is_convolution and node.input[0] in flowing and node.input[1] in constants:
            weights = numpy_helper.to_array(constants[node.input[1]])
            if weights.ndim == 3 and attributes.get("group", 1) == 1:  # noqa: PLR2004  [out, in, taps]
                convolution = _convolution(node, weights, attributes, rate)
                found.setdefault(node.input[0], []).append(convolution)
        if node.op_type == "ConvTranspose":
            rate *= attributes.get("strides", [1])[0]
        rates.update(dict.fromkeys(node.output, rate))
    return [Site(name, tuple(convolutions)) for name, convolutions in found.items()]


def _convolution(node: onnx.NodeProto, weights: Array, attributes: Mapping[str, Any], rate: int) -> Convolution:
    size, step = weights.shape[2], attributes.get("dilations", [1])[0]
    first = -attributes.get("pads", [0, 0])[0]
    taps = tuple(first + step * tap for tap in range(size))
    return Convolution(node.output[0], weights, node.op_type == "ConvTranspose", taps, weights.size * rate)


def worthwhile(found: Iterable[Site]) -> list[Site]:
    """Give the sites whose convolutions are all wide enough for INT8 to gain anything."""
    return [site for site in found if all(min(c.weights.shape[:2]) >= _LEAST_CHANNELS for c in site.convolutions)]


def quantized(model: onnx.ModelProto, grids: Mapping[Site, Grid]) -> onnx.ModelProto:
    """Give `model`, whose `sites` these are, with some of them quantised.

    GraphError where the graph is too old or too new.
    """
    model = copied(model)
    _raise_opset(model)
    graph = model.graph
    constant(graph, _ZERO, np.array(0, np.int8))
    nodes = {node.output[0]: node for node in graph.node}
    for site, grid in grids.items():
        made = _quantize_source(graph, site.source, grid)
        for convolution in site.convolutions:
            node = nodes[convolution.output]
            made.append(_quantize_weights(graph, convolution, grid.gains))
            node.input[0] = f"{site.source}/dequantized"
            node.input[1] = f"{convolution.output}/weights"
        position = list(graph.node).index(nodes[site.convolutions[0].output])
        for offset, node in enumerate(made):
            graph.node.insert(position + offset, node)
    prune(model)
    onnx.checker.check_model(model)
    return model


def _quantize_source(graph: onnx.GraphProto, source: str, grid: Grid) -> list[onnx.NodeProto]:
    equal, levels = f"{source}/equal", f"{source}/levels"
    gains = constant(graph, f"{source}/gains", grid.gains[None, :, None])
    step = [constant(graph, f"{source}/scale", np.array(grid.scale, np.float32)), _ZERO]
    return [
        helper.make_node("Mul", [source, gains], [equal]),
        helper.make_node("QuantizeLinear", [equal, *step], [levels]),
        helper.make_node("DequantizeLinear", [levels, *step], [f"{source}/dequantized"]),
    ]


def _quantize_weights(graph: onnx.GraphProto, convolution: Convolution, gains: Array) -> onnx.NodeProto:
    axis = 1 if convolution.transposed else 0
    weights = convolution.weights / (gains[:, None, None] if convolution.transposed else gains[None, :, None])
    scales = weight_scales(np.moveaxis(weights, axis, 0))
    shape = [-1 if i == axis else 1 for i in range(3)]
    name = convolution.output
    inputs = [
        constant(graph, f"{name}/weight_levels", to_levels(weights, scales.reshape(shape)).astype(np.int8)),
        constant(graph, f"{name}/weight_scales", scales),
        constant(graph, f"{name}/weight_zeros", np.zeros(scales.size, np.int8)),
    ]
    return helper.make_node("DequantizeLinear", inputs, [f"{name}/weights"], axis=axis)


def _raise_opset(model: onnx.ModelProto) -> None:
    """Let the graph be one that may hold Q/DQ of FP16; the checker finds what has changed its meaning since."""
    opset = next((o for o in model.opset_import if o.domain in {"", "ai.onnx"}), None)
    if opset is None or not 13 <= opset.version <= _OPSET:  # noqa: PLR2004  Piper exports 15; older ones differ more
        raise GraphError("it is of an opset that is not known here")
    opset.version = _OPSET
    model.ir_version = max(model.ir_version, _IR)

"""Several nodes that an exporter wrote for one operation, made one again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from engines.runtime.graph import GraphIndex, prune, replace, rewire

_OPSET: Final = 17
"""The first with LayerNormalization; nothing else that Piper's models (15) use changed between the two."""


def fuse(model: onnx.ModelProto) -> None:
    """Fuse layer norms, and zero padding into the convolutions behind it."""
    _fuse_padding(model.graph)
    opset = next((o for o in model.opset_import if o.domain in {"", "ai.onnx"}), None)
    if opset is not None and 15 <= opset.version <= _OPSET:  # noqa: PLR2004  what was looked at
        opset.version = _OPSET
        _fuse_layer_norms(model.graph)
    prune(model)


@dataclass(frozen=True, slots=True)
class _Norm:
    source: str
    axis: int
    epsilon: float
    scale: str
    bias: str
    end: onnx.NodeProto


def _fuse_layer_norms(graph: onnx.GraphProto) -> None:
    """(x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias becomes LayerNormalization.

    It works on the last axis: where the channels are in front of it, two transpositions are put around.
    """
    index = GraphIndex(graph)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for division in [n for n in graph.node if n.op_type == "Div"]:
        norm = _match(index, constants, division)
        if norm is None:
            continue
        result = norm.end.output[0]
        parts = [f"{result}/{name}" for name in ("turned", "scale", "bias", "normed")]
        turned, scale, bias, normed = parts
        for name, source in ((scale, norm.scale), (bias, norm.bias)):
            flat = numpy_helper.to_array(constants[source]).reshape(-1)
            graph.initializer.append(numpy_helper.from_array(flat, name))
        last = norm.axis == -1
        middle = helper.make_node(
            "LayerNormalization",
            [norm.source if last else turned, scale, bias],
            [result if last else normed],
            axis=-1,
            epsilon=norm.epsilon,
        )
        around = [
            helper.make_node("Transpose", [norm.source], [turned], perm=[0, 2, 1]),
            middle,
            helper.make_node("Transpose", [normed], [result], perm=[0, 2, 1]),
        ]
        replace(graph, norm.end, [middle] if last else around)


def _match(index: GraphIndex, constants: dict[str, onnx.TensorProto], division: onnx.NodeProto) -> _Norm | None:
    """Recognise a layer norm by its division."""
    difference = index.maker.get(division.input[0])
    chain = _chain(index, division.input[1], ("Sqrt", "Add", "ReduceMean", "Pow", "Sub"))
    scaled = _only(index, division, "Mul")
    shifted = scaled and _only(index, scaled, "Add")
    if difference is None or difference.op_type != "Sub" or chain is None or scaled is None or shifted is None:
        return None
    _, plus_epsilon, variance, power, squared = chain
    mean = index.maker.get(difference.input[1])
    epsilon = _number(constants, plus_epsilon.input[1])
    scale = next((name for name in scaled.input if name in constants), None)
    bias = next((name for name in shifted.input if name in constants), None)
    if mean is None or mean.op_type != "ReduceMean" or epsilon is None or scale is None or bias is None:
        return None
    same_source = list(squared.input) == list(difference.input) and mean.input[0] == difference.input[0]
    if not same_source or _axes(mean) != _axes(variance) or _number(constants, power.input[1]) != 2:  # noqa: PLR2004
        return None
    axes = _axes(mean)
    return _Norm(difference.input[0], axes[0], epsilon, scale, bias, shifted) if axes in ([-1], [1]) else None


def _chain(index: GraphIndex, name: str, op_types: Sequence[str]) -> list[onnx.NodeProto] | None:
    """Follow first inputs upwards from tensor `name`; None where an operator is another."""
    nodes = []
    for op_type in op_types:
        node = index.maker.get(name)
        if node is None or node.op_type != op_type:
            return None
        nodes.append(node)
        name = node.input[0]
    return nodes


def _only(index: GraphIndex, node: onnx.NodeProto, op_type: str) -> onnx.NodeProto | None:
    takers = index.takers.get(node.output[0], [])
    return takers[0] if len(takers) == 1 and takers[0].op_type == op_type else None


def _axes(node: onnx.NodeProto) -> Sequence[int]:
    return next((list(a.ints) for a in node.attribute if a.name == "axes"), [])


def _number(constants: dict[str, onnx.TensorProto], name: str) -> float | None:
    if name not in constants:
        return None
    array = numpy_helper.to_array(constants[name])
    return float(array.reshape(-1)[0]) if array.size == 1 else None


def _fuse_padding(graph: onnx.GraphProto) -> None:
    """Let a convolution pad with zeros itself."""
    index = GraphIndex(graph)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for pad in [n for n in graph.node if n.op_type == "Pad" and n.input[1] in constants]:
        takers = index.takers.get(pad.output[0], [])
        mode = next((a.s for a in pad.attribute if a.name == "mode"), b"constant")
        filled = len(pad.input) > 2 and pad.input[2] and _number(constants, pad.input[2]) != 0  # noqa: PLR2004
        amounts = numpy_helper.to_array(constants[pad.input[1]])
        half = amounts.size // 2
        spatial = [*amounts[2:half], *amounts[half + 2 :]]
        outer = [*amounts[:2], *amounts[half : half + 2]]
        if mode != b"constant" or filled or np.any(outer) or min(spatial, default=-1) < 0:
            continue
        if not takers or any(t.op_type != "Conv" or t.input[0] != pad.output[0] for t in takers):
            continue
        for convolution in takers:
            own = next((a for a in convolution.attribute if a.name == "pads"), None)
            before = list(own.ints) if own is not None else [0] * len(spatial)
            if own is not None:
                convolution.attribute.remove(own)
            total = [int(a + b) for a, b in zip(before, spatial, strict=True)]
            convolution.attribute.append(helper.make_attribute("pads", total))
        rewire(graph, pad.output[0], pad.input[0])
        graph.node.remove(pad)

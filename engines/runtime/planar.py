"""Convolutions over time the way that ONNX Runtime's quickest kernels take them: in two dimensions, one of them 1."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import helper

from engines.runtime.graph import GraphIndex, constant, constants, prune, replace_all

_AXIS: Final = "planar/axis"

_LEAST_CHANNELS: Final = 8
"""Of the input. The kernels work on blocks of 8 or 16 channels; with fewer there is nothing to win."""

_BEFORE: Final = {"dilations": [1], "kernel_shape": [1], "strides": [1], "pads": [0]}
"""Attribute -> what it is along the new axis."""


def scales_into_weights(model: onnx.ModelProto) -> int:
    """Let a convolution's weights do the multiplication of its input by a constant per channel; gives how many.

    Zeros around the input stay zeros, so nothing changes but the rounding.
    """
    graph = model.graph
    index, values = GraphIndex(graph), constants(graph)
    new: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        scaling = index.maker.get(node.input[0]) if node.op_type == "Conv" and _group(node) == 1 else None
        if scaling is None or scaling.op_type != "Mul" or len(index.takers[scaling.output[0]]) != 1:
            continue
        scale = next((name for name in scaling.input if name in values), None)
        if scale is None or len(values[scale].dims) != 3 or values[scale].dims[2] != 1:  # noqa: PLR2004  [1, C, 1]
            continue
        scaled = f"{node.output[0]}/scaled"
        source = next(name for name in scaling.input if name != scale)
        changed = helper.make_node("Conv", [source, scaled, *node.input[2:]], node.output, name=node.name)
        changed.attribute.extend(node.attribute)
        new[node.output[0]] = [helper.make_node("Mul", [node.input[1], scale], [scaled]), changed]
    replace_all(graph, new)
    prune(model)
    return len(new)


def in_two_dimensions(model: onnx.ModelProto) -> int:
    """Turn convolutions of [N, C, time] into such of [N, C, 1, time]; gives how many.

    ONNX Runtime has kernels for blocks of channels in two dimensions only: with the way there and back, a convolution
    of 128 channels and 11 taps took 0.82 of the processor's time (AVX-512), of 256 channels 0.84. Elsewhere it costs
    nothing.
    """
    graph = model.graph
    index, sizes = GraphIndex(graph), {name: list(tensor.dims) for name, tensor in constants(graph).items()}
    new: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        size = _weights_size(index, sizes, node) if node.op_type == "Conv" else []
        if len(size) != 3 or size[1] < _LEAST_CHANNELS:  # noqa: PLR2004  one dimension
            continue
        result = node.output[0]
        plane, weights, made = (f"{result}/{part}" for part in ("plane", "weights", "made"))
        changed = helper.make_node("Conv", [plane, weights, *node.input[2:]], [made], name=node.name)
        for item in node.attribute:
            ints = list(item.ints)
            if item.name in _BEFORE:
                first = _BEFORE[item.name]
                ints = [*first, ints[0], *first, ints[1]] if item.name == "pads" else [*first, *ints]
                item = helper.make_attribute(item.name, ints)  # noqa: PLW2901
            changed.attribute.append(item)
        new[result] = [
            helper.make_node("Unsqueeze", [node.input[0], _AXIS], [plane]),
            helper.make_node("Unsqueeze", [node.input[1], _AXIS], [weights]),
            changed,
            helper.make_node("Squeeze", [made, _AXIS], [result]),
        ]
    if new:
        constant(graph, _AXIS, np.array([2]))
        replace_all(graph, new)
    return len(new)


def _group(node: onnx.NodeProto) -> int:
    return next((int(item.i) for item in node.attribute if item.name == "group"), 1)


def _weights_size(index: GraphIndex, sizes: dict[str, list[int]], node: onnx.NodeProto) -> list[int]:
    """Give the size of a convolution's weights, which may be made of integers; [] where it is not known."""
    name = node.input[1]
    while name not in sizes and name in index.maker and index.maker[name].op_type in {"Cast", "Sub", "Mul"}:
        name = index.maker[name].input[0]
    return sizes.get(name, [])

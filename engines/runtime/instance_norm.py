"""Normalisation of each channel over time, which exporters write as nine nodes, as the one operator that it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from engines.runtime.graph import GraphIndex, constant, constants, other_input, prune, replace_all

_FLAT: Final = "instance_norm/flat"


def fuse_instance_norms(model: onnx.ModelProto) -> int:
    """Make InstanceNormalization of (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + shift; gives how many.

    x is [1, channels, time], scale and shift are [1, channels, 1] and may be computed, as in an adaptive norm. Several
    scalings of one normalised x become a norm each: that is one pass over x where it was two.
    """
    graph = model.graph
    index, values = GraphIndex(graph), constants(graph)
    new: dict[str, list[onnx.NodeProto]] = {}
    for division in graph.node:
        norm = _normalised(index, values, division) if division.op_type == "Div" else None
        takers = index.takers.get(division.output[0], []) if norm else []
        for scaling in takers:
            shifting = _only_taker(index, scaling)
            if norm is None or scaling.op_type != "Mul" or shifting is None or shifting.op_type != "Add":
                continue
            result = shifting.output[0]
            scale = other_input(scaling, division.output[0])
            shift = other_input(shifting, scaling.output[0])
            new[result] = [
                helper.make_node("Reshape", [scale, _FLAT], [f"{result}/scale"]),
                helper.make_node("Reshape", [shift, _FLAT], [f"{result}/shift"]),
                helper.make_node(
                    "InstanceNormalization",
                    [norm.source, f"{result}/scale", f"{result}/shift"],
                    [result],
                    name=result,
                    epsilon=norm.epsilon,
                ),
            ]
    if new:
        constant(graph, _FLAT, np.array([-1]))
        replace_all(graph, new)
        prune(model)
    return len(new)


@dataclass(frozen=True, slots=True)
class _Norm:
    source: str
    epsilon: float


def _normalised(index: GraphIndex, values: dict[str, onnx.TensorProto], division: onnx.NodeProto) -> _Norm | None:
    """Recognise (x - mean) / deviation, over the last of three axes."""
    difference = index.maker.get(division.input[0])
    nodes: list[onnx.NodeProto] = []
    name = division.input[1]
    for kind in ("Sqrt", "Add", "ReduceMean", "Mul"):
        node = index.maker.get(name)
        if node is None or node.op_type != kind:
            return None
        nodes.append(node)
        name = node.input[0]
    _, plus_epsilon, variance, square = nodes
    if difference is None or difference.op_type != "Sub" or [*square.input] != [difference.output[0]] * 2:
        return None
    mean = index.maker.get(difference.input[1])
    epsilon = values.get(plus_epsilon.input[1])
    if mean is None or mean.op_type != "ReduceMean" or mean.input[0] != difference.input[0] or epsilon is None:
        return None
    if not all(_axes(node, values) == [2] for node in (mean, variance)):
        return None
    return _Norm(difference.input[0], float(numpy_helper.to_array(epsilon).reshape(-1)[0]))


def _axes(node: onnx.NodeProto, values: dict[str, onnx.TensorProto]) -> list[int]:
    """Give the axes, an input from opset 18 on and an attribute before."""
    if len(node.input) > 1 and node.input[1] in values:
        return [int(axis) for axis in numpy_helper.to_array(values[node.input[1]])]
    return [axis for item in node.attribute if item.name == "axes" for axis in item.ints]


def _only_taker(index: GraphIndex, node: onnx.NodeProto) -> onnx.NodeProto | None:
    takers = index.takers.get(node.output[0], [])
    return takers[0] if len(takers) == 1 else None

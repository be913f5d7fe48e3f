"""Masked and sliced assignments of an exporter, rewritten without gathering, scattering or counting.

x[mask] becomes all of x, and y[mask] = v a choice per element; y[..., 0] = v becomes a concatenation. No shape then
depends on data any more, which is what lets a graph be folded, and what TensorRT needs of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from engines.errors import GraphError
from engines.runtime.graph import GraphIndex, constant, replace, rewire

Array: TypeAlias = NDArray[Any]
Runs: TypeAlias = Sequence[Mapping[str, Array]]
"""For each trial run: tensor name -> what it held."""

_TO_END: Final = 2**62


def gather_to_choice(graph: onnx.GraphProto, runs: Runs) -> None:
    """Rewrite x[mask] and y[mask] = v. GraphError where a mask is used in a way that is not known.

    Elements that the mask leaves out are computed too, from zeros, and then not chosen: their values, which may be no
    numbers at all, reach nothing.
    """
    index = GraphIndex(graph)
    for node in [n for n in graph.node if n.op_type == "NonZero"]:
        mask = node.input[0]
        (transposed,) = index.takers[node.output[0]]
        takers = index.takers[transposed.output[0]]
        if transposed.op_type != "Transpose" or any(
            taker.op_type not in {"GatherND", "ScatterND", "Shape"} for taker in takers
        ):
            raise GraphError(f"the mask {mask} is used in a way that is not known")
        for taker in takers:
            if taker.op_type == "GatherND":
                _take_all(graph, taker, mask, runs)
            elif taker.op_type == "ScatterND":
                _choose(graph, taker, mask, runs)
            else:
                _keep_all(graph, taker, index)


def _take_all(graph: onnx.GraphProto, gather: onnx.NodeProto, mask: str, runs: Runs) -> None:
    """x[mask], shape [masked, ...], becomes x with the mask's axes flattened."""
    source, result = gather.input[0], gather.output[0]
    rest = runs[0][source].shape[runs[0][mask].ndim :]
    shape = constant(graph, f"{result}/shape", np.array([-1, *rest]))
    nodes = []
    if not rest:  # the masked values themselves: those outside could lead to an index that is out of range
        zero = constant(graph, f"{result}/zero", np.zeros((), runs[0][source].dtype))
        nodes.append(helper.make_node("Where", [mask, source, zero], [f"{result}/safe"]))
        source = f"{result}/safe"
    replace(graph, gather, [*nodes, helper.make_node("Reshape", [source, shape], [result])])


def _choose(graph: onnx.GraphProto, scatter: onnx.NodeProto, mask: str, runs: Runs) -> None:
    """y[mask] = v becomes v where the mask is on, else y."""
    data, _, values = scatter.input
    result = scatter.output[0]
    if runs[0][data].shape != runs[0][mask].shape:
        raise GraphError(f"the mask {mask} assigns rows, not elements")
    shapes = np.array([run[data].shape for run in runs])
    varies = (shapes != shapes[0]).any(axis=0)
    if varies.sum() > 1:
        raise GraphError(f"the shape of {data} varies in more than one axis")
    shape = constant(graph, f"{result}/shape", np.where(varies, -1, shapes[0]))
    nodes = [
        helper.make_node("Reshape", [values, shape], [f"{result}/values"]),
        helper.make_node("Where", [mask, f"{result}/values", data], [result]),
    ]
    replace(graph, scatter, nodes)


def _keep_all(graph: onnx.GraphProto, shape: onnx.NodeProto, index: GraphIndex) -> None:
    """v[:number of masked elements] becomes v: there are as many as there are elements now."""
    waiting = [shape]
    while waiting:
        node = waiting.pop()
        for taker in index.takers.get(node.output[0], []):
            if taker.op_type == "Slice":
                graph.node.remove(taker)
                rewire(graph, taker.output[0], taker.input[0])
            else:
                waiting.append(taker)


def scatter_to_concat(graph: onnx.GraphProto, runs: Runs) -> None:
    """Rewrite y[..., 0:1] = v and y[..., -1:] = v, whose index grids took dozens of nodes to build."""
    for scatter in [n for n in graph.node if n.op_type == "ScatterND"]:
        data, indices, column = scatter.input
        sides = {_side(run[data], run[indices], run[column]) for run in runs}
        side = sides.pop()
        if side is None or sides:
            continue
        result = scatter.output[0]
        rest = f"{result}/rest"
        first, last = (1, _TO_END) if side == "first" else (0, -1)
        bounds = [
            constant(graph, f"{result}/{name}", np.array([number]))
            for name, number in (("from", first), ("to", last), ("axis", -1))
        ]
        parts = [column, rest] if side == "first" else [rest, column]
        nodes = [
            helper.make_node("Slice", [data, *bounds], [rest]),
            helper.make_node("Concat", parts, [result], axis=-1),
        ]
        replace(graph, scatter, nodes)


def _side(data: Array, indices: Array, values: Array) -> str | None:
    """Tell which end of the last axis is assigned; None for any other assignment."""
    column = (*data.shape[:-1], 1)
    if values.shape != column or indices.shape != (*column, data.ndim):
        return None
    grid = np.indices(column)
    if any((indices[..., axis] != grid[axis]).any() for axis in range(data.ndim - 1)):
        return None
    places = np.unique(indices[..., -1])
    if places.size != 1:
        return None
    return {0: "first", data.shape[-1] - 1: "last"}.get(int(places[0]))

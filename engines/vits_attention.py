"""The relative positions of VITS's attention, computed where they are and nowhere else.

Each position attends to its neighbours up to a window of four with embeddings of their own (Shaw et al.,
'Self-attention with relative position representations', 2018). The exported graph pads these 9 embeddings with zeros to
2 P - 1, multiplies by all of them and then shifts rows; here only the 9 are multiplied, and a band is shifted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from engines.runtime.choices import Array
from engines.runtime.graph import GraphIndex, constant, prune, replace


def narrow_relative_attention(model: onnx.ModelProto, length_of: str) -> int:
    """Rewrite each layer of a folded acoustic graph in place; gives how many products became narrow.

    `length_of` is the input whose second axis is P. A graph of another form is left as it is.
    """
    graph = model.graph
    index = GraphIndex(graph)
    embeddings = {t.name: t for t in graph.initializer if len(t.dims) == 3 and t.dims[1] % 2 == 1}  # noqa: PLR2004
    lengths = _Lengths(graph, length_of)
    count = 0
    for product in [node for node in graph.node if node.op_type == "MatMul"]:
        name = product.input[1]
        key = _source(index, name, ("Transpose", "Unsqueeze", "Slice", "Pad"))
        value = _source(index, name, ("Unsqueeze", "Slice", "Pad"))
        if key in embeddings:
            end = _follow(index, product.output[0])
            if end is not None:
                _narrow_keys(graph, product, end, numpy_helper.to_array(embeddings[key]), lengths)
                count += 1
        elif value in embeddings:
            weights = _source(index, product.input[0], ("Slice", "Reshape", "Pad", "Reshape", "Pad"))
            if weights is not None:
                _narrow_values(graph, product, weights, numpy_helper.to_array(embeddings[value]), lengths)
                count += 1
    if count:
        lengths.place()
    prune(model)
    return count


class _Lengths:
    """Small tensors that depend on P, made once for all layers."""

    def __init__(self, graph: onnx.GraphProto, length_of: str) -> None:
        self._graph = graph
        self._nodes: list[onnx.NodeProto] = []

        def add(op: str, inputs: list[str], result: str, axis: int | None = None) -> str:
            self._nodes.append(helper.make_node(op, inputs, [result], axis=axis))
            return result

        def fixed(name: str, *values: int) -> str:
            return constant(graph, f"relative/{name}", np.array(values))

        shape = add("Shape", [length_of], "relative/shape")
        length = add("Gather", [shape, fixed("axis", 1)], "relative/length", axis=0)
        self.minus = add("Neg", [length], "relative/minus_length")
        self.rows = add("Concat", [fixed("as_before", 0, 0), length, fixed("rest", -1)], "relative/rows", axis=0)
        self.pad_columns = add("Concat", [fixed("seven", *[0] * 7), length], "relative/pad_columns", axis=0)
        self.pad_flat = add("Concat", [fixed("five", *[0] * 5), length], "relative/pad_flat", axis=0)
        self.flat = fixed("flat", 0, 0, -1)
        self.zero = fixed("zero", 0)

    def place(self) -> None:
        """Put them before all that uses them."""
        for node in reversed(self._nodes):
            self._graph.node.insert(0, node)


def _source(index: GraphIndex, name: str, op_types: Sequence[str]) -> str | None:
    """Follow first inputs upwards through just these operators."""
    for op_type in op_types:
        node = index.maker.get(name)
        if node is None or node.op_type != op_type:
            return None
        name = node.input[0]
    return str(name)


def _follow(index: GraphIndex, name: str) -> onnx.NodeProto | None:
    """Follow the shifting of a product, which nobody else reads, to its last node; None where it is another form."""
    seen: list[onnx.NodeProto] = []
    while True:
        takers = index.takers.get(name, [])
        if len(takers) != 1:
            return None
        if takers[0].op_type == "Add":
            shifts = [node.op_type for node in seen]
            return seen[-1] if shifts[:4] == ["Pad", "Reshape", "Pad", "Reshape"] and "Slice" in shifts else None
        if takers[0].op_type not in {"Pad", "Reshape", "Slice"}:
            return None
        seen.append(takers[0])
        name = takers[0].output[0]


def _narrow_keys(
    graph: onnx.GraphProto, product: onnx.NodeProto, end: onnx.NodeProto, embedding: Array, lengths: _Lengths
) -> None:
    """Q [.., P, d] times 9 embeddings gives a band [.., P, 9]; row i of it belongs at columns i - 4 to i + 4."""
    result = end.output[0]
    reach = embedding.shape[1] // 2
    keys = constant(graph, f"{result}/embedding", embedding.transpose(0, 2, 1)[None])
    bounds = [
        constant(graph, f"{result}/{name}", np.array([number]))
        for name, number in (("first", reach), ("last", -reach), ("axis", 3))
    ]
    flat_axis = constant(graph, f"{result}/flat_axis", np.array([2]))
    band, padded, flat, cut, rows = (f"{result}/{name}" for name in ("band", "padded", "flat", "cut", "rows"))
    replace(
        graph,
        end,
        [
            helper.make_node("MatMul", [product.input[0], keys], [band]),
            helper.make_node("Pad", [band, lengths.pad_columns], [padded]),
            helper.make_node("Reshape", [padded, lengths.flat], [flat]),
            helper.make_node("Slice", [flat, lengths.zero, lengths.minus, flat_axis], [cut]),
            helper.make_node("Reshape", [cut, lengths.rows], [rows]),  # one column less: each row moves one on
            helper.make_node("Slice", [rows, *bounds], [result]),
        ],
    )


def _narrow_values(
    graph: onnx.GraphProto, product: onnx.NodeProto, weights: str, embedding: Array, lengths: _Lengths
) -> None:
    """Row i of the band [.., P, 9] is columns i - 4 to i + 4 of the weights [.., P, P]."""
    result = product.output[0]
    reach, width = embedding.shape[1] // 2, embedding.shape[1]
    values = constant(graph, f"{result}/embedding", embedding[None])
    sides = constant(graph, f"{result}/sides", np.array([0, 0, 0, reach, 0, 0, 0, reach]))
    axis, last = (constant(graph, f"{result}/{n}", np.array([v])) for n, v in (("axis", 3), ("last", width)))
    padded, flat, longer, rows, band = (f"{result}/{name}" for name in ("padded", "flat", "longer", "rows", "band"))
    replace(
        graph,
        product,
        [
            helper.make_node("Pad", [weights, sides], [padded]),
            helper.make_node("Reshape", [padded, lengths.flat], [flat]),
            helper.make_node("Pad", [flat, lengths.pad_flat], [longer]),
            helper.make_node("Reshape", [longer, lengths.rows], [rows]),  # one column more: each row moves one back
            helper.make_node("Slice", [rows, lengths.zero, last, axis], [band]),
            helper.make_node("MatMul", [band, values], [result]),
        ],
    )

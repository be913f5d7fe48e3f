"""Graphs whose inputs have fixed shapes: what depends on shapes alone is computed ahead."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from engines.errors import GraphError
from engines.runtime.graph import GraphIndex, constant, cut, prune, rewire
from engines.runtime.ort import evaluate

Shapes = dict[str, tuple[int, ...]]


def static_shapes(model: onnx.ModelProto) -> Shapes:
    """Give the shapes of those tensors of which they are known before any run."""
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    graph = inferred.graph
    found: Shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for item in (*graph.input, *graph.value_info, *graph.output):
        if item.type.tensor_type.HasField("shape"):
            dims = item.type.tensor_type.shape.dim
            if all(dim.HasField("dim_value") for dim in dims):
                found[item.name] = tuple(dim.dim_value for dim in dims)
    return found


def fold_static(model: onnx.ModelProto) -> Shapes:
    """Make constants of all that follows from fixed shapes, and drop additions of zeros; gives the shapes.

    GraphError where the shape of any tensor stays open.
    """
    while any(node.op_type == "Shape" for node in model.graph.node):
        shapes = static_shapes(model)
        known = [node for node in model.graph.node if node.op_type == "Shape" and node.input[0] in shapes]
        if not known:
            break
        for node in known:
            model.graph.node.remove(node)
            constant(model.graph, node.output[0], np.array(shapes[node.input[0]]))
        _compute_ahead(model)
    _compute_ahead(model)
    _drop_zeros(model)
    prune(model)
    shapes = static_shapes(model)
    loose = {node.op_type for node in model.graph.node if any(name and name not in shapes for name in node.output)}
    if loose:
        raise GraphError(f"its shapes are not fixed by those of its inputs: {', '.join(sorted(loose))}")
    return shapes


def _compute_ahead(model: onnx.ModelProto) -> None:
    """Run what takes nothing but constants."""
    graph = model.graph
    given = GraphIndex(graph).downstream(item.name for item in graph.input)
    ahead = [node for node in graph.node if not any(name in given for name in node.output)]
    names = [name for node in ahead for name in node.output if name]
    if not names:
        return
    part = cut(model, "constants", [], [onnx.ValueInfoProto(name=name) for name in names])
    values = evaluate(part.SerializeToString(), {}, names)
    for node in ahead:
        graph.node.remove(node)
    for name, array in values.items():
        constant(graph, name, array)


def _drop_zeros(model: onnx.ModelProto) -> None:
    """Drop x + 0 where the zeros do not make x wider."""
    graph = model.graph
    shapes = static_shapes(model)
    zeros = {tensor.name for tensor in graph.initializer if not np.any(numpy_helper.to_array(tensor))}
    for node in [n for n in graph.node if n.op_type == "Add" and any(name in zeros for name in n.input)]:
        first, second = node.input
        kept = first if second in zeros else second
        if shapes.get(kept) == shapes.get(node.output[0]) is not None:
            graph.node.remove(node)
            rewire(graph, node.output[0], kept)

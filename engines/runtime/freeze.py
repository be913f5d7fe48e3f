"""A graph for inputs of one shape: whatever follows from shapes becomes a constant, and no shape is left open.

An engine that is built ahead, such as TensorRT's, then has nothing to work out but data.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from engines.errors import GraphError
from engines.runtime.choices import Array
from engines.runtime.fold import dependence
from engines.runtime.graph import constant, copied, prune, replace
from engines.runtime.ort import evaluate


def freeze(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> onnx.ModelProto:
    """Give `model` for inputs of just the shapes that `feeds`, a complete set of inputs, have.

    The result computes the same. GraphError where a shape depends on what the inputs hold; EngineError where what
    follows from the shapes cannot be computed.
    """
    model = copied(model)
    graph = model.graph
    for item in graph.input:
        _set_shape(item, feeds[item.name].shape)
    _compute_what_follows(model, feeds)
    prune(model)
    del graph.value_info[:]
    inferred = shape_inference.infer_shapes(model, strict_mode=True).graph
    shapes = {item.name: shape_of(item) for item in (*inferred.input, *inferred.value_info, *inferred.output)}
    for node in graph.node:
        for name in node.output:
            if name and shapes.get(name) is None:
                raise GraphError(f"the shape of {name}, a {node.op_type}, depends on more than the inputs' shapes")
        if node.op_type == "Reshape":  # what comes out, not what was asked for, which may have a -1 or a 0 in it
            node.input[1] = constant(graph, f"{node.output[0]}/frozen_shape", np.array(shapes[node.output[0]], np.int64))
    for item in graph.output:
        _set_shape(item, shapes[item.name] or ())
    prune(model)
    return model


def sum_by_product(model: onnx.ModelProto) -> None:
    """Make cumulative sums over the last axis products with a triangle of ones: TensorRT would loop over them.

    `model` has the shapes that `freeze` gave it. GraphError for a sum of another kind.
    """
    graph = model.graph
    inferred = shape_inference.infer_shapes(model, strict_mode=True).graph
    shapes = {item.name: shape_of(item) or () for item in (*inferred.input, *inferred.value_info)}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in [n for n in graph.node if n.op_type == "CumSum"]:
        result, shape = node.output[0], shapes[node.input[0]]
        axis = int(numpy_helper.to_array(constants[node.input[1]]))
        if axis not in {-1, len(shape) - 1} or any(attribute.i for attribute in node.attribute):
            raise GraphError(f"{result} is a cumulative sum of another kind than along the last axis")
        ones = np.triu(np.ones((shape[-1], shape[-1]), np.float32))
        triangle = constant(graph, f"{result}/triangle", ones)
        replace(graph, node, [helper.make_node("MatMul", [node.input[0], triangle], [result])])
    prune(model)


def shape_of(item: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    """Give the shape that a graph states of a tensor; None where an axis is open."""
    if not item.type.tensor_type.HasField("shape"):
        return None
    axes = item.type.tensor_type.shape.dim
    return tuple(axis.dim_value for axis in axes) if all(axis.HasField("dim_value") for axis in axes) else None


def _compute_what_follows(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> None:
    """Put constants, each content once, in the place of what nodes with data take from nodes without."""
    graph = model.graph
    data = dependence(graph, set()).data
    constants = {tensor.name for tensor in graph.initializer}
    with_data = [node for node in graph.node if any(name in data for name in node.output)]
    wanted = {name for node in with_data for name in node.input if name} - data - constants
    told = copied(model)
    del told.graph.output[:]
    told.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(wanted))
    known: dict[tuple[object, ...], str] = {}
    names = {}
    for name, array in evaluate(told.SerializeToString(), feeds, sorted(wanted)).items() if wanted else ():
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in known:
            known[key] = f"{name}/frozen"
            graph.initializer.append(numpy_helper.from_array(np.array(array, order="C"), known[key]))
        names[name] = known[key]
    for node in with_data:
        node.input[:] = [names.get(name, name) for name in node.input]


def _set_shape(item: onnx.ValueInfoProto, shape: tuple[int, ...]) -> None:
    del item.type.tensor_type.shape.dim[:]
    for length in shape:
        item.type.tensor_type.shape.dim.add().dim_value = length

"""The acoustic part with static shapes, for engines that are built ahead: one graph per bucket of phoneme ids.

A pack's acoustic graph computes one sentence of just its own length, and has lost its masks for that. Here they come
back, and only where one position reaches another: in front of convolutions wider than one, and in the attention's
softmax. Everything else is done for each position apart, so that what stands in the padding reaches nothing. Durations
leave the graph before they are rounded; `engines.alignment` does the rest. Needs onnx: for building engines only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from engines.errors import GraphError
from engines.pack import Pack
from engines.runtime.choices import Array
from engines.runtime.freeze import freeze
from engines.runtime.graph import GraphIndex, constant, copied, cut, prune, replace, value

_IDS: Final = "input"
_LENGTHS: Final = "input_lengths"
_NOISE: Final = "noise_duration"
_PRIOR_NOISE: Final = "noise_prior"
_MASK: Final = "mask/inside"

PRIOR: Final = "prior"
"""The one output."""

_FORBIDDEN: Final = -1e4
"""What VITS's attention has for a position that is not there: finite in FP16, and its exponential is 0."""


def static_acoustic(source: Pack | onnx.ModelProto, buckets: Iterable[int]) -> dict[int, bytes]:
    """Give the graph of each bucket, serialized; `source` is a pack, or the acoustic graph that lies in one.

    GraphError where the graph is not of the form that this can make static, EngineError where it cannot be run.
    """
    model = onnx.load(source.acoustic) if isinstance(source, Pack) else source
    return {bucket: encoder_graph(model, phonemes=bucket).SerializeToString() for bucket in buckets}


def encoder_graph(acoustic: onnx.ModelProto, *, phonemes: int) -> onnx.ModelProto:
    """Make of a pack's acoustic graph what computes up to `phonemes` ids, P, to the point of their alignment.

    ids int64 `input` [1, P], of which the first `input_lengths` int64 [1] count; scales float32 [3]; float32
    `noise_duration` [1, 2, P] and int64 `sid` [1] where the acoustic graph has them -> float32 `prior` [1, 2 C + 1, P],
    as `alignment.align` takes it. GraphError and EngineError as `static_acoustic`.
    """
    model = copied(acoustic)
    graph = model.graph
    means, log_scales, durations = _before_alignment(GraphIndex(graph))
    graph.node.append(helper.make_node("Concat", [means, log_scales, durations], [PRIOR], axis=1))
    inputs = [item for item in graph.input if item.name != _PRIOR_NOISE]
    encoder = cut(model, "encoder", inputs, [value(PRIOR, TensorProto.FLOAT, [1, "rows", "phonemes"])])
    _mask(encoder.graph, phonemes)
    encoder = freeze(encoder, _feeds(encoder.graph, phonemes))
    _sum_by_product(encoder)
    prune(encoder)
    onnx.checker.check_model(encoder)
    return encoder


def _feeds(graph: onnx.GraphProto, phonemes: int) -> Mapping[str, Array]:
    feeds: dict[str, Array] = {
        _IDS: np.zeros((1, phonemes), np.int64),
        _LENGTHS: np.array([phonemes]),
        "scales": np.ones(3, np.float32),
        _NOISE: np.zeros((1, 2, phonemes), np.float32),
        "sid": np.zeros(1, np.int64),
    }
    return {item.name: feeds[item.name] for item in graph.input}


def _before_alignment(index: GraphIndex) -> tuple[str, str, str]:
    """Name the means, the logarithms of the scales and the durations, each [1, .., P], where the alignment takes them.

    The alignment, the path of VITS, is all that depends on the rounded durations; each of the two others meets it in
    one matrix product.
    """
    graph = index.graph
    rounding = [node for node in graph.node if node.op_type == "Ceil"]
    if len(rounding) != 1:
        raise GraphError(f"it is not a VITS graph: it rounds {len(rounding)} times where durations are once")
    path = index.downstream(rounding[0].output)
    latents = index.maker[graph.output[0].name]
    noise = index.downstream([_PRIOR_NOISE])
    if latents.op_type != "Add" or len({name in noise for name in latents.input}) != 2:  # noqa: PLR2004
        raise GraphError("it is not a VITS graph: its latents are no sum of a mean and noise")
    mean, noisy = sorted(latents.input, key=lambda name: name in noise)
    while index.maker[noisy].op_type == "Mul":
        factors = index.maker[noisy].input
        scale = next((name for name in factors if name in path and name not in noise), None)
        if scale is not None and index.maker[scale].op_type == "Exp":
            return (
                _aligned(index, mean, path),
                _aligned(index, index.maker[scale].input[0], path),
                rounding[0].input[0],
            )
        noisy = next(name for name in factors if name in noise)
    raise GraphError("it is not a VITS graph: its noise has no scale of its own")


def _aligned(index: GraphIndex, name: str, path: set[str]) -> str:
    """Give what becomes `name` by Transpose, MatMul with the path, Transpose."""
    turned = index.maker[name]
    product = index.maker.get(turned.input[0])
    rows = index.maker.get(product.input[1]) if product is not None and product.op_type == "MatMul" else None
    if (
        product is None
        or rows is None
        or [turned.op_type, rows.op_type] != ["Transpose"] * 2
        or product.input[0] not in path
        or rows.input[0] in path
    ):
        raise GraphError(f"it is not a VITS graph: {name} is not aligned by a matrix product")
    return str(rows.input[0])


def _mask(graph: onnx.GraphProto, phonemes: int) -> None:
    """Let no position beyond `input_lengths`, a new input, reach another one."""
    graph.input.insert(1, value(_LENGTHS, TensorProto.INT64, [1]))
    positions = constant(graph, "mask/positions", np.arange(phonemes)[None, None, :])
    zero = constant(graph, "mask/zero", np.zeros((), np.float32))
    forbidden = constant(graph, "mask/forbidden", np.array(_FORBIDDEN, np.float32))
    index = GraphIndex(graph)
    weights = {tensor.name: tensor.dims for tensor in graph.initializer}
    masked: dict[str, str] = {}
    for node in list(graph.node):
        name = node.input[0] if node.input else ""
        if node.op_type == "Conv" and node.input[1] in weights and list(weights[node.input[1]][2:]) == [1]:
            continue
        if node.op_type == "Conv":
            other = zero
        elif node.op_type == "Softmax" and _weighs_positions(index, node):
            other = forbidden
        else:
            continue
        if name not in masked:
            masked[name] = f"{name}/masked"
            place = list(graph.node).index(node)
            graph.node.insert(place, helper.make_node("Where", [_MASK, name, other], [masked[name]]))
        node.input[0] = masked[name]
    graph.node.insert(0, helper.make_node("Less", [positions, _LENGTHS], [_MASK]))


def _weighs_positions(index: GraphIndex, softmax: onnx.NodeProto) -> bool:
    """Tell an attention's softmax from one over a spline's bins: values are multiplied with its weights."""
    return any(taker.op_type == "MatMul" for taker in index.takers.get(softmax.output[0], []))


def _sum_by_product(model: onnx.ModelProto) -> None:
    """Make cumulative sums over the last axis products with a triangle of ones: TensorRT has loops for them."""
    graph = model.graph
    inferred = onnx.shape_inference.infer_shapes(model).graph
    shapes = {item.name: item.type.tensor_type.shape.dim for item in inferred.value_info}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in [n for n in graph.node if n.op_type == "CumSum"]:
        axes = shapes[node.input[0]]
        axis = int(numpy_helper.to_array(constants[node.input[1]]))
        if node.attribute and any(a.i for a in node.attribute):
            raise GraphError(f"{node.output[0]} sums in a way that is not known")
        if axis not in {-1, len(axes) - 1}:
            raise GraphError(f"{node.output[0]} sums over positions")
        size = axes[-1].dim_value
        triangle = constant(graph, f"{node.output[0]}/triangle", np.triu(np.ones((size, size), np.float32)))
        replace(graph, node, [helper.make_node("MatMul", [node.input[0], triangle], list(node.output))])

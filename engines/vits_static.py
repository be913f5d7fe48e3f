"""The acoustic part with static shapes, for engines that are built ahead: one graph per bucket of phoneme ids.

A pack's acoustic graph computes one sentence of just its own length, and has lost its masks for that. Here they come
back, and only where one position reaches another: in front of convolutions wider than one, and in the attention's
softmax. Everything else is done for each position apart, so that what stands in the padding reaches nothing.
Needs onnx: for building engines only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from engines.errors import GraphError
from engines.pack import Pack
from engines.runtime.graph import GraphIndex, constant, copied, value
from engines.runtime.half import half, rounded
from engines.runtime.ort import OrtEngine
from engines.runtime.static import fold_static, static_shapes, sum_by_product
from engines.vits_encoder import PRIOR
from engines.vits_graph import trial

_LENGTHS: Final = "input_lengths"
_INSIDE: Final = "mask/inside"

_FORBIDDEN: Final = -1e4
"""What VITS's attention has for a position that is not there: finite in FP16, and its exponential is 0."""

_ERROR: Final = 1e-3
"""Largest difference to the acoustic graph, absolute or relative: float32 sums in another order give up to 1e-5 (the
default voice), any one of its 30 masks left out at least 0.04."""

_HALF_ERROR: Final = 0.05
"""The same in FP16, where the default voice has up to 0.02, in the durations."""


def static_acoustic(
    source: Pack | onnx.ModelProto, buckets: Iterable[int], *, in_half: bool = False
) -> dict[int, bytes]:
    """Give the graph of each bucket, serialized and compared; `source` is a pack, or the acoustic graph of one.

    `in_half`: FP16, as far as it does no harm. GraphError where the graph is not of the form that this can make static,
    or FP16 is too coarse for it; EngineError where it cannot be run.
    """
    model = onnx.load(source.acoustic) if isinstance(source, Pack) else source
    graphs = {}
    with closing(OrtEngine(model.SerializeToString())) as unpadded:
        for bucket in buckets:
            graph = encoder_graph(model, phonemes=bucket)
            _compare(unpadded, graph, f"fp32 graph for {bucket} ids", _ERROR)
            if in_half:
                graph = half(graph, keep=_needs_float(graph))
                _compare(unpadded, rounded(graph), f"fp16 graph for {bucket} ids", _HALF_ERROR)
            graphs[bucket] = graph.SerializeToString()
    return graphs


def encoder_graph(acoustic: onnx.ModelProto, *, phonemes: int) -> onnx.ModelProto:
    """Make of a pack's acoustic graph what computes up to `phonemes` ids, P, to the point of their alignment.

    ids int64 `input` [1, P], of which the first `input_lengths` int64 [1] count; scales float32 [3]; float32
    `noise_duration` [1, 2, P] and int64 `sid` [1] where the acoustic graph has them -> float32 `prior` [1, 2 C + 1, P],
    all that `alignment.align` takes in one, as an engine has one output. GraphError and EngineError as
    `static_acoustic`.
    """
    encoder = copied(acoustic)
    _mask(encoder.graph, phonemes)
    for axis in (axis for item in encoder.graph.input for axis in item.type.tensor_type.shape.dim if axis.dim_param):
        axis.dim_value = phonemes
    fold_static(encoder)
    sum_by_product(encoder)
    (output,) = encoder.graph.output
    output.CopyFrom(value(PRIOR, TensorProto.FLOAT, [*static_shapes(encoder)[PRIOR]]))
    onnx.checker.check_model(encoder)
    return encoder


def _mask(graph: onnx.GraphProto, phonemes: int) -> None:
    """Let no position beyond `input_lengths`, a new input, reach another one."""
    index = GraphIndex(graph)
    graph.input.append(value(_LENGTHS, TensorProto.INT64, [1]))
    positions = constant(graph, "mask/positions", np.arange(phonemes)[None, None, :])
    nothing = constant(graph, "mask/nothing", np.zeros((), np.float32))
    forbidden = constant(graph, "mask/forbidden", np.array(_FORBIDDEN, np.float32))
    narrow = {tensor.name for tensor in graph.initializer if list(tensor.dims[2:]) == [1]}
    nodes = [helper.make_node("Less", [positions, _LENGTHS], [_INSIDE])]
    masked: dict[str, str] = {}
    for node in graph.node:
        instead = ""
        if node.op_type == "Conv" and node.input[1] not in narrow:
            instead = nothing
        # Values are multiplied with the weights of an attention; a spline has a softmax over its bins, too.
        elif node.op_type == "Softmax" and any(t.op_type == "MatMul" for t in index.takers.get(node.output[0], ())):
            instead = forbidden
        if instead:
            name = node.input[0]
            if name not in masked:
                masked[name] = f"{name}/masked"
                nodes.append(helper.make_node("Where", [_INSIDE, name, instead], [masked[name]]))
            node.input[0] = masked[name]
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _needs_float(graph: onnx.ModelProto) -> Callable[[onnx.NodeProto], bool]:
    """Tell the nodes that FP16 would harm: what serves the durations alone, 8 % of the weights.

    Durations are rounded up, and their splines take roots of differences of what is nearly equal. Of 14,800 ids in 152
    sentences of kiosks and robots, 77 lasted longer or shorter with everything in FP16; with the rest in float32 one
    sentence's durations were no numbers at all. With this part in float32 8 ids changed, by a frame each, and the error
    of the means is at -63 dB. Layer norms, softmax and sums in float32 as well made no difference to that.
    """
    index = GraphIndex(graph.graph)
    means, log_scales, _ = index.maker[PRIOR].input
    in_half = index.upstream([means, log_scales])
    return lambda node: node.output[0] not in in_half


def _compare(unpadded: OrtEngine, graph: onnx.ModelProto, name: str, most: float) -> None:
    """Run sentences with and without padding, which is filled with speech. GraphError where it makes a difference."""
    bucket = graph.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    feeds = trial(graph, bucket, np.random.default_rng(0))
    with closing(OrtEngine(graph.SerializeToString())) as padded:
        for count in {1, (bucket + 1) // 2, bucket}:
            short = {
                name: np.ascontiguousarray(array[..., :count] if array.ndim > 1 else array)
                for name, array in feeds.items()
                if name != _LENGTHS
            }
            expected = unpadded.run(short)[PRIOR]
            found = padded.run({**feeds, _LENGTHS: np.array([count])})[PRIOR][..., :count]
            error = float((np.abs(found - expected) / (1 + np.abs(expected))).max())
            if not error <= most:
                raise GraphError(f"its {name} differs by {error:.2g} on {count} of them")

"""Cut a VITS acoustic part where it begins to depend on how long each phoneme lasts. Needs onnx; only imports do.

What follows, the alignment, repeats columns and adds noise: `engines.alignment` does it in numpy, in less memory (VITS
multiplies with a matrix of ids by frames, 11 MB for a very long sentence) and so that no shape in the graph depends on
data. It also tells how long each phoneme lasts.
"""

from __future__ import annotations

from typing import Final

import onnx
from onnx import TensorProto, helper

from engines.errors import GraphError
from engines.runtime.graph import GraphIndex, copied, cut, value

PRIOR: Final = "prior"
_NOISE: Final = "noise_prior"


def encoder(acoustic: onnx.ModelProto) -> onnx.ModelProto:
    """Cut the alignment off the acoustic part of a voice: what is left gives one column per phoneme id.

    Inputs as the acoustic part has them, but for `noise_prior` -> float32 `prior` [1, 2 C + 1, P], all that
    `alignment.align` takes in one, as an engine has one output. GraphError where the graph is not of that form.
    """
    model = copied(acoustic)
    graph = model.graph
    parts = _before_alignment(GraphIndex(graph))
    graph.node.append(helper.make_node("Concat", parts, [PRIOR], axis=1))
    inputs = [item for item in graph.input if item.name != _NOISE]
    return cut(model, "encoder", inputs, [value(PRIOR, TensorProto.FLOAT, [1, "rows", "phonemes"])])


def _before_alignment(index: GraphIndex) -> list[str]:
    """Name the means, the logarithms of the scales and the durations, each [1, .., P], where the alignment takes them.

    The alignment, the path of VITS, is all that depends on the rounded durations; the other two meet it in one matrix
    product each.
    """
    roundings = [node for node in index.graph.node if node.op_type == "Ceil"]
    if len(roundings) != 1:
        raise GraphError(f"it is not a VITS graph: it rounds {len(roundings)} times where it rounds durations once")
    path = index.downstream(roundings[0].output)
    latents = index.maker[index.graph.output[0].name]
    noise = index.downstream([_NOISE])
    mean, noisy = sorted(latents.input, key=lambda name: name in noise) if latents.op_type == "Add" else ("", "")
    while (scaling := index.maker.get(noisy)) is not None and scaling.op_type == "Mul":
        noisy, factor = sorted(scaling.input, key=lambda name: name not in noise)
        exponential = index.maker.get(factor)
        if exponential is not None and exponential.op_type == "Exp":
            aligned = [_unaligned(index, name, path) for name in (mean, exponential.input[0])]
            return [*aligned, roundings[0].input[0]]
    raise GraphError("it is not a VITS graph: its latents are no mean plus scaled noise")


def _unaligned(index: GraphIndex, name: str, path: set[str]) -> str:
    """Give what becomes `name` by a transposition, a product with the path and another transposition."""
    back = index.maker.get(name)
    product = index.maker.get(back.input[0]) if back is not None else None
    there = index.maker.get(product.input[1]) if product is not None and len(product.input) > 1 else None
    if (
        back is None
        or product is None
        or there is None
        or [back.op_type, product.op_type, there.op_type] != ["Transpose", "MatMul", "Transpose"]
        or product.input[0] not in path
        or there.input[0] in path
    ):
        raise GraphError(f"it is not a VITS graph: {name} is not aligned by a matrix product")
    return str(there.input[0])

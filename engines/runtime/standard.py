"""Operators of ONNX Runtime's own that its optimiser left in a model, as ONNX's, which every runtime knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import onnx
from onnx import helper

from engines.runtime.graph import replace_all

OWN: Final = "com.microsoft"
"""The domain of those operators."""

_OPSET: Final = 20
"""The first with Gelu."""

_NORM: Final = 3
"""Inputs of SkipLayerNormalization that are always there: two to add, and the scale; then shift and a bias."""


def standardise(model: onnx.ModelProto) -> None:
    """Write FastGelu, SkipLayerNormalization and FusedMatMul in ONNX's operators; what is another stays.

    ONNX Runtime fuses them again as it loads the graph; TensorRT would take them for plugins that it does not have.
    """
    if not any(entry.domain in {"", "ai.onnx"} and entry.version >= _OPSET for entry in model.opset_import):
        return
    graph = model.graph
    new: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        make = _MADE.get(node.op_type) if node.domain == OWN else None
        made = make(node, {item.name: helper.get_attribute_value(item) for item in node.attribute}) if make else []
        if made:
            new[node.output[0]] = made
    replace_all(graph, new)
    used = {node.domain for node in graph.node}
    kept = [entry for entry in model.opset_import if entry.domain in used | {""}]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def _gelu(node: onnx.NodeProto, _: Mapping[str, Any]) -> list[onnx.NodeProto]:
    source, made = node.input[0], []
    if len(node.input) > 1:
        source = f"{node.output[0]}/biased"
        made = [helper.make_node("Add", node.input, [source])]
    return [*made, helper.make_node("Gelu", [source], node.output, name=node.name, approximate="tanh")]


def _layer_norm(node: onnx.NodeProto, attributes: Mapping[str, Any]) -> list[onnx.NodeProto]:
    if sum(map(bool, node.output)) > 1:  # what it was made of is asked for too
        return []
    result, (first, second, *scaling) = node.output[0], node.input
    total = f"{result}/total"
    made = [helper.make_node("Add", [first, second], [total])]
    if len(node.input) > _NORM + 1:
        total = f"{result}/biased"
        made.append(helper.make_node("Add", [f"{result}/total", scaling.pop()], [total]))
    epsilon = attributes.get("epsilon", 1e-12)
    norm = helper.make_node("LayerNormalization", [total, *scaling], [result], name=node.name, epsilon=epsilon)
    return [*made, norm]


def _product(node: onnx.NodeProto, attributes: Mapping[str, Any]) -> list[onnx.NodeProto]:
    """Handle [batch, rows, columns], either of them turned."""
    if attributes.get("alpha", 1) != 1 or attributes.get("transBatchA") or attributes.get("transBatchB"):
        return []
    made, inputs = [], list(node.input)
    for place, letter in enumerate("AB"):
        if attributes.get(f"trans{letter}"):
            inputs[place] = f"{node.output[0]}/turned_{letter}"
            made.append(helper.make_node("Transpose", [node.input[place]], [inputs[place]], perm=[0, 2, 1]))
    return [*made, helper.make_node("MatMul", inputs, node.output, name=node.name)]


_MADE: Final[Mapping[str, Callable[[onnx.NodeProto, Mapping[str, Any]], list[onnx.NodeProto]]]] = {
    "FastGelu": _gelu,
    "SkipLayerNormalization": _layer_norm,
    "FusedMatMul": _product,
}

"""Graphs whose products were quantised dynamically, made float again; the weights stay as small on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from engines.errors import GraphError
from engines.runtime.graph import GraphIndex, constant

_PRODUCTS: Final = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}

_LSTM: Final = "DynamicQuantizeLSTM"
_LSTM_ATTRIBUTES: Final = frozenset({"direction", "hidden_size", "activations"})
_LSTM_INPUTS: Final = 8
"""Those it has in common with LSTM; the next four are scales and zero points of weights and recurrence."""


def dequantize(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give a copy whose ConvInteger, MatMulInteger and DynamicQuantizeLSTM are Conv, MatMul and LSTM.

    The integer weights stay in the file; ONNX Runtime makes floats of them once, as it loads the graph. What no output
    needs any more is left out. GraphError where an operator does not stand as quantisers of ONNX Runtime place it.
    """
    result: onnx.ModelProto = onnx.ModelProto.FromString(model.SerializeToString())
    _Rewriting(result.graph).run()
    used = {node.domain for node in result.graph.node}
    kept = [entry for entry in result.opset_import if entry.domain in used | {""}]
    del result.opset_import[:]
    result.opset_import.extend(kept)
    return result


class _Rewriting:
    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self._index = GraphIndex(graph)
        self._values = {tensor.name: tensor for tensor in graph.initializer}
        self._decoders: list[onnx.NodeProto] = []
        self._decoded: set[str] = set()

    def run(self) -> None:
        replaced: dict[str, onnx.NodeProto] = {}
        for node in self._graph.node:
            if node.op_type in _PRODUCTS:
                new = self._product(node)
                replaced[new.output[0]] = new
            elif node.op_type == _LSTM:
                new = self._lstm(node)
                replaced.update((name, new) for name in node.output if name)
        nodes = [next((replaced[name] for name in node.output if name in replaced), node) for node in self._graph.node]
        self._keep([*self._decoders, *nodes])

    def _product(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """Make x * w of quantise(x) * w -> [+ bias] -> to float -> * scales."""
        quantiser = self._index.maker[node.input[0]]
        if quantiser.op_type != "DynamicQuantizeLinear":
            raise GraphError(f"{node.name} takes no dynamically quantised input")
        following = self._only_taker(node.output[0])
        bias = ""
        if following.op_type == "Add":
            bias = self._source(self._other(following, node.output[0]))
            following = self._only_taker(following.output[0])
        scaling = self._only_taker(following.output[0])
        if following.op_type != "Cast" or scaling.op_type != "Mul":
            raise GraphError(f"{node.name} is followed by {following.op_type} and {scaling.op_type}")
        scales = self._index.maker[self._other(scaling, following.output[0])]
        scale = self._array(self._other(scales, quantiser.output[1]))
        zero = self._array(node.input[3]) if len(node.input) > 3 and node.input[3] else np.zeros(1)  # noqa: PLR2004
        inputs = [quantiser.input[0], self._weights(node.input[1], self._array(node.input[1]), scale, zero)]
        if bias:
            values = self._array(bias).reshape(-1)
            inputs.append(constant(self._graph, f"{bias}_flat", values))
        made = helper.make_node(_PRODUCTS[node.op_type], inputs, [scaling.output[0]], name=f"{scaling.output[0]}_float")
        made.attribute.extend(node.attribute)
        return made

    def _lstm(self, node: onnx.NodeProto) -> onnx.NodeProto:
        inputs = list(node.input[:_LSTM_INPUTS])
        for place, scales in ((1, 8), (2, 10)):
            scale, zero = (self._array(node.input[scales + i]).reshape(-1, 1, 1) for i in range(2))
            turned = np.ascontiguousarray(self._array(node.input[place]).transpose(0, 2, 1))
            inputs[place] = self._weights(node.input[place], turned, scale, zero)
        made = helper.make_node("LSTM", inputs, list(node.output), name=f"{node.output[0]}_float")
        made.attribute.extend(item for item in node.attribute if item.name in _LSTM_ATTRIBUTES)
        return made

    def _weights(self, name: str, values: NDArray[Any], scale: NDArray[Any], zero: NDArray[Any]) -> str:
        """Add what makes floats of integer weights; gives its output."""
        result = f"{name}_float"
        if result not in self._decoded:
            self._decoded.add(result)
            stored = constant(self._graph, f"{name}_stored", values)
            steps: list[tuple[str, list[str], dict[str, Any]]] = [
                ("Cast", [stored], {"to": onnx.TensorProto.FLOAT}),
                ("Sub", [constant(self._graph, f"{name}_zero", zero.astype(np.float32))], {}),
                ("Mul", [constant(self._graph, f"{name}_scale", scale.astype(np.float32))], {}),
            ]
            before: list[str] = []
            for number, (kind, inputs, attributes) in enumerate(steps):
                output = result if number == len(steps) - 1 else f"{result}_{number}"
                self._decoders.append(helper.make_node(kind, before + inputs, [output], name=output, **attributes))
                before = [output]
        return result

    def _keep(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Leave what the outputs need, each node once."""
        needed = {item.name for item in self._graph.output}
        kept: list[onnx.NodeProto] = []
        seen: set[int] = set()
        for node in reversed(nodes):
            if id(node) not in seen and needed.intersection(node.output):
                seen.add(id(node))
                kept.append(node)
                needed.update(node.input)
        kept.reverse()
        constants = [tensor for tensor in self._graph.initializer if tensor.name in needed]
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in kept]
        values = [onnx.TensorProto.FromString(tensor.SerializeToString()) for tensor in constants]
        del self._graph.node[:], self._graph.initializer[:], self._graph.value_info[:]
        self._graph.node.extend(copies)
        self._graph.initializer.extend(values)

    def _array(self, name: str) -> NDArray[Any]:
        if name not in self._values:
            raise GraphError(f"{name} is no constant")
        array: NDArray[Any] = numpy_helper.to_array(self._values[name])
        return array

    def _source(self, name: str) -> str:
        """Go up from an integer bias to the float constant that it is made of."""
        while name not in self._values:
            name = self._index.maker[name].input[0]
        return name

    def _only_taker(self, name: str) -> onnx.NodeProto:
        takers = self._index.takers.get(name, [])
        if len(takers) != 1:
            raise GraphError(f"{name} is taken by {len(takers)} nodes")
        return takers[0]

    @staticmethod
    def _other(node: onnx.NodeProto, name: str) -> str:
        return str(next(item for item in node.input if item != name))

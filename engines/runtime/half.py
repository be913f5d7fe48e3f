"""A graph in FP16, for networks that are strongly typed: each tensor has the type that the graph says.

Inputs and outputs stay float32. Weights become FP16, and casts stand wherever one precision meets the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, shape_inference

from engines.errors import GraphError
from engines.runtime.graph import copied, prune

_LARGEST: Final = float(np.finfo(np.float16).max)


def half(model: onnx.ModelProto, keep: Callable[[onnx.NodeProto], bool] = lambda _: False) -> onnx.ModelProto:
    """Give `model` with all float32 computed in FP16, but for the nodes that `keep` names: these stay float32.

    GraphError where a weight is too large for FP16.
    """
    model = copied(model)
    _Halving(model, keep).run()
    prune(model)
    onnx.checker.check_model(model, full_check=True)  # of types, too
    return model


def rounded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give what `half` made as a graph of float32 that rounds to FP16 after each node: what a GPU would compute.

    To try it on a CPU. ONNX Runtime has few kernels for FP16 there; it takes those for float32, and drops most of the
    rounding between them.
    """
    model = copied(model)
    graph = model.graph
    inferred = shape_inference.infer_shapes(model, strict_mode=True).graph
    halves = {item.name for item in inferred.value_info if item.type.tensor_type.elem_type == TensorProto.FLOAT16}
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT16:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
    made: list[onnx.NodeProto] = []
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT
        made.append(node)
        for i, name in enumerate(node.output):
            if name in halves:
                exact, coarse = f"{name}/exact", f"{name}/coarse"
                node.output[i] = exact
                made.append(helper.make_node("Cast", [exact], [coarse], name=coarse, to=TensorProto.FLOAT16))
                made.append(helper.make_node("Cast", [coarse], [name], name=name, to=TensorProto.FLOAT))
    del graph.node[:]
    graph.node.extend(made)
    onnx.checker.check_model(model)
    return model


class _Halving:
    """One pass over one graph, in its order: every tensor has been made, in one type, before it is taken."""

    def __init__(self, model: onnx.ModelProto, keep: Callable[[onnx.NodeProto], bool]) -> None:
        self._graph = model.graph
        self._keep = keep
        inferred = shape_inference.infer_shapes(model, strict_mode=True).graph
        typed = (*inferred.input, *inferred.value_info, *inferred.output)
        self._floats = {item.name for item in typed if item.type.tensor_type.elem_type == TensorProto.FLOAT}
        self._weights = {t.name: t for t in self._graph.initializer if t.data_type == TensorProto.FLOAT}
        self._floats |= set(self._weights)
        self._leaving = {item.name for item in self._graph.output}
        self._half: set[str] = set()
        """Tensors that are FP16 under their own names."""
        self._cast: dict[tuple[str, bool], str] = {}
        """(Tensor, to FP16) -> its copy in the other type."""

    def run(self) -> None:
        """Rewrite the nodes."""
        nodes = list(self._graph.node)
        made: list[onnx.NodeProto] = []
        for node in nodes:
            floats = [name for name in (*node.input, *node.output) if name in self._floats]
            halved = bool(floats) and not self._keep(node)
            for i, name in enumerate(node.input):
                if name in self._floats:
                    node.input[i], casts = self._as(name, halved=halved)
                    made += casts
            made += [node, *(self._outputs(node) if halved else ())]
        del self._graph.node[:]
        self._graph.node.extend(made)

    def _outputs(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        """Let a node make FP16; gives what makes float32 of that where it leaves the graph."""
        for attribute in node.attribute:
            if attribute.name in {"to", "dtype"} and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
            elif attribute.t.data_type == TensorProto.FLOAT:
                array = _in_half(numpy_helper.to_array(attribute.t), node.output[0])
                attribute.t.CopyFrom(numpy_helper.from_array(array, attribute.t.name))
        for i, name in enumerate(node.output):
            if name in self._leaving & self._floats:
                node.output[i] = self._cast[name, True] = f"{name}/half"
                yield helper.make_node("Cast", [node.output[i]], [name], to=TensorProto.FLOAT)
            elif name in self._floats:
                self._half.add(name)

    def _as(self, name: str, *, halved: bool) -> tuple[str, list[onnx.NodeProto]]:
        """Give the name of a tensor in the wanted type, and the node that makes it where it is new."""
        if halved == (name in self._half):
            return name, []
        if (name, halved) in self._cast:
            return self._cast[name, halved], []
        other = self._cast[name, halved] = f"{name}/{'half' if halved else 'float'}"
        if name in self._weights:
            array = _in_half(numpy_helper.to_array(self._weights[name]), name)
            self._graph.initializer.append(numpy_helper.from_array(array, other))
            return other, []
        to = TensorProto.FLOAT16 if halved else TensorProto.FLOAT
        return other, [helper.make_node("Cast", [name], [other], to=to)]


def _in_half(array: NDArray[np.float32], name: str) -> NDArray[np.float16]:
    largest = float(np.abs(array).max(initial=0))
    if largest > _LARGEST:
        raise GraphError(f"the constant {name} is too large for FP16: {largest:g}")
    return array.astype(np.float16)

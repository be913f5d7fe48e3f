"""ONNX surgery that knows nothing of voices: cut, replace, drop what does nothing, append a resampler."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from engines.errors import GraphError
from engines.resampling import HALF_TAPS, block_size, filter_bank


class GraphIndex:
    """Who makes and who takes each tensor of a graph; answers questions of reachability."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.constants = {tensor.name for tensor in graph.initializer}
        self.maker: dict[str, onnx.NodeProto] = {}
        self.takers: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in node.output:
                self.maker[name] = node
            for name in node.input:
                self.takers.setdefault(name, []).append(node)

    def upstream(self, names: Iterable[str], stop: Iterable[str] = ()) -> set[str]:
        """All tensors that `names` are computed from, `names` included, not looking beyond `stop`."""
        halt = set(stop)
        seen: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if not name or name in seen:
                continue
            seen.add(name)
            if name not in halt and name in self.maker:
                waiting.extend(self.maker[name].input)
        return seen

    def downstream(self, names: Iterable[str]) -> set[str]:
        """All tensors that are computed from `names`, `names` included."""
        seen: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for node in self.takers.get(name, ()):
                waiting.extend(node.output)
        return seen


def value(name: str, element: int, shape: list[int | str]) -> onnx.ValueInfoProto:
    """Describe a graph input or output."""
    return helper.make_tensor_value_info(name, element, shape)


def cut(
    model: onnx.ModelProto,
    name: str,
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
) -> onnx.ModelProto:
    """Copy the part of `model` that computes `outputs` from `inputs` and constants.

    GraphError where it needs anything else.
    """
    index = GraphIndex(model.graph)
    given = {item.name for item in inputs}
    needed = index.upstream((item.name for item in outputs), stop=given)
    missing = sorted(n for n in needed if n not in given and n not in index.maker and n not in index.constants)
    if missing:
        raise GraphError(f"the {name} part would also need {', '.join(missing)}")
    nodes = [node for node in model.graph.node if any(out in needed and out not in given for out in node.output)]
    constants = [tensor for tensor in model.graph.initializer if tensor.name in needed]
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def constant(graph: onnx.GraphProto, name: str, array: NDArray[np.generic]) -> str:
    """Add an initializer; gives its name."""
    graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return name


def rewire(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Let everybody who reads tensor `old` read `new`."""
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name == old:
                node.input[i] = new


def rename_output(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Call the output `old` of the graph `new`."""
    rewire(graph, old, new)
    for node in graph.node:
        for i, name in enumerate(node.output):
            if name == old:
                node.output[i] = new
    for item in graph.output:
        if item.name == old:
            item.name = new


def replace(graph: onnx.GraphProto, old: onnx.NodeProto, new: Sequence[onnx.NodeProto]) -> None:
    """Put nodes in the place of another."""
    position = list(graph.node).index(old)
    graph.node.remove(old)
    for offset, node in enumerate(new):
        graph.node.insert(position + offset, node)


def replace_all(graph: onnx.GraphProto, new: Mapping[str, Sequence[onnx.NodeProto]]) -> None:
    """Put nodes in the place of those whose first output is a key of `new`, all at once."""
    nodes = [made for node in graph.node for made in new.get(node.output[0], [node])]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def constants(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Give the tensors that never change: initializers, and what nodes named Constant make."""
    found = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            found.update((node.output[0], item.t) for item in node.attribute if item.name == "value")
    return found


def other_input(node: onnx.NodeProto, name: str) -> str:
    """Give what a node of two inputs takes beside `name`."""
    return str(node.input[1] if node.input[0] == name else node.input[0])


def drop_ones(graph: onnx.GraphProto, ones: str) -> None:
    """Remove every multiplication by tensor `ones`, which is known to hold nothing else.

    GraphError where it is used in another way.
    """
    for node in [n for n in graph.node if ones in n.input]:
        if node.op_type != "Mul":
            raise GraphError(f"mask {ones} is used by a {node.op_type}, not only multiplied with")
        kept = node.input[0] if node.input[1] == ones else node.input[1]
        graph.node.remove(node)
        rewire(graph, node.output[0], kept)


def drop_neutral(graph: onnx.GraphProto) -> int:
    """Remove arithmetic with whole tensors of zeros that an exporter left behind; gives the number of nodes.

    Handles x + 0, x - 0 and x * exp(-0), the zeros being ConstantOfShape without or with a zero value.
    The results stay the same bit for bit.
    """
    index = GraphIndex(graph)
    zeros = {node.output[0] for node in graph.node if node.op_type == "ConstantOfShape" and _is_zero(node)}
    zeros |= {n.output[0] for n in graph.node if n.op_type == "Neg" and n.input[0] in zeros}
    ones = {n.output[0] for n in graph.node if n.op_type == "Exp" and n.input[0] in zeros}
    before = len(graph.node)
    for node in list(graph.node):
        neutral = {"Add": zeros, "Sub": zeros, "Mul": ones}.get(node.op_type, set())
        kept = next((a for a, b in (node.input, reversed(node.input)) if b in neutral), None) if neutral else None
        if kept is None or (node.op_type == "Sub" and node.input[0] in zeros):
            continue
        if not _same_shape_by_construction(index, node, kept):
            continue
        graph.node.remove(node)
        rewire(graph, node.output[0], kept)
    _remove_unused(graph)
    return before - len(graph.node)


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give a copy that may be changed."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def prune(model: onnx.ModelProto) -> None:
    """Drop nodes and constants that no output needs."""
    _remove_unused(model.graph)


def _is_zero(node: onnx.NodeProto) -> bool:
    return all(not np.any(numpy_helper.to_array(a.t)) for a in node.attribute if a.name == "value")


def _same_shape_by_construction(index: GraphIndex, node: onnx.NodeProto, kept: str) -> bool:
    """Whether the neutral operand has the shape of `kept`, so that it broadcasts nothing."""
    other = next(name for name in node.input if name != kept)
    while index.maker[other].op_type in {"Neg", "Exp"}:
        other = index.maker[other].input[0]
    shape = index.maker.get(index.maker[other].input[0])
    if shape is None or shape.op_type != "Shape":
        return False
    made_by = index.maker.get(kept)
    return shape.input[0] == kept or (
        made_by is not None and made_by.op_type in {"Add", "Sub", "Mul"} and shape.input[0] in made_by.input
    )


def _remove_unused(graph: onnx.GraphProto) -> None:
    needed = GraphIndex(graph).upstream(item.name for item in graph.output)
    for node in [n for n in graph.node if not any(out in needed for out in n.output)]:
        graph.node.remove(node)
    for tensor in [t for t in graph.initializer if t.name not in needed]:
        graph.initializer.remove(tensor)


def append_resampler(graph: onnx.GraphProto, samples: str, rate: int, *, starts: str, gain: str, output: str) -> None:
    """Let `graph` turn tensor `samples` (any shape) of `rate` hertz into 48 kHz PCM, `gain` times as loud.

    Adds inputs `starts` (int64 [blocks]: where, in `samples`, each block to emit begins) and `gain` (float32 [1]),
    and makes `output` (float32 [blocks * output block]) the only output. Beyond its ends the signal counts as zero.
    """
    block_in, block_out = block_size(rate)
    tap_count = block_in + 2 * HALF_TAPS

    def named(part: str) -> str:
        return f"resample/{part}"

    def add(op: str, inputs: list[str], result: str) -> str:
        graph.node.append(helper.make_node(op, inputs, [result], name=result))
        return result

    flat = add("Reshape", [samples, constant(graph, named("flat_shape"), np.array([-1]))], named("flat"))
    pads = constant(graph, named("pads"), np.array([HALF_TAPS, HALF_TAPS + block_in]))
    padded = add("Pad", [flat, pads], named("padded"))
    column = add("Unsqueeze", [starts, constant(graph, named("axis"), np.array([1]))], named("starts"))
    table = constant(graph, named("taps"), np.arange(tap_count)[None, :])
    indices = add("Add", [column, table], named("indices"))
    frames = add("Gather", [padded, indices], named("frames"))
    bank = constant(graph, named("bank"), filter_bank(rate))
    blocks = add("MatMul", [frames, bank], named("blocks"))
    flat_blocks = add("Reshape", [blocks, named("flat_shape")], named("samples"))
    add("Mul", [flat_blocks, gain], output)
    graph.input.extend([value(starts, TensorProto.INT64, ["blocks"]), value(gain, TensorProto.FLOAT, [1])])
    del graph.output[:]
    graph.output.append(value(output, TensorProto.FLOAT, [f"{block_out}*blocks"]))


def upsampling(graph: onnx.GraphProto) -> int:
    """Give the product of all transposed convolutions' strides: samples per latent frame."""
    strides = [
        attribute.ints[0]
        for node in graph.node
        if node.op_type == "ConvTranspose"
        for attribute in node.attribute
        if attribute.name == "strides"
    ]
    return math.prod(strides)

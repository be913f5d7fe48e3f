"""Graphs without their exporter's bookkeeping: what depends on the input's length alone is computed ahead.

An exported model spends much of its time on thousands of small nodes that work out shapes, index grids and masks.
Which tensors depend on nothing but the length is found in the graph; what they hold is found by running the graph at
several lengths. Constants, and integers that grow linearly with the length, are then replaced by what they are;
multiplications by ones, additions of zeros and choices that always fall the same way are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from engines.errors import GraphError
from engines.runtime.choices import Array, Runs, gather_to_choice, scatter_to_concat
from engines.runtime.graph import constant, copied, prune, rewire
from engines.runtime.ort import evaluate

_SHAPING: Final[Mapping[str, tuple[int, ...]]] = {
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "NonZero": (0,),
    "Pad": (1,),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "Unsqueeze": (1,),
}
"""Operator -> the inputs whose values, not only their shapes, decide the shape of what comes out."""

_MADE: Final = "fold/"
"""Begins the name of each tensor that was made here, and needs no further folding."""

_SMALL: Final = 4096
"""Elements up to which a tensor that never changes becomes a constant: a long table would only make the file larger."""


@dataclass(slots=True)
class _Dependence:
    """Which tensors hold data, or have a shape that data decide. All others follow from the length."""

    data: set[str] = field(default_factory=set)
    data_shaped: set[str] = field(default_factory=set)


def _dependence(graph: onnx.GraphProto, loose: set[str]) -> _Dependence:
    """Follow data through the graph; `loose` are inputs whose shape has nothing to do with the length."""
    found = _Dependence({item.name for item in graph.input}, set(loose))
    for node in graph.node:
        inputs = [name for name in node.input if name]
        deciding = [node.input[i] for i in _SHAPING.get(node.op_type, ()) if i < len(node.input)]
        shaped = node.op_type != "Shape" and (
            any(name in found.data_shaped for name in inputs) or any(name in found.data for name in deciding)
        )
        holds = inputs[0] in found.data_shaped if node.op_type == "Shape" else any(n in found.data for n in inputs)
        for name in node.output:
            if shaped:
                found.data_shaped.add(name)
            if holds or shaped:
                found.data.add(name)
    return found


def fold(
    model: onnx.ModelProto, length_of: str, trials: Sequence[Mapping[str, Array]], loose: set[str]
) -> onnx.ModelProto:
    """Fold what depends on the length of input `length_of` (its second axis) alone.

    `trials` are complete inputs at three lengths or more, with ordinary data; `loose` names inputs whose shapes are
    independent of the length. GraphError where the trials cannot be run. The results stay the same, but whoever
    calls this compares them anyway.
    """
    model = copied(model)
    lengths = [int(trial[length_of].shape[1]) for trial in trials]
    if len(set(lengths)) < 3:  # noqa: PLR2004  two would fit any line
        raise GraphError("folding needs trials at three lengths")
    gather_to_choice(model.graph, _run(model, trials))
    prune(model)
    runs = _run(model, trials)
    scatter_to_concat(model.graph, runs)
    prune(model)
    while True:
        before = len(model.graph.node)
        runs = _run(model, trials)
        folder = _Folder(model.graph, runs, lengths, length_of, _dependence(model.graph, loose))
        folder.fold()
        prune(model)
        if len(model.graph.node) == before:
            return model


def _run(model: onnx.ModelProto, trials: Sequence[Mapping[str, Array]]) -> Runs:
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    names = [name for node in model.graph.node for name in node.output if name]
    told = copied(model)
    outputs = {item.name for item in told.graph.output}
    told.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in outputs)
    content = told.SerializeToString()
    return [{**constants, **trial, **evaluate(content, trial, names)} for trial in trials]


class _Folder:
    """One pass over one graph."""

    def __init__(
        self, graph: onnx.GraphProto, runs: Runs, lengths: Sequence[int], length_of: str, dependence: _Dependence
    ) -> None:
        self._graph = graph
        self._runs = runs
        self._lengths = np.array(lengths)
        self._length_of = length_of
        self._dependence = dependence
        self._made: dict[tuple[object, ...], str] = {}
        self._counter = 0
        self._front: list[onnx.NodeProto] = []

    def fold(self) -> None:
        """Drop what does nothing, then replace what follows from the length."""
        for node in list(self._graph.node):
            kept = self._is_idle(node)
            if kept is not None:
                self._graph.node.remove(node)
                rewire(self._graph, node.output[0], kept)
        for node in self._graph.node:
            if node.output[0].startswith(_MADE):
                continue
            for i, name in enumerate(node.input):
                if name and name not in self._dependence.data and not name.startswith(_MADE):
                    node.input[i] = self._simplest(node, i)
        for node in reversed(self._front):
            self._graph.node.insert(0, node)

    def _values(self, name: str) -> list[Array]:
        return [run[name] for run in self._runs]

    def _is_idle(self, node: onnx.NodeProto) -> str | None:
        """Give the input that a node passes on as it is, for any data; None where it does something."""
        if node.output[0] not in self._dependence.data or node.output[0] in {o.name for o in self._graph.output}:
            return None
        kept: str | None = None
        if node.op_type in {"Expand", "Reshape", "Slice", "Pad"}:
            kept = node.input[0] if self._same(node.input[0], node.output[0]) else None
        elif node.op_type in {"Mul", "Div", "Add", "Sub"}:
            neutral = 1 if node.op_type in {"Mul", "Div"} else 0
            first, second = node.input
            if self._uniform(second) == neutral:
                kept = first
            elif node.op_type in {"Mul", "Add"} and self._uniform(first) == neutral:
                kept = second
        elif node.op_type == "Where":
            choice = self._uniform(node.input[0])
            kept = None if choice is None else node.input[1 if choice else 2]
        if kept is None or any(
            before.shape != after.shape
            for before, after in zip(self._values(kept), self._values(node.output[0]), strict=True)
        ):
            return None
        return kept

    def _same(self, name: str, other: str) -> bool:
        return all(np.array_equal(a, b) for a, b in zip(self._values(name), self._values(other), strict=True))

    def _uniform(self, name: str) -> float | bool | None:
        """Give the one value that all elements of a tensor have at any length; None where there is no such value."""
        if name in self._dependence.data:
            return None
        values = self._values(name)
        if values[0].size == 0 or values[0].dtype.kind not in "fib":
            return None
        first = values[0].flat[0]
        return first.item() if all((value == first).all() for value in values) else None

    def _simplest(self, node: onnx.NodeProto, position: int) -> str:
        """Give a cheaper tensor for an input that follows from the length; the same one where there is none."""
        name = str(node.input[position])
        if name in {tensor.name for tensor in self._graph.initializer}:
            return name
        values = self._values(name)
        reshapes = node.op_type == "Reshape" and position == 1
        if reshapes:  # what comes out, not what was asked for, which may have a -1 or a 0 in it
            values = [np.array(result.shape) for result in self._values(node.output[0])]
        if all(np.array_equal(values[0], value) for value in values) and values[0].size <= _SMALL:
            return self._constant(values[0])
        if any(value.shape != values[0].shape for value in values) or values[0].dtype != np.int64:
            return name
        line = self._line(values)
        if line is None:
            return name
        slope, start = line
        if reshapes and np.count_nonzero(slope) == 1:
            return self._constant(np.where(slope != 0, -1, start))
        return self._linear(slope, start)

    def _line(self, values: list[Array]) -> tuple[Array, Array] | None:
        """Give (slope, start) with value = slope * length + start in every run; None where there is no such line."""
        first, second = self._lengths[0], self._lengths[1]
        slope = (values[1] - values[0]) // (second - first)
        start = values[0] - slope * first
        fits = all((slope * length + start == v).all() for length, v in zip(self._lengths, values, strict=True))
        return (slope, start) if fits else None

    def _constant(self, array: Array) -> str:
        key = ("constant", array.dtype.str, array.shape, array.tobytes())
        if key not in self._made:
            self._made[key] = constant(self._graph, self._name("constant"), np.array(array, order="C"))
        return self._made[key]

    def _linear(self, slope: Array, start: Array) -> str:
        key = ("linear", slope.shape, slope.tobytes(), start.tobytes())
        if key not in self._made:
            length = self._length()
            scaled, result = self._name("scaled"), self._name("linear")
            self._front += [
                helper.make_node("Mul", [length, self._constant(slope)], [scaled]),
                helper.make_node("Add", [scaled, self._constant(start)], [result]),
            ]
            self._made[key] = result
        return self._made[key]

    def _length(self) -> str:
        key = ("length",)
        if key not in self._made:
            shape, result = self._name("shape"), self._name("length")
            self._front += [
                helper.make_node("Shape", [self._length_of], [shape]),
                helper.make_node("Gather", [shape, self._constant(np.array(1))], [result], axis=0),
            ]
            self._made[key] = result
        return self._made[key]

    def _name(self, what: str) -> str:
        taken = {name for node in self._graph.node for name in node.output} if self._counter == 0 else set()
        self._counter += 1
        while (name := f"{_MADE}{what}_{self._counter}") in taken or name in self._runs[0]:
            self._counter += 1
        return name

"""What Kokoro's decoder does most, in fewer passes over its samples; the parts that TensorRT has no operator for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from engines.runtime.graph import GraphIndex, constant, constants, other_input, prune, replace_all

_SAME: Final = 1e-4
"""How far a product of a Snake's two factors may be from 1: the exporter adds 1e-9 to one before it divides."""

_NOTHING: Final = 1e-5
"""What stands for nothing in a spectrum, relative to the constant that it is of. Rounding errors are some 1e-6 of it;
the least that a voiced sound has in a bin is ten times as much."""

_SILENT_PHASES: Final = (1.571, 0.0, 2.490, -2.125, 0.793, -2.129, 0.173, 2.927, -1.345, 2.736, -1.547)
"""Radians, for each bin of the spectrum of a negative constant, of what is nothing but rounding errors where ONNX
Runtime's STFT computes it on x86-64. Of the first bin that is the imaginary part only: it is above zero, so that the
phase is pi and not -pi."""


def fuse_snakes(model: onnx.ModelProto) -> int:
    """Compute x + sin(a x)^2 / a behind a norm as (u + sin(u)^2) / a, the norm giving u = a x; gives how many.

    Snake: Ziyin et al., 'Neural networks fail to learn periodic functions', 2020. Two passes over the samples less,
    and the division is by a constant per channel, which the convolution behind it can take over.
    """
    graph = model.graph
    index, values = GraphIndex(graph), constants(graph)
    new: dict[str, list[onnx.NodeProto]] = {}
    for sine in graph.node:
        snake = _snake(index, values, sine) if sine.op_type == "Sin" else None
        if snake is None:
            continue
        norm, end, factor, divisor = snake
        result, u = end.output[0], norm.output[0]
        flat = constant(graph, f"{u}/factor", numpy_helper.to_array(values[factor]).reshape(-1))
        scale, shift, squared, total = (f"{u}/{part}" for part in ("scaled", "shifted", "squared", "total"))
        scaled = onnx.NodeProto.FromString(norm.SerializeToString())
        scaled.input[1:] = [scale, shift]
        new[u] = [
            helper.make_node("Mul", [norm.input[1], flat], [scale]),
            helper.make_node("Mul", [norm.input[2], flat], [shift]),
            scaled,
        ]
        new[result] = [
            helper.make_node("Sin", [u], [sine.output[0]], name=sine.name),
            helper.make_node("Mul", [sine.output[0]] * 2, [squared]),
            helper.make_node("Add", [u, squared], [total]),
            helper.make_node("Mul", [total, divisor], [result]),
        ]
        new[sine.output[0]] = []
    replace_all(graph, new)
    prune(model)
    return len(new) // 3


def _snake(
    index: GraphIndex, values: dict[str, onnx.TensorProto], sine: onnx.NodeProto
) -> tuple[onnx.NodeProto, onnx.NodeProto, str, str] | None:
    """Recognise x + sin(factor * x)^2 * divisor by its sine: the norm before it, its last node, the two constants."""
    scaling = index.maker.get(sine.input[0])
    factor = next((name for name in scaling.input if name in values), None) if scaling is not None else None
    if scaling is None or scaling.op_type != "Mul" or factor is None:
        return None
    source = other_input(scaling, factor)
    norm = index.maker.get(source)
    ends = index.takers[source]
    square = index.takers[sine.output[0]][0]
    if norm is None or norm.op_type != "InstanceNormalization" or len(ends) != 2:  # noqa: PLR2004  the sine, the sum
        return None
    division = index.takers[square.output[0]][0]
    end = index.takers[division.output[0]][0]
    divisor = other_input(division, square.output[0])
    kinds = [node.op_type for node in (square, division, end)]
    if kinds != ["Mul", "Mul", "Add"] or [*square.input] != [sine.output[0]] * 2 or end not in ends:
        return None
    if divisor not in values:
        return None
    product = numpy_helper.to_array(values[factor]) * numpy_helper.to_array(values[divisor])
    return (norm, end, factor, divisor) if np.allclose(product, 1, atol=_SAME) else None


def replace_stft(model: onnx.ModelProto) -> None:
    """Make a convolution of the STFT that tells the decoder magnitudes and phases of the source.

    ONNX Runtime's operator took 1.5 % of the time, in one thread; TensorRT has none.

    Between voiced sounds the source is a constant, of whose spectrum most is nothing. Its phases were those of rounding
    errors, to which the decoder listens: other ones sounded 3.4 dB otherwise there. So the convolution has them in its
    weights, and all backends the same.
    """
    graph = model.graph
    index, values = GraphIndex(graph), constants(graph)
    for node in [node for node in graph.node if node.op_type == "STFT"]:
        (turned,) = index.takers[node.output[0]]
        picks = {int(numpy_helper.to_array(values[pick.input[1]])): pick for pick in index.takers[turned.output[0]]}
        step, size = (int(numpy_helper.to_array(values[node.input[place]])) for place in (1, 3))
        if turned.op_type != "Transpose" or set(picks) != {0, 1} or 2 * (len(_SILENT_PHASES) - 1) != size:
            continue
        window = numpy_helper.to_array(values[node.input[2]])
        channel, weights, both = (f"{node.output[0]}/{part}" for part in ("channel", "weights", "both"))
        constant(graph, weights, _spectrum(window))
        axis = constant(graph, f"{node.output[0]}/axis", np.array([1]))
        new: dict[str, list[onnx.NodeProto]] = {turned.output[0]: [], picks[0].output[0]: [], picks[1].output[0]: []}
        new[node.output[0]] = [
            helper.make_node("Unsqueeze", [node.input[0], axis], [channel]),
            helper.make_node("Conv", [channel, weights], [both], name=both, strides=[step], kernel_shape=[size]),
            helper.make_node("Split", [both], [picks[0].output[0], picks[1].output[0]], axis=1, num_outputs=2),
        ]
        replace_all(graph, new)
    prune(model)


def _spectrum(window: NDArray[np.float32]) -> NDArray[np.float32]:
    """Make the weights [2 * bins, 1, size] that give real parts, then imaginary ones."""
    size = window.size
    angles = 2 * np.pi * np.arange(size // 2 + 1)[:, None] * np.arange(size)[None, :] / size
    parts = np.stack([np.cos(angles), -np.sin(angles)]) * window.astype(np.float64)
    phases = np.array(_SILENT_PHASES)
    silent = -_NOTHING * np.stack([np.cos(phases), np.sin(phases)])
    nothing = np.abs(parts.sum(axis=2)) < _NOTHING * np.abs(parts).sum(axis=2).max()
    parts += np.where(nothing, silent - parts.sum(axis=2), 0)[:, :, None] / size
    return parts.reshape(-1, 1, size).astype(np.float32)


def divide_by_window(model: onnx.ModelProto) -> None:
    """Divide the first samples of the inverse STFT by the sum of its windows by a multiplication.

    The export divides those at which that sum is above zero, by NonZero and ScatterND, of which TensorRT builds no
    engine or a slow one. Beyond the first window it has no sums: they are all the same there.
    """
    graph = model.graph
    index, values = GraphIndex(graph), constants(graph)
    for node in [node for node in graph.node if node.op_type == "ScatterND"]:
        sums = _window_sums(index, values, node)
        if sums is None:
            continue
        factors = np.ones_like(sums)
        factors[sums > np.finfo(np.float32).tiny] /= sums[sums > np.finfo(np.float32).tiny]
        result = node.output[0]
        names = {
            part: f"{result}/{part}" for part in ("start", "end", "last", "axis", "factors", "head", "tail", "out")
        }
        for part, number in {"start": 0, "end": sums.size, "last": np.iinfo(np.int64).max, "axis": 1}.items():
            constant(graph, names[part], np.array([number]))
        constant(graph, names["factors"], factors[None, :])
        head = [node.input[0], names["start"], names["end"], names["axis"]]
        tail = [node.input[0], names["end"], names["last"], names["axis"]]
        made = [
            helper.make_node("Slice", head, [names["head"]]),
            helper.make_node("Mul", [names["head"], names["factors"]], [names["out"]]),
            helper.make_node("Slice", tail, [names["tail"]]),
            helper.make_node("Concat", [names["out"], names["tail"]], [result], axis=1),
        ]
        replace_all(graph, {result: made})
    prune(model)


def _window_sums(
    index: GraphIndex, values: dict[str, onnx.TensorProto], node: onnx.NodeProto
) -> NDArray[np.float32] | None:
    """Find the table that a ScatterND's updates were divided by; None where they were not."""
    division = _first_inputs(
        index, node.input[2], lambda name: name in index.maker and index.maker[name].op_type == "Div"
    )
    table = division and _first_inputs(index, index.maker[division].input[1], lambda name: name in values)
    if not table or len(values[table].dims) != 1:
        return None
    return numpy_helper.to_array(values[table]).copy()


def _first_inputs(index: GraphIndex, name: str, found: Callable[[str], bool]) -> str | None:
    """Go up from a tensor by first inputs to one that is looked for."""
    while name in index.maker or name in index.constants:
        if found(name):
            return name
        if name not in index.maker or not index.maker[name].input:
            return None
        name = index.maker[name].input[0]
    return None

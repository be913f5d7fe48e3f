"""Perth's two nets as graphs that take sound at 48 kHz. For `speakd watermark add` only.

Perth looks at 32 kHz in windows of 2048 samples, 320 apart, and changes the magnitudes of the lowest 128 bands. Windows
of 3072 samples, 480 apart, at 48 kHz are the same 64 ms, 10 ms and bands: nothing is resampled. What is above 2 kHz is
not touched, since the graph computes what the mark adds: those bands times (gain - 1), turned back into sound. Perth
leaves out windows of digital silence, for which the maximum of the whole utterance must be known: there is nothing in
them that could be changed. Beside Perth itself, in the middle of a sentence: what is added differs by -54 dB.
"""

from __future__ import annotations

from itertools import count
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from engines.perth import Weights
from engines.runtime.graph import constant, value
from engines.watermark import BANDS, CHANNELS, DELAY, HOP, LAYERS, PENDING, REACH, STATE, WIDTH, WINDOW
from engines.watermark_detector import SPEEDS

_OPSET: Final = 17
_IR: Final = 8
"""What ONNX Runtime 1.18 takes."""

_LOUDER: Final = 48 / 32
"""A window of half as many samples again has magnitudes half as large again."""

_FLOOR_DB: Final = -180.0
_SPAN_DB: Final = 195.0
"""Perth's magnitudes are 0 at -180 dB, below which there is nothing, and 1 at +15 dB."""

_DB: Final = float(20 / np.log(10))
_SLOPE: Final = 0.01
"""Of the leaky units."""


def marker_graph(weights: Weights) -> bytes:
    """Give the graph that marks: `signal` [state + n] to `marked` [state + n], n being a multiple of the hop.

    Either begins with a state, the second one for the next run; n samples follow, marked those of `DELAY` before them.
    """
    graph = _Graph("marker")
    parts = [DELAY, PENDING, 2 * BANDS * REACH, *[CHANNELS * (WIDTH - 1)] * LAYERS]
    ends = [int(end) for end in np.cumsum(parts)]
    heard, pending, bands, *layers = (
        graph.cut("signal", end - size, end) for size, end in zip(parts, ends, strict=True)
    )
    heard = graph.add("Concat", heard, graph.cut("signal", STATE, None), axis=0)
    spectra = _spectra(graph, graph.cut(heard, DELAY - (WINDOW - HOP), None))
    kept = []
    x = _magnitudes(graph, spectra)
    for layer in range(LAYERS + 2):
        if 1 <= layer <= LAYERS:
            before = graph.add("Reshape", layers[layer - 1], graph.shape(1, CHANNELS, WIDTH - 1))
            x = graph.add("Concat", before, x, axis=2)
            kept.append(graph.cut(x, -(WIDTH - 1), None, axis=2))
        x = _layer(graph, weights, f"encoder.layers.{layer}", x, leaky=layer <= LAYERS)
    gain = graph.add("Exp", graph.add("Mul", x, graph.number(_SPAN_DB / _DB)))
    gain = graph.add("Sub", gain, graph.number(1))
    gains = graph.add("Concat", gain, gain, axis=1)  # of real and imaginary parts
    spectra = graph.add("Concat", graph.add("Reshape", bands, graph.shape(1, 2 * BANDS, REACH)), spectra, axis=2)
    added = graph.add("Mul", graph.cut(spectra, 0, -REACH, axis=2), gains)
    sound = graph.add("ConvTranspose", added, graph.constant(_synthesis()), strides=[HOP])
    sound = graph.add("Reshape", sound, graph.shape(-1))
    # The first of these windows begins so many frames after the first of those that are still to be given out.
    late = PENDING - (WINDOW - HOP)
    sound = graph.add("Pad", sound, graph.constant(np.array([late, 0])))
    more = graph.add("Sub", graph.add("Shape", sound), graph.shape(PENDING))
    pending = graph.add("Pad", pending, graph.add("Concat", graph.shape(0), more, axis=0))
    mark = graph.add("Add", pending, sound)
    marked = graph.add("Add", graph.cut(heard, 0, -DELAY), graph.cut(mark, 0, -PENDING))
    states = [
        graph.cut(heard, -DELAY, None),
        graph.cut(mark, -PENDING, None),
        *(graph.add("Reshape", x, graph.shape(-1)) for x in (graph.cut(spectra, -REACH, None, axis=2), *kept)),
    ]
    graph.add("Concat", *states, marked, axis=0, name="marked")
    return graph.model([value("signal", TensorProto.FLOAT, ["n"])], [value("marked", TensorProto.FLOAT, ["m"])])


def detector_graph(weights: Weights) -> bytes:
    """Give the graph from `sound` [n] to what Perth's detectors make of it, each of which looks at another speed.

    `slow`, `normal`, `fast`: [2, windows at that speed], how much a window counts and how much it is marked; `level`:
    [windows], the sum of all magnitudes.
    """
    graph = _Graph("detector")
    magnitudes = _magnitudes(graph, _spectra(graph, "sound"))
    outputs = [value("level", TensorProto.FLOAT, ["windows"])]
    graph.add("ReduceSum", magnitudes, graph.shape(0, 1), keepdims=0, name="level")
    windows = graph.add("Cast", graph.add("Shape", magnitudes, start=2), to=TensorProto.FLOAT)
    for name, speed in SPEEDS.items():
        stretched = graph.add("Cast", graph.add("Mul", windows, graph.number(speed)), to=TensorProto.INT64)
        size = graph.add("Concat", graph.shape(1, BANDS), stretched, axis=0)
        x = graph.add("Resize", magnitudes, "", "", size, mode="linear", coordinate_transformation_mode="align_corners")
        for layer in range(LAYERS + 2):
            x = _layer(graph, weights, f"decoder.{name}_layers.{layer}", x, leaky=layer <= LAYERS, pad=True)
        graph.add("Squeeze", x, graph.shape(0), name=name)
        outputs.append(value(name, TensorProto.FLOAT, [2, f"{name}_windows"]))
    return graph.model([value("sound", TensorProto.FLOAT, ["n"])], outputs)


class _Graph:
    """Nodes one after another; each call gives the name of what it computes."""

    def __init__(self, name: str) -> None:
        self._graph = onnx.GraphProto(name=name)
        self._numbers = count()

    def add(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:  # noqa: ANN401  as onnx has them
        """Add a node with one output."""
        name = name or f"{op.lower()}/{next(self._numbers)}"
        self._graph.node.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, array: NDArray[np.generic]) -> str:
        """Add a tensor."""
        return constant(self._graph, f"constant/{next(self._numbers)}", array)

    def number(self, number: float) -> str:
        """Add a single float."""
        return self.constant(np.array(number, np.float32))

    def shape(self, *sizes: int) -> str:
        """Add a shape."""
        return self.constant(np.array(sizes))

    def cut(self, tensor: str, start: int, end: int | None, axis: int = 0) -> str:
        """Add a slice."""
        last = np.iinfo(np.int64).max if end is None else end
        return self.add("Slice", tensor, self.shape(start), self.shape(last), self.shape(axis))

    def model(self, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> bytes:
        """Give all of it as a file's content."""
        self._graph.input.extend(inputs)
        self._graph.output.extend(outputs)
        model = helper.make_model(self._graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
        onnx.checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString()
        return content


def _layer(graph: _Graph, weights: Weights, name: str, x: str, *, leaky: bool, pad: bool = False) -> str:
    kernel = weights[f"{name}.conv.weight"]
    beside = kernel.shape[2] // 2 if pad else 0
    constants = (graph.constant(kernel), graph.constant(weights[f"{name}.conv.bias"]))
    x = graph.add("Conv", x, *constants, pads=[beside, beside])
    return graph.add("LeakyRelu", x, alpha=_SLOPE) if leaky else x


def _spectra(graph: _Graph, sound: str) -> str:
    """Give the bands of each window of `sound` [n]: [1, bands' real and then imaginary parts, windows]."""
    signal = graph.add("Reshape", sound, graph.shape(1, 1, -1))
    return graph.add("Conv", signal, graph.constant(_analysis()[:, None, :].astype(np.float32)), strides=[HOP])


def _magnitudes(graph: _Graph, spectra: str) -> str:
    squares = graph.add("Mul", spectra, spectra)
    real, imaginary = graph.cut(squares, 0, BANDS, axis=1), graph.cut(squares, BANDS, None, axis=1)
    power = graph.add("Add", real, imaginary)
    floor = 10 ** (_FLOOR_DB / 10) * _LOUDER**2
    nepers = graph.add("Log", graph.add("Max", power, graph.number(floor)))
    scaled = graph.add("Mul", nepers, graph.number(_DB / 2 / _SPAN_DB))
    return graph.add("Add", scaled, graph.number((-_FLOOR_DB - _DB * np.log(_LOUDER)) / _SPAN_DB))


def _window() -> NDArray[np.float64]:
    """Give Hann's window, periodic."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)


def _analysis() -> NDArray[np.float64]:
    """Give the waves of each band's real and imaginary part under the window, [2 * bands, window]."""
    phases = 2 * np.pi * np.outer(np.arange(BANDS), np.arange(WINDOW)) / WINDOW
    return np.concatenate([np.cos(phases), -np.sin(phases)]) * _window()


def _synthesis() -> NDArray[np.float32]:
    """Give what turns spectra back into sound, [2 * bands, 1, window]: windows that overlap add up to one."""
    overlap = np.bincount(np.arange(WINDOW) % HOP, _window() ** 2)[np.arange(WINDOW) % HOP]
    waves = _analysis() / overlap * 2 / WINDOW
    waves[[0, BANDS]] /= 2  # band 0 has no mirror image
    kernel: NDArray[np.float32] = waves[:, None, :].astype(np.float32)
    return kernel

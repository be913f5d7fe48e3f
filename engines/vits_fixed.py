"""A vocoder part for windows of one fixed size, several at once. Needs onnx.

TensorRT wants static shapes and no arithmetic with them, so all of them become constants here. What lies outside the
utterance is masked at the input of each convolution that reaches across frames: it then sees what it sees at the ends
of an undivided pass, zeros, and a window that is longer than what is to be said gives the very same samples.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from engines.errors import GraphError
from engines.fixed_windows import WindowShape
from engines.resampling import HALF_TAPS
from engines.runtime.graph import GraphIndex, constant, copied, prune, upsampling, value
from engines.runtime.static import fold_static

_QUANTIZING: Final = frozenset({"QuantizeLinear", "DequantizeLinear"})
"""What may stand between an activation and its convolution, and must stay with the latter. Both keep zeros."""


def fixed_vocoder(model: onnx.ModelProto, shape: WindowShape, *, batch: int = 1) -> onnx.ModelProto:
    """Make of a pack's vocoder graph one that takes `batch` windows of `shape` at once.

    latents float32 [batch, C, frames], span int32 [batch, 2], starts int32 [batch, blocks], gain float32 [batch], sid
    int64 [batch] where the voice has several speakers -> pcm float32 [batch, blocks * block].

    `span`: which of the window's frames, from the first one to before the second, belong to the utterance; it may begin
    before frame 0, and at the latest after the flow's left margin. `starts` counts samples from the first frame that
    HiFi-GAN gets. GraphError where the graph is not as expected.
    """
    model = copied(model)
    graph = model.graph
    del graph.value_info[:]
    _fix_inputs(graph, shape, batch)
    _fix_crop(graph, shape)
    _fix_resampler(graph, shape, batch)
    prune(model)
    fold_static(model)
    _Masks(model, shape, batch).put()
    fold_static(model)
    onnx.checker.check_model(model)
    return model


def _fix_inputs(graph: onnx.GraphProto, shape: WindowShape, batch: int) -> None:
    inputs = {item.name: item for item in graph.input}
    absent = [name for name in ("latents", "crop", "starts", "gain") if name not in inputs]
    if absent:
        raise GraphError(f"it is no pack's vocoder part: it has no input {', '.join(absent)}")
    channels = inputs["latents"].type.tensor_type.shape.dim[1].dim_value
    fixed = [
        value("latents", TensorProto.FLOAT, [batch, channels, shape.frames]),
        value("span", TensorProto.INT32, [batch, 2]),
        value("starts", TensorProto.INT32, [batch, shape.blocks]),
        value("gain", TensorProto.FLOAT, [batch]),
    ]
    if "sid" in inputs:
        fixed.append(value("sid", TensorProto.INT64, [batch]))
    del graph.input[:]
    graph.input.extend(fixed)


def _fix_crop(graph: onnx.GraphProto, shape: WindowShape) -> None:
    crop = GraphIndex(graph).maker["crop/frames"]
    left, right = shape.crop
    crop.input[1] = constant(graph, "crop/first", np.array([left]))
    crop.input[2] = constant(graph, "crop/end", np.array([shape.frames - right]))


def _fix_resampler(graph: onnx.GraphProto, shape: WindowShape, batch: int) -> None:
    """Give the resampler that `append_resampler` made a row for each window."""
    index = GraphIndex(graph)
    taps, block_out = next(tensor.dims for tensor in graph.initializer if tensor.name == "resample/bank")
    padding = [HALF_TAPS, taps - HALF_TAPS]
    row = upsampling(graph) * shape.gan_frames

    def named(part: str, array: list[int]) -> str:
        return constant(graph, f"resample/rows_{part}", np.array(array))

    def put(op: str, source: str, parameter: str, result: str, *, before: onnx.NodeProto) -> None:
        graph.node.insert(list(graph.node).index(before), helper.make_node(op, [source, parameter], [result]))

    index.maker["resample/flat"].input[1] = named("shape", [batch, row])
    padded = index.maker["resample/padded"]
    padded.input[1] = named("pads", [0, padding[0], 0, padding[1]])
    padded.output[0] = "resample/padded_rows"
    frames = index.maker["resample/frames"]
    put("Reshape", "resample/padded_rows", named("joined", [-1]), "resample/padded", before=frames)
    index.maker["resample/starts"].input[1] = named("last_axis", [2])
    row_starts = np.arange(batch, dtype=np.int32)[:, None, None] * (row + sum(padding))
    table = constant(graph, "resample/rows_taps", np.arange(taps, dtype=np.int32) + row_starts)
    index.maker["resample/indices"].input[1] = table
    index.maker["resample/samples"].input[1] = named("pcm", [batch, shape.blocks * block_out])
    scaled = next(node for node in graph.node if "gain" in node.input)
    put("Unsqueeze", "gain", named("axis", [1]), "resample/gain", before=scaled)
    scaled.input[list(scaled.input).index("gain")] = "resample/gain"
    output = graph.output[0]
    output.CopyFrom(value(output.name, TensorProto.FLOAT, [batch, shape.blocks * block_out]))


class _Masks:
    """Zeros in place of what lies outside the utterance, wherever frames are mixed."""

    def __init__(self, model: onnx.ModelProto, shape: WindowShape, batch: int) -> None:
        self._graph = model.graph
        self._shape = shape
        self._batch = batch
        self._index = GraphIndex(model.graph)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
        self._tensors = {item.name: item.type.tensor_type for item in (*inferred.value_info, *inferred.input)}
        self._flowing = self._index.downstream(["latents"])
        self._cropped = self._index.downstream(["crop/frames"])
        self._made: dict[str, str] = {}
        self._front: list[onnx.NodeProto] = []

    def put(self) -> None:
        """Mask the input of each convolution over several frames, and what the resampler takes."""
        for node in list(self._graph.node):
            kernel = next((a.ints for a in node.attribute if a.name == "kernel_shape"), [1])
            mixes = node.input[0] in self._flowing and (node.op_type == "ConvTranspose" or max(kernel) > 1)
            if mixes or node.output[0] == "resample/flat":
                self._mask_input(node)
        for node in reversed(self._front):
            self._graph.node.insert(0, node)

    def _mask_input(self, node: onnx.NodeProto) -> None:
        maker = self._index.maker.get(node.input[0])
        while maker is not None and maker.op_type in _QUANTIZING:
            node, maker = maker, self._index.maker.get(maker.input[0])
        name = node.input[0]
        masked = f"{name}/masked"
        if name.endswith("/masked"):  # by another convolution that takes the same quantised tensor
            return
        if name not in self._made:
            product = helper.make_node("Mul", [name, self._mask(name)], [masked])
            self._graph.node.insert(0 if maker is None else list(self._graph.node).index(maker) + 1, product)
            self._made[name] = masked
        node.input[0] = masked

    def _mask(self, name: str) -> str:
        """Give ones within the utterance and zeros outside, of a shape that broadcasts to that of tensor `name`."""
        tensor = self._tensors[name]
        dims = [dim.dim_value for dim in tensor.shape.dim]
        part = "gan" if name in self._cropped else "flow"
        mask = f"mask/{part}_{dims[-1]}_{len(dims)}_{tensor.elem_type}"
        if mask in self._made:
            return mask
        self._made[mask] = mask
        column = [self._batch, *[1] * (len(dims) - 1)]
        positions = constant(self._graph, f"{mask}/positions", np.arange(dims[-1], dtype=np.int32))
        inside = f"{mask}/before_end"
        if part == "gan":  # begins within the utterance, with so many values per latent frame
            left = self._integer(f"{mask}/left", self._shape.crop[0])
            rate = self._integer(f"{mask}/rate", dims[-1] // self._shape.gan_frames)
            self._add("Sub", self._bound("end", 1, column), left, f"{mask}/frames")
            self._add("Mul", f"{mask}/frames", rate, f"{mask}/end")
            self._add("Less", positions, f"{mask}/end", inside)
        else:
            self._add("Less", positions, self._bound("end", 1, column), inside)
            self._add("GreaterOrEqual", positions, self._bound("first", 0, column), f"{mask}/after_first")
            inside = self._add("And", inside, f"{mask}/after_first", f"{mask}/inside")
        self._front.append(helper.make_node("Cast", [inside], [mask], to=tensor.elem_type))
        return mask

    def _bound(self, name: str, place: int, column: list[int]) -> str:
        """Give one of the two numbers in `span`, as a column for tensors of so many dimensions."""
        bound = f"mask/{name}_{len(column)}"
        if bound not in self._made:
            self._made[bound] = bound
            picked = constant(self._graph, f"{bound}/place", np.array(place))
            shape = constant(self._graph, f"{bound}/shape", np.array(column))
            self._front.append(helper.make_node("Gather", ["span", picked], [f"{bound}/picked"], axis=1))
            self._add("Reshape", f"{bound}/picked", shape, bound)
        return bound

    def _integer(self, name: str, number: int) -> str:
        return constant(self._graph, name, np.array(number, dtype=np.int32))

    def _add(self, op: str, first: str, second: str, result: str) -> str:
        self._front.append(helper.make_node(op, [first, second], [result]))
        return result

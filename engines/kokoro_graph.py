"""The graph of Kokoro (StyleTTS 2 with an iSTFT decoder), made to give 48 kHz and to tell durations."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from engines.errors import GraphError
from engines.kokoro_quick import divide_by_window, fuse_snakes, replace_stft
from engines.resampling import HALF_TAPS, block_size, filter_bank
from engines.runtime.dequantize import dequantize
from engines.runtime.graph import GraphIndex, constant, constants, value
from engines.runtime.instance_norm import fuse_instance_norms
from engines.runtime.planar import in_two_dimensions, scales_into_weights
from engines.runtime.standard import standardise

RATE: Final = 24_000
"""Hertz, of the decoder."""

FRAME: Final = 600
"""Samples per unit of a duration: the decoder's hop of 300, twice."""

INPUTS: Final = ("tokens", "style", "speed")
_SOUND: Final = "audio"


def prepare(model: onnx.ModelProto) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Give the graph as it was quantised, and the same in float, both made quicker.

    The float one takes 0.73 of the processor's time that it took as exported (one thread, AVX-512, median of pairs).
    Its decoder gives the same sound but for rounding, 110 dB below. Over the whole graph the same model at two levels
    of ONNX Runtime's own optimiser differs by 28 dB, as phases add up rounding errors of the pitch; so does this one.

    tokens int64 [1, P], style float32 [1, 256], speed float32 [1], gain float32 [1]
    -> pcm float32 [2 * samples] at 48 kHz, clipped at full scale; durations float32 [P], each `FRAME` samples.

    GraphError where it is not Kokoro's.
    """
    inputs = tuple(item.name for item in model.graph.input)
    if inputs != INPUTS or [item.name for item in model.graph.output] != [_SOUND]:
        raise GraphError(f"takes {', '.join(inputs)[:100]} where Kokoro takes {', '.join(INPUTS)}")
    quantised = onnx.ModelProto.FromString(model.SerializeToString())
    _square_by_products(quantised.graph)
    fuse_instance_norms(quantised)
    fuse_snakes(quantised)
    replace_stft(quantised)
    divide_by_window(quantised)
    _tell_durations(quantised.graph)
    _append_resampler(quantised.graph)
    floating = dequantize(quantised)
    scales_into_weights(floating)
    in_two_dimensions(floating)
    standardise(floating)
    return quantised, floating


def _square_by_products(graph: onnx.GraphProto) -> None:
    """Make x * x of x to the power of 2, which ONNX Runtime computes by logarithms: 50 nodes, 3 % of the time."""
    values = constants(graph)
    for node in graph.node:
        exponent = values.get(node.input[1]) if node.op_type == "Pow" else None
        if exponent is not None and numpy_helper.to_array(exponent).tolist() in (2.0, [2.0]):
            node.op_type = "Mul"
            node.input[1] = node.input[0]


def _tell_durations(graph: onnx.GraphProto) -> None:
    """Make an output of the durations: the only rounded numbers, at least one each."""
    index = GraphIndex(graph)
    rounded = [node for node in graph.node if node.op_type == "Round"]
    clips = [taker for node in rounded for taker in index.takers[node.output[0]] if taker.op_type == "Clip"]
    if len(clips) != 1:
        raise GraphError(f"rounds {len(clips)} durations, not one per phoneme")
    _add(graph, "Cast", [clips[0].output[0]], "durations/float", to=TensorProto.FLOAT)
    _add(graph, "Reshape", ["durations/float", constant(graph, "durations/shape", np.array([-1]))], "durations")


def _append_resampler(graph: onnx.GraphProto) -> None:
    """Turn the sound into 48 kHz: a convolution gives all phases of the filter, one channel each."""
    block_in, block_out = block_size(RATE)
    bank = filter_bank(RATE).T[:, None, :]
    row = _add(graph, "Reshape", [_SOUND, constant(graph, "resample/row", np.array([1, 1, -1]))], "resample/in")
    phases = _add(
        graph,
        "Conv",
        [row, constant(graph, "resample/bank", np.ascontiguousarray(bank))],
        "resample/phases",
        strides=[block_in],
        pads=[HALF_TAPS, HALF_TAPS + block_in - 1],
    )
    turned = _add(graph, "Transpose", [phases], "resample/turned", perm=[0, 2, 1])
    flat = _add(graph, "Reshape", [turned, constant(graph, "resample/flat", np.array([-1]))], "resample/out")
    size = _add(graph, "Shape", [_add(graph, "Reshape", [row, "resample/flat"], "resample/samples")], "resample/size")
    ratio = constant(graph, "resample/ratio", np.array([block_out // block_in]))
    end = _add(graph, "Mul", [size, ratio], "resample/end")
    cut = _add(graph, "Slice", [flat, constant(graph, "resample/zero", np.array([0])), end], "resample/cut")
    louder = _add(graph, "Mul", [cut, "gain"], "resample/louder")
    limits = [constant(graph, f"resample/{sign}", np.array(sign, np.float32)) for sign in (-1, 1)]
    _add(graph, "Clip", [louder, *limits], "pcm")
    graph.input.append(value("gain", TensorProto.FLOAT, [1]))
    del graph.output[:]
    graph.output.extend(
        [value("pcm", TensorProto.FLOAT, ["frames"]), value("durations", TensorProto.FLOAT, ["phonemes"])]
    )


def _add(graph: onnx.GraphProto, kind: str, inputs: list[str], result: str, **attributes: Any) -> str:  # noqa: ANN401
    graph.node.append(helper.make_node(kind, inputs, [result], name=result, **attributes))
    return result

"""Cut a VITS graph in two, by topology: text to latents, latents to sound. Needs onnx; only imports do.

The one random tensor that the other depends on not is the duration noise; the other is the prior noise. Where the
graph adds the prior noise lie the latents `z_p`: everything before is the acoustic part, everything after, which is
the flow and HiFi-GAN, is convolutional over time and becomes the vocoder part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from engines.errors import GraphError
from engines.runtime.choices import Array
from engines.runtime.fold import fold
from engines.runtime.fuse import fuse
from engines.runtime.graph import (
    GraphIndex,
    append_resampler,
    constant,
    copied,
    cut,
    drop_neutral,
    drop_ones,
    rename_output,
    rewire,
    value,
)
from engines.runtime.graph import upsampling as graph_upsampling
from engines.vits_attention import narrow_relative_attention

_IDS: Final = "input"
_LENGTHS: Final = "input_lengths"
_SCALES: Final = "scales"
_SPEAKER: Final = "sid"
_RANDOM: Final = ("RandomNormalLike", "RandomNormal")

_TRIAL_LENGTHS: Final = (9, 14, 23, 40)
"""Phoneme ids; the relative positions of the attention reach 4, so all these are beyond its short cases."""

_TRIAL_SYMBOLS: Final = 20
"""Ids of the trials: every voice has that many symbols."""


@dataclass(frozen=True, slots=True)
class Split:
    """The two parts of a voice, and what a caller must know of them.

    acoustic: ids int64 [1, P], scales float32 [3] (noise, length, duration noise), noise_prior float32 [1, C, N],
    noise_duration float32 [1, 2, P] where `duration_noise`, sid int64 [1] where `multi_speaker`
    -> latents float32 [1, C, T]. Prior noise shorter than T is repeated.

    vocoder: latents float32 [1, C, W], crop int64 [2], starts int64 [blocks], gain float32 [1], sid where
    `multi_speaker` -> pcm float32 [blocks * block]. The flow runs on all W frames, HiFi-GAN on frames crop[0] to
    crop[1] of what it gives; `starts` counts samples from crop[0].

    reference: the undivided graph with both noises as inputs, at the voice's own rate; for comparison.
    """

    acoustic: onnx.ModelProto
    vocoder: onnx.ModelProto
    reference: onnx.ModelProto
    channels: int
    hop: int
    duration_noise: bool
    multi_speaker: bool
    symbols: int | None
    """Phoneme ids that the graph knows, from 0 on; None where that cannot be told."""
    speakers: int | None
    """Likewise."""


def split(model: onnx.ModelProto, rate: int) -> Split:
    """Divide `model`, a VITS graph exported by Piper for `rate` hertz. GraphError says what is not as expected."""
    model = copied(model)
    graph = model.graph
    inputs = {item.name: item for item in graph.input}
    if any(name not in inputs for name in (_IDS, _LENGTHS, _SCALES)):
        raise GraphError(f"it is no Piper voice: inputs {', '.join(inputs)}")
    multi_speaker = _SPEAKER in inputs
    _fold_constants(graph)
    duration, prior = _find_noises(GraphIndex(graph))
    output = _sound(GraphIndex(graph), prior.output[0])
    latents = _after_noise(GraphIndex(graph), prior.output[0])
    channels = _channels(model, latents)

    noise_inputs = [value("noise_prior", TensorProto.FLOAT, [1, channels, "noise_frames"])]
    _replace_prior_noise(graph, prior)
    if duration is not None:
        noise_inputs.append(value("noise_duration", TensorProto.FLOAT, [1, 2, "phonemes"]))
        graph.node.remove(duration)
        rewire(graph, duration.output[0], "noise_duration")
    _derive_lengths(graph)
    ids = value(_IDS, TensorProto.INT64, [1, "phonemes"])
    scales = value(_SCALES, TensorProto.FLOAT, [3])
    speaker = [value(_SPEAKER, TensorProto.INT64, [1])] if multi_speaker else []
    text_inputs = [ids, scales, *noise_inputs, *speaker]

    reference = cut(model, "reference", text_inputs, [value(output, TensorProto.FLOAT, ["n", 1, 1, "samples"])])

    from_text = [item.name for item in text_inputs if item.name != _SPEAKER]
    for mask in _masks_of_vocoder(GraphIndex(graph), latents, output, from_text):
        _drop_ones_after(graph, mask, latents)
    rewire(graph, latents, "latents")
    vocoder = cut(
        model,
        "vocoder",
        [value("latents", TensorProto.FLOAT, [1, channels, "frames"]), *speaker],
        [value(output, TensorProto.FLOAT, [1, 1, 1, "samples"])],
    )
    drop_neutral(vocoder.graph)
    _insert_crop(vocoder.graph)
    hop = graph_upsampling(vocoder.graph)
    append_resampler(vocoder.graph, output, rate, starts="starts", gain="gain", output="pcm")

    acoustic = cut(model, "acoustic", text_inputs, [value(latents, TensorProto.FLOAT, [1, channels, "frames"])])
    rename_output(acoustic.graph, latents, "latents")
    for part in (acoustic, vocoder, reference):
        onnx.checker.check_model(part)
    index = GraphIndex(model.graph)
    symbols, speakers = _rows(index, _IDS), _rows(index, _SPEAKER)
    return Split(acoustic, vocoder, reference, channels, hop, duration is not None, multi_speaker, symbols, speakers)


def lean(acoustic: onnx.ModelProto, channels: int) -> onnx.ModelProto:
    """Fold and fuse an acoustic part: of the default voice's 2,194 nodes that ONNX Runtime runs, 784 are left.

    The result computes the same. GraphError or EngineError where the graph is not as expected.
    """
    rng = np.random.default_rng(0)
    trials = [trial(acoustic, phonemes, rng, channels) for phonemes in _TRIAL_LENGTHS]
    folded = fold(acoustic, _IDS, trials, {"noise_prior"})
    narrow_relative_attention(folded, _IDS)
    fuse(folded)
    onnx.checker.check_model(folded)
    return folded


def trial(model: onnx.ModelProto, phonemes: int, rng: np.random.Generator, channels: int = 1) -> dict[str, Array]:
    """Make ordinary inputs of `phonemes` ids for an acoustic part, or for a part of one."""
    feeds: dict[str, Array] = {
        _IDS: rng.integers(0, _TRIAL_SYMBOLS, (1, phonemes)),
        _LENGTHS: np.array([phonemes]),
        _SCALES: np.array([0.667, 1, 0.8], dtype=np.float32),
        _SPEAKER: np.zeros(1, np.int64),
        "noise_prior": rng.standard_normal((1, channels, 64), dtype=np.float32),
        # Wide enough that some of it falls outside the splines, whose two sides are then both seen at work.
        "noise_duration": 3 * rng.standard_normal((1, 2, phonemes), dtype=np.float32),
    }
    return {item.name: feeds[item.name] for item in model.graph.input}


def _fold_constants(graph: onnx.GraphProto) -> None:
    """Make initializers of Constant nodes, so that 'constant' means one thing."""
    for node in [n for n in graph.node if n.op_type == "Constant"]:
        tensor = next((a.t for a in node.attribute if a.name == "value"), None)
        if tensor is None:
            continue
        tensor = onnx.TensorProto.FromString(tensor.SerializeToString())
        tensor.name = node.output[0]
        graph.initializer.append(tensor)
        graph.node.remove(node)


def _find_noises(index: GraphIndex) -> tuple[onnx.NodeProto | None, onnx.NodeProto]:
    """Give the nodes that make the duration noise (None for a voice with plain durations) and the prior noise."""
    random = [node for node in index.graph.node if node.op_type in _RANDOM]
    if not 1 <= len(random) <= 2:  # noqa: PLR2004  see the module's first lines
        raise GraphError(f"it is not a VITS graph: {len(random)} random tensors where one or two are expected")
    if len(random) == 1:
        return None, random[0]
    first, second = random
    if first.output[0] in index.downstream(second.output):
        first, second = second, first
    if second.output[0] not in index.downstream(first.output):
        raise GraphError("it is not a VITS graph: neither random tensor depends on the other")
    return first, second


def _sound(index: GraphIndex, noise: str) -> str:
    """Give the output that depends on the prior noise: some voices tell their durations by a second one."""
    after = index.downstream([noise])
    sounds = [item.name for item in index.graph.output if item.name in after]
    if len(sounds) != 1:
        raise GraphError(f"it is no Piper voice: {len(sounds)} of its outputs are sound")
    return str(sounds[0])


def _after_noise(index: GraphIndex, noise: str) -> str:
    """Follow the prior noise through its scaling to the sum with the prior's mean: the latents."""
    name = noise
    while True:
        takers = index.takers.get(name, [])
        if len(takers) != 1 or takers[0].op_type not in {"Mul", "Add", "Cast"}:
            raise GraphError(f"it is not a VITS graph: the prior noise {name} is not scaled and added to a mean")
        name = takers[0].output[0]
        if takers[0].op_type == "Add":
            return str(name)


def _rows(index: GraphIndex, ids: str) -> int | None:
    """Give the rows of the table that the input `ids` is looked up in."""
    tables = {tensor.name: tensor.dims[0] for tensor in index.graph.initializer if len(tensor.dims) > 1}
    # An exporter that is given a name too many calls a table "sid": it counts as what is looked up only.
    looked_up = [n for n in index.takers.get(ids, []) if n.op_type == "Gather" and n.input[1] == ids]
    return min((int(tables[n.input[0]]) for n in looked_up if n.input[0] in tables), default=None)


def _channels(model: onnx.ModelProto, latents: str) -> int:
    """Give the number of latent channels, from the first convolution or channel split that takes the latents."""
    inferred = onnx.shape_inference.infer_shapes(model)
    for item in inferred.graph.value_info:
        if item.name == latents:
            dims = item.type.tensor_type.shape.dim
            if len(dims) == 3 and dims[1].dim_value > 0:  # noqa: PLR2004  [batch, channels, frames]
                return int(dims[1].dim_value)
    split_sizes = {t.name: t for t in model.graph.initializer}
    index = GraphIndex(model.graph)
    waiting = [latents]
    while waiting:
        name = waiting.pop(0)
        for node in index.takers.get(name, []):
            if node.op_type == "Split" and len(node.input) > 1 and node.input[1] in split_sizes:
                return int(onnx.numpy_helper.to_array(split_sizes[node.input[1]]).sum())
            if node.op_type == "Conv":
                return int(split_sizes[node.input[1]].dims[1])
            if node.op_type in {"Slice", "Mul"}:
                waiting.append(node.output[0])
    raise GraphError("it is not a VITS graph: the number of latent channels cannot be told")


def _replace_prior_noise(graph: onnx.GraphProto, prior: onnx.NodeProto) -> None:
    """Read the prior noise from input `noise_prior` [1, C, N], repeated where the utterance is longer than N.

    How long an utterance gets is known only inside the graph, after its durations; hence the repetition.
    """
    if prior.op_type != "RandomNormalLike":
        raise GraphError("it is not a VITS graph: the prior noise has a fixed shape")
    like = prior.input[0]
    position = list(graph.node).index(prior)
    frames_of = constant(graph, "noise/frames_axis", np.array(2))
    zero = constant(graph, "noise/zero", np.array(0))
    one = constant(graph, "noise/one", np.array(1))
    nodes = [
        helper.make_node("Shape", [like], ["noise/like_shape"]),
        helper.make_node("Gather", ["noise/like_shape", frames_of], ["noise/frames"], axis=0),
        helper.make_node("Shape", ["noise_prior"], ["noise/given_shape"]),
        helper.make_node("Gather", ["noise/given_shape", frames_of], ["noise/given"], axis=0),
        helper.make_node("Range", [zero, "noise/frames", one], ["noise/range"]),
        helper.make_node("Mod", ["noise/range", "noise/given"], ["noise/indices"]),
        helper.make_node("Gather", ["noise_prior", "noise/indices"], ["noise/prior"], axis=2),
    ]
    graph.node.remove(prior)
    for offset, node in enumerate(nodes):
        graph.node.insert(position + offset, node)
    rewire(graph, prior.output[0], "noise/prior")


def _derive_lengths(graph: onnx.GraphProto) -> None:
    """Compute `input_lengths` from the ids' own shape: the batch is always one utterance."""
    axis = constant(graph, "lengths/axis", np.array([1]))
    graph.node.insert(0, helper.make_node("Shape", [_IDS], ["lengths/shape"]))
    graph.node.insert(1, helper.make_node("Gather", ["lengths/shape", axis], ["lengths"], axis=0))
    rewire(graph, _LENGTHS, "lengths")


def _masks_of_vocoder(index: GraphIndex, latents: str, output: str, text_inputs: list[str]) -> list[str]:
    """Find what the vocoder part takes from the text beside the latents: the frame mask, all ones for one utterance."""
    after = index.downstream([latents])
    from_text = index.downstream(text_inputs)
    inside = index.upstream([output], stop=[latents]) & after
    taken: set[str] = set()
    for name in inside - {latents}:
        taken |= {i for i in index.maker[name].input if i and i not in after and i in from_text}
    for name in taken:
        if index.maker[name].op_type != "Cast":
            raise GraphError(f"it is not a VITS graph: the vocoder takes {name} from the text beside the latents")
    return sorted(taken)


def _insert_crop(graph: onnx.GraphProto) -> None:
    """Let HiFi-GAN take only a part of what the flow gives: it needs less context, and takes most of the time."""
    index = GraphIndex(graph)
    flowing = index.downstream(["latents"])
    first_upsampler = next((node for node in graph.node if node.op_type == "ConvTranspose"), None)
    if first_upsampler is None:
        raise GraphError("it is not a VITS graph: nothing in it upsamples")
    name = first_upsampler.input[0]
    while index.maker[name].op_type != "Conv":
        name = next((i for i in index.maker[name].input if i in flowing), "latents")
        if name == "latents":
            raise GraphError("it is not a VITS graph: there is no convolution before the first upsampling")
    convolution = index.maker[name]
    graph.input.append(value("crop", TensorProto.INT64, [2]))
    axis = constant(graph, "crop/axis", np.array([2]))
    halves = constant(graph, "crop/halves", np.array([1, 1]))
    position = list(graph.node).index(convolution)
    graph.node.insert(position, helper.make_node("Split", ["crop", halves], ["crop/start", "crop/stop"], axis=0))
    bounds = ["crop/start", "crop/stop", axis]
    graph.node.insert(position + 1, helper.make_node("Slice", [convolution.input[0], *bounds], ["crop/frames"]))
    convolution.input[0] = "crop/frames"


def _drop_ones_after(graph: onnx.GraphProto, mask: str, latents: str) -> None:
    """Drop the multiplications by `mask` downstream of the latents; upstream it stays in use."""
    ones = mask + "/ones"
    after = GraphIndex(graph).downstream([latents])
    for node in graph.node:
        if node.output[0] in after:
            for i, name in enumerate(node.input):
                if name == mask:
                    node.input[i] = ones
    drop_ones(graph, ones)

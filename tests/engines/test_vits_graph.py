from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from simulators import tiny_voice
from simulators.original import Original

from engines.errors import GraphError
from engines.importer import resample
from engines.resampling import block_size
from engines.runtime.graph import cut, drop_neutral, drop_ones, value
from engines.runtime.ort import OrtEngine
from engines.vits_graph import split

IDS = [1, 0, 9, 0, 14, 0, 3, 0, 20, 0, 2] * 3


@pytest.mark.parametrize("speakers", [1, 3])
@pytest.mark.parametrize("rate", [16_000, 22_050, 48_000])
def test_the_two_parts_give_what_the_original_gives(tmp_path: Path, speakers: int, rate: int) -> None:
    path = tiny_voice.write(tmp_path, speakers=speakers, rate=rate)
    speaker = speakers - 1
    sound, noise = Original(path).run(IDS, speaker=speaker)
    parts = split(onnx.load(path), rate)
    assert (parts.hop, parts.channels, parts.multi_speaker) == (tiny_voice.HOP, tiny_voice.CHANNELS, speakers > 1)
    sid = {"sid": np.array([speaker])} if speakers > 1 else {}
    outputs = OrtEngine(parts.acoustic.SerializeToString()).run(
        {
            "input": np.array([IDS]),
            "scales": np.array([0.667, 1.0, 0.8], dtype=np.float32),
            "noise_duration": noise[2],
            "noise_prior": noise[tiny_voice.CHANNELS],
            **sid,
        }
    )
    latents = outputs["latents"]
    assert latents.shape[2] * parts.hop == sound.size
    block = block_size(rate)[0]
    starts = np.arange(-(-sound.size // block)) * block
    pcm = OrtEngine(parts.vocoder.SerializeToString()).run(
        {
            "latents": latents,
            "crop": np.array([0, latents.shape[2]]),
            "starts": starts,
            "gain": np.ones(1, np.float32),
            **sid,
        }
    )["pcm"]
    expected = resample(sound, rate)
    assert np.abs(expected).max() > 0.05, "the tiny voice must make a sound for this to mean anything"
    np.testing.assert_allclose(pcm, expected, atol=1e-4)


def test_another_speaker_sounds_different(tmp_path: Path) -> None:
    original = Original(tiny_voice.write(tmp_path, speakers=3))
    first, second = (original.run(IDS, speaker=speaker)[0] for speaker in (0, 1))
    length = min(first.size, second.size)
    assert np.abs(first[:length] - second[:length]).max() > 0.01


def test_short_prior_noise_is_repeated() -> None:
    parts = split(tiny_voice.model(), 22_050)
    acoustic = OrtEngine(parts.acoustic.SerializeToString())
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((1, tiny_voice.CHANNELS, 5), dtype=np.float32)
    feeds = {
        "input": np.array([IDS]),
        "scales": np.array([1.0, 1.0, 0.8], dtype=np.float32),
        "noise_duration": rng.standard_normal((1, 2, len(IDS)), dtype=np.float32),
    }
    short = acoustic.run({**feeds, "noise_prior": noise})["latents"]
    long = acoustic.run({**feeds, "noise_prior": np.tile(noise, (1, 1, 200))})["latents"]
    np.testing.assert_array_equal(short, long)


def test_gain_scales_beyond_full_scale_too() -> None:
    parts = split(tiny_voice.model(), 22_050)
    vocoder = OrtEngine(parts.vocoder.SerializeToString())
    latents = np.random.default_rng(0).standard_normal((1, tiny_voice.CHANNELS, 20), dtype=np.float32)
    feeds = {"latents": latents, "crop": np.array([0, 20]), "starts": np.arange(30) * 147}
    quiet, quieter, loud = (
        vocoder.run({**feeds, "gain": np.array([gain], dtype=np.float32)})["pcm"] for gain in (0.5, 0.25, 64)
    )
    np.testing.assert_allclose(quieter, quiet / 2, atol=1e-7)
    assert np.abs(loud).max() > 1
    np.testing.assert_allclose(loud / 128, quiet, atol=1e-7)


def test_nothing_of_the_text_is_left_in_the_vocoder() -> None:
    vocoder = split(tiny_voice.model(), 22_050).vocoder
    assert [item.name for item in vocoder.graph.input] == ["latents", "crop", "starts", "gain"]
    operators = [node.op_type for node in vocoder.graph.node]
    assert "ConstantOfShape" not in operators, "the leftover zeros of the flow"
    assert "Cast" not in operators, "the frame mask"


def _without(model: onnx.ModelProto, op_type: str) -> onnx.ModelProto:
    """Put something deterministic in the place of each node of a type."""
    for node in model.graph.node:
        if node.op_type == op_type:
            node.op_type = "Identity"
            del node.attribute[:]
    return model


def _plain_network() -> onnx.ModelProto:
    names = ("input", "input_lengths", "scales")
    inputs = [value(name, onnx.TensorProto.FLOAT, [1]) for name in names]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["input"], ["output"])], "g", inputs, [value("output", onnx.TensorProto.FLOAT, [1])]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (_plain_network(), "0 random tensors"),
        (_without(tiny_voice.model(), "RandomNormalLike"), "0 random tensors"),
        (_without(tiny_voice.model(), "Exp"), None),
    ],
)
def test_what_is_no_vits_graph_is_refused_or_still_right(model: onnx.ModelProto, said: str | None) -> None:
    if said is None:  # another activation is no other topology
        assert split(model, 22_050).hop == tiny_voice.HOP
        return
    with pytest.raises(GraphError, match=said):
        split(model, 22_050)


def test_missing_inputs_are_named() -> None:
    model = tiny_voice.model()
    model.graph.input[2].name = "volume"
    for node in model.graph.node:
        node.input[:] = ["volume" if name == "scales" else name for name in node.input]
    with pytest.raises(GraphError, match="input, input_lengths, volume"):
        split(model, 22_050)


def test_a_rate_without_whole_blocks_is_refused() -> None:
    with pytest.raises(GraphError, match="11025 Hz"):
        split(tiny_voice.model(), 11_025)


def _graph(nodes: list[onnx.NodeProto], **constants: np.ndarray) -> onnx.ModelProto:
    x = value("x", onnx.TensorProto.FLOAT, [1, 4, "n"])
    y = value("y", onnx.TensorProto.FLOAT, None)
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], tensors), ir_version=8)


def test_zeros_that_broadcast_are_kept() -> None:
    model = _graph(
        [
            helper.make_node("Concat", ["x", "x"], ["xx"], axis=1),
            helper.make_node("Shape", ["xx"], ["shape"]),
            helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
            helper.make_node("ReduceSum", ["x"], ["sum"]),
            helper.make_node("Add", ["sum", "zeros"], ["y"]),
        ]
    )
    assert drop_neutral(model.graph) == 0


def test_a_mask_used_otherwise_is_not_dropped() -> None:
    model = _graph([helper.make_node("Add", ["x", "mask"], ["y"])], mask=np.ones(1, np.float32))
    with pytest.raises(GraphError, match="Add"):
        drop_ones(model.graph, "mask")


def test_a_cut_that_needs_more_says_what() -> None:
    model = _graph([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])])
    with pytest.raises(GraphError, match="would also need x"):
        cut(model, "half", [], list(model.graph.output))

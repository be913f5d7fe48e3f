"""Folding, choices and fusions: fewer nodes, the same results."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper, parser
from simulators import tiny_voice

from engines.errors import GraphError
from engines.runtime.choices import gather_to_choice, scatter_to_concat
from engines.runtime.fold import fold
from engines.runtime.fuse import fuse
from engines.runtime.ort import OrtEngine, evaluate
from engines.vits_graph import lean, split

Feeds = dict[str, NDArray[Any]]


def graph(text: str, **constants: NDArray[Any]) -> onnx.ModelProto:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 15]>\ng {text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    onnx.checker.check_model(model)
    return model


def feeds(length: int, seed: int = 0) -> Feeds:
    return {"x": np.random.default_rng((seed, length)).standard_normal((1, length, 3), dtype=np.float32)}


def operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Fold, and see to it that the result is the same at lengths that folding has not seen."""
    result = fold(model, "x", [feeds(length) for length in (4, 7, 12)], set())
    onnx.checker.check_model(result)
    for length in (1, 2, 5, 40):
        before, after = (OrtEngine(m.SerializeToString()).run(feeds(length, 1))["y"] for m in (model, result))
        np.testing.assert_array_equal(before, after)
    return result


ONE = {"c0": np.array(0), "c1": np.array(1), "a0": np.array([0]), "a1": np.array([1])}


def test_a_mask_of_ones_goes() -> None:
    model = graph(
        """(float[1, n, 3] x) => (float[1, n, 3] y) {
            shape = Shape (x)
            n = Gather (shape, c1)
            row = Range (c0, n, c1)
            inside = Less (row, n)
            mask_1 = Cast <to = 1> (inside)
            mask_2 = Unsqueeze (mask_1, axes)
            masked = Mul (x, mask_2)
            z = Relu (masked)
            z_masked = Mul (z, mask_2)
            y = Neg (z_masked)
        }""",
        **ONE,
        axes=np.array([0, 2]),
    )
    assert operators(folded(model)) == {"Relu": 1, "Neg": 1}


def test_shapes_become_constants_or_lines() -> None:
    model = graph(
        """(float[1, n, 3] x) => (float[a, b] y) {
            shape = Shape (x)
            n = Gather (shape, c1)
            twice = Add (n, n)
            less = Sub (twice, c1)
            less_1 = Unsqueeze (less, a0)
            begin = Concat <axis = 0> (a0, less_1)
            pads = Concat <axis = 0> (begin, zeros)
            flat = Reshape (x, minus_one)
            rows = Unsqueeze (flat, a0)
            y = Pad (rows, pads)
        }""",
        **ONE,
        zeros=np.array([0, 0]),
        minus_one=np.array([-1]),
    )
    found = operators(folded(model))
    assert (found["Concat"], found["Sub"]) == (0, 0)
    assert found["Mul"] == found["Add"] == 1


def test_what_grows_with_the_square_is_left_alone() -> None:
    model = graph(
        """(float[1, n, 3] x) => (float[m] y) {
            shape = Shape (x)
            n = Gather (shape, c1)
            square = Mul (n, n)
            to = Unsqueeze (square, a0)
            flat = Reshape (x, minus_one)
            one = ReduceSum <keepdims = 1> (flat)
            y = Expand (one, to)
        }""",
        **ONE,
        minus_one=np.array([-1]),
    )
    folded(model)


def test_what_data_decides_is_never_folded() -> None:
    """The trials' data happens to be all above the bound; other data is not."""
    model = graph(
        """(float[1, n, 3] x) => (float[1, n, 3] y) {
            above = Greater (x, bound)
            y = Where (above, x, bound)
        }""",
        bound=np.array(-100, dtype=np.float32),
    )
    result = fold(model, "x", [feeds(length) for length in (4, 7, 12)], set())
    low = {"x": np.full((1, 5, 3), -200, dtype=np.float32)}
    assert OrtEngine(result.SerializeToString()).run(low)["y"].max() == -100


def test_three_lengths_are_needed() -> None:
    model = graph("(float[1, n, 3] x) => (float[1, n, 3] y) { y = Relu (x) }")
    with pytest.raises(GraphError, match="three lengths"):
        fold(model, "x", [feeds(4), feeds(4), feeds(5)], set())


MASKED = """(float[1, n, 3] x) => (float[1, n, 3] y) {
    low = GreaterOrEqual (x, minus_half)
    high = LessOrEqual (x, half)
    inside = And (low, high)
    where = NonZero (inside)
    indices = Transpose <perm = [1, 0]> (where)
    picked = GatherND (x, indices)
    scaled = Mul (picked, three)
    root = Sqrt (scaled)
    zeros = Mul (x, none)
    y = ScatterND (zeros, indices, root)
}"""


def test_masked_assignment_becomes_a_choice() -> None:
    bounds = {"minus_half": -0.5, "half": 0.5, "three": 3.0, "none": 0.0}
    model = graph(MASKED, **{name: np.array(value, dtype=np.float32) for name, value in bounds.items()})
    model_text = model.SerializeToString()
    names = [name for node in model.graph.node for name in node.output]
    told = onnx.ModelProto.FromString(model_text)
    told.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name != "y")
    runs = [evaluate(told.SerializeToString(), feeds(length), names) | feeds(length) for length in (4, 7)]
    gather_to_choice(model.graph, runs)
    assert not {"GatherND", "ScatterND"} & set(operators(model))
    for length in (1, 5, 40):
        after = OrtEngine(model.SerializeToString()).run(feeds(length, 1))["y"]
        before = OrtEngine(model_text).run(feeds(length, 1))["y"]
        np.testing.assert_array_equal(before, after)  # outside, the root of a negative number is not chosen


def test_assignment_to_a_first_or_last_column_becomes_a_concatenation() -> None:
    def assigning(place: int, row: int) -> tuple[onnx.GraphProto, list[Feeds]]:
        data = np.arange(12, dtype=np.float32).reshape(4, 3)
        indices = np.array([[[i * row, place]] for i in range(4)])
        values = -np.ones((4, 1), np.float32)
        node = helper.make_node("ScatterND", ["data", "indices", "values"], ["y"])
        output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4, 3])
        constants = [
            numpy_helper.from_array(a, n) for a, n in ((data, "data"), (indices, "indices"), (values, "values"))
        ]
        return helper.make_graph([node], "g", [], [output], constants), [
            {"data": data, "indices": indices, "values": values}
        ]

    for place in (0, 2):
        made, runs = assigning(place, row=1)
        scatter_to_concat(made, runs)
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
        assert "ScatterND" not in operators(model)
        result = OrtEngine(model.SerializeToString()).run({})["y"]
        expected = runs[0]["data"].copy()
        expected[:, place] = -1
        np.testing.assert_array_equal(result, expected)
    for place, row in ((1, 1), (0, 0)):  # a middle column; always the same row
        made, runs = assigning(place, row)
        scatter_to_concat(made, runs)
        assert [node.op_type for node in made.node] == ["ScatterND"]


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_norm_is_fused(axis: int) -> None:
    model = graph(
        f"""(float[1, c, n] x) => (float[1, c, n] y) {{
            mean = ReduceMean <axes = [{axis}]> (x)
            difference = Sub (x, mean)
            square = Pow (difference, two)
            variance = ReduceMean <axes = [{axis}]> (square)
            stable = Add (variance, epsilon)
            root = Sqrt (stable)
            normal = Div (difference, root)
            scaled = Mul (normal, scale)
            y = Add (scaled, bias)
        }}""",
        two=np.array(2, dtype=np.float32),
        epsilon=np.array(1e-5, dtype=np.float32),
        scale=np.arange(1, 7, dtype=np.float32).reshape((6,) if axis == -1 else (1, 6, 1)),
        bias=np.arange(6, dtype=np.float32).reshape((6,) if axis == -1 else (1, 6, 1)),
    )
    x = np.random.default_rng(0).standard_normal((1, 5, 6) if axis == -1 else (1, 6, 5), dtype=np.float32)
    before = OrtEngine(model.SerializeToString()).run({"x": x})["y"]
    fuse(model)
    assert operators(model) == ({"LayerNormalization": 1} if axis == -1 else {"Transpose": 2, "LayerNormalization": 1})
    np.testing.assert_allclose(OrtEngine(model.SerializeToString()).run({"x": x})["y"], before, atol=1e-4)


def test_what_only_looks_like_a_layer_norm_is_kept() -> None:
    model = graph(
        """(float[1, c, n] x) => (float[1, c, n] y) {
            mean = ReduceMean <axes = [-1]> (x)
            difference = Sub (x, mean)
            power = Pow (difference, four)
            variance = ReduceMean <axes = [-1]> (power)
            stable = Add (variance, epsilon)
            root = Sqrt (stable)
            normal = Div (difference, root)
            scaled = Mul (normal, scale)
            y = Add (scaled, scale)
        }""",
        four=np.array(4, dtype=np.float32),
        epsilon=np.array(1e-5, dtype=np.float32),
        scale=np.ones(6, dtype=np.float32),
    )
    fuse(model)
    assert "LayerNormalization" not in operators(model)


@pytest.mark.parametrize("pads", [[0, 0, 2, 0, 0, 1], [0, 1, 2, 0, 0, 1], [0, 0, -1, 0, 0, 1]])
def test_padding_moves_into_the_convolution_where_it_can(pads: list[int]) -> None:
    channels = 4 + pads[1] + pads[4]
    model = graph(
        """(float[1, c, n] x) => (float[1, d, m] y) {
            padded = Pad (x, pads)
            y = Conv <kernel_shape = [3], pads = [1, 0]> (padded, w)
        }""",
        pads=np.array(pads),
        w=np.random.default_rng(1).standard_normal((2, channels, 3)).astype(np.float32),
    )
    x = np.random.default_rng(0).standard_normal((1, 4, 9), dtype=np.float32)
    before = OrtEngine(model.SerializeToString()).run({"x": x})["y"]
    fuse(model)
    assert ("Pad" not in operators(model)) == (pads == [0, 0, 2, 0, 0, 1])
    np.testing.assert_allclose(OrtEngine(model.SerializeToString()).run({"x": x})["y"], before, atol=2e-5)


@pytest.mark.parametrize("speakers", [1, 3])
def test_a_lean_voice_computes_the_same(speakers: int) -> None:
    parts = split(tiny_voice.model(speakers=speakers), 22_050)
    thin = lean(parts.acoustic, parts.channels)
    assert len(thin.graph.node) < len(parts.acoustic.graph.node)
    rng = np.random.default_rng(0)
    for phonemes in (1, 2, 3, 9, 50, 300):
        given: Feeds = {
            "input": rng.integers(0, 40, (1, phonemes)),
            "scales": np.array([0.667, 1.1, 0.8], dtype=np.float32),
            "noise_prior": rng.standard_normal((1, parts.channels, 30), dtype=np.float32),
            "noise_duration": rng.standard_normal((1, 2, phonemes), dtype=np.float32),
        } | ({"sid": np.array([speakers - 1])} if speakers > 1 else {})
        before, after = (OrtEngine(m.SerializeToString()).run(given) for m in (parts.acoustic, thin))
        np.testing.assert_allclose(after["latents"], before["latents"], atol=1e-4)

"""Rewritings of Kokoro's graph, each on a graph that has little but what it rewrites: same results, other operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from engines.kokoro_quick import divide_by_window, fuse_snakes, replace_stft
from engines.runtime.instance_norm import fuse_instance_norms
from engines.runtime.ort import evaluate
from engines.runtime.planar import in_two_dimensions, scales_into_weights
from engines.runtime.standard import standardise

C = 16
RNG = np.random.default_rng(5)
HEAD = '<ir_version: 9, opset_import: ["" : 20, "com.microsoft" : 1]>\n'


def weights(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def made(text: str, **constants: np.ndarray) -> onnx.ModelProto:
    model = parser.parse_model(HEAD + text)
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()
    )
    return model


def kinds(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def result(model: onnx.ModelProto, **feeds: np.ndarray) -> np.ndarray:
    onnx.checker.check_model(model)
    return evaluate(model.SerializeToString(), feeds, ["y"])["y"]


def factors() -> np.ndarray:
    return RNG.uniform(0.2, 3, (1, C, 1)).astype(np.float32)


NORMED = """
            mean = ReduceMean <keepdims = 1> (x, axis)
            centred = Sub (x, mean)
            squares = Mul (centred, centred)
            variance = ReduceMean <keepdims = 1> (squares, axis)
            above = Add (variance, epsilon)
            deviation = Sqrt (above)
            normed = Div (centred, deviation)
"""


def block(
    divisor: Callable[[np.ndarray], np.ndarray] = lambda factor: 1 / (factor + np.float32(1e-9)),
) -> onnx.ModelProto:
    """Make an adaptive norm, a Snake and a convolution, as Kokoro's decoder is made of them."""
    factor = factors()
    return made(
        f"""block (float[1,{C},T] x, float[1,{C},1] scale, float[1,{C},1] shift) => (float[1,{C},T] y) {{
            {NORMED}
            scaled = Mul (scale, normed)
            shifted = Add (scaled, shift)
            angle = Mul (factor, shifted)
            sine = Sin (angle)
            power = Mul (sine, sine)
            part = Mul (divisor, power)
            snake = Add (shifted, part)
            y = Conv <dilations = [3], pads = [6, 6], kernel_shape = [5]> (snake, w, b)
        }}""",
        axis=np.array([2]),
        epsilon=np.array(1e-5, np.float32),
        factor=factor,
        divisor=divisor(factor),
        w=weights(C, C, 5) / C,
        b=weights(C),
    )


def block_feeds() -> dict[str, np.ndarray]:
    x = 3 * weights(1, C, 400) + 5 * weights(1, C, 1)
    return {"x": x, "scale": 1 + 0.3 * weights(1, C, 1), "shift": weights(1, C, 1)}


def test_a_block_of_the_decoder_in_fewer_nodes_sounds_the_same() -> None:
    model, feeds = block(), block_feeds()
    expected = result(model, **feeds)
    assert fuse_instance_norms(model) == 1
    np.testing.assert_allclose(result(model, **feeds), expected, atol=1e-4)
    assert fuse_snakes(model) == 1
    np.testing.assert_allclose(result(model, **feeds), expected, atol=1e-4)
    assert scales_into_weights(model) == 1
    np.testing.assert_allclose(result(model, **feeds), expected, atol=1e-4)
    assert in_two_dimensions(model) == 1
    np.testing.assert_allclose(result(model, **feeds), expected, atol=1e-4)
    assert np.abs(expected).max() > 1
    over_samples = {"ReduceMean", "Sub", "Sqrt", "Div"} & set(kinds(model))
    assert not over_samples
    (convolution,) = [node for node in model.graph.node if node.op_type == "Conv"]
    assert {item.name: list(item.ints) for item in convolution.attribute} == {
        "dilations": [1, 3],
        "pads": [0, 6, 0, 6],
        "kernel_shape": [1, 5],
    }


def test_one_normalised_signal_with_three_styles_becomes_three_norms() -> None:
    model = made(
        f"""shared (float[1,{C},T] x, float[1,{C},1] scale, float[1,{C},1] shift) => (float[1,{C},T] y) {{
            {NORMED}
            first = Mul (normed, scale)
            one = Add (first, shift)
            second = Mul (shift, normed)
            two = Add (scale, second)
            y = Sub (one, two)
        }}""",
        axis=np.array([2]),
        epsilon=np.array(1e-5, np.float32),
    )
    feeds = block_feeds()
    expected = result(model, **feeds)
    assert fuse_instance_norms(model) == 2
    assert "Div" not in kinds(model)
    np.testing.assert_allclose(result(model, **feeds), expected, atol=1e-4)


def test_what_only_looks_like_it_stays() -> None:
    over_channels = block()
    axis = next(tensor for tensor in over_channels.graph.initializer if tensor.name == "axis")
    axis.CopyFrom(numpy_helper.from_array(np.array([1]), "axis"))
    before = kinds(over_channels)
    assert fuse_instance_norms(over_channels) == 0
    assert kinds(over_channels) == before
    no_inverse = block(divisor=lambda factor: 1.1 / factor)
    fuse_instance_norms(no_inverse)
    before = kinds(no_inverse)
    assert fuse_snakes(no_inverse) == 0
    assert kinds(no_inverse) == before


def test_a_scale_that_somebody_else_needs_stays() -> None:
    model = made(
        f"""shared (float[1,{C},T] x) => (float[1,{C},T] y) {{
            scaled = Mul (x, factor)
            turned = Conv <pads = [1, 1], kernel_shape = [3]> (scaled, w)
            y = Add (scaled, turned)
        }}""",
        factor=factors(),
        w=weights(C, C, 3),
    )
    assert scales_into_weights(model) == 0


@pytest.mark.parametrize("group", [1, C])
def test_strided_and_depthwise_convolutions_are_the_same_in_two_dimensions(group: int) -> None:
    model = made(
        f"""strided (float[1,{C},T] x) => (float[1,{C},S] y) {{
            y = Conv <strides = [2], pads = [3, 1], group = {group}> (x, w)
        }}""",
        w=weights(C, C // group, 4),
    )
    feeds = {"x": weights(1, C, 51)}
    expected = result(model, **feeds)
    assert in_two_dimensions(model) == (group == 1)
    np.testing.assert_allclose(result(model, **feeds), expected, atol=1e-5)


def spectrum(pick: str = "0") -> onnx.ModelProto:
    """Make a STFT of which one part, real or imaginary, comes out."""
    return made(
        """spectrum (float[1,N] x) => (float[1,11,F] y) {
            both = STFT <onesided = 1> (x, step, window, size)
            turned = Transpose <perm = [0, 2, 1, 3]> (both)
            real = Gather <axis = 3> (turned, zero)
            imaginary = Gather <axis = 3> (turned, one)
            r = Mul (real, keep_real)
            i = Mul (imaginary, keep_imaginary)
            y = Add (r, i)
        }""",
        step=np.array(5),
        window=np.hanning(21)[:20].astype(np.float32),
        size=np.array(20),
        zero=np.array(0),
        one=np.array(1),
        keep_real=np.array(pick == "0", np.float32),
        keep_imaginary=np.array(pick == "1", np.float32),
    )


@pytest.mark.parametrize("pick", ["0", "1"])
def test_the_spectrum_is_the_same_by_a_convolution(pick: str) -> None:
    model, feeds = spectrum(pick), {"x": weights(1, 500)}
    expected = result(model, **feeds)
    replace_stft(model)
    assert "STFT" not in kinds(model)
    np.testing.assert_allclose(result(model, **feeds), expected, atol=1e-4)


def test_the_phases_of_a_silent_source_are_no_accident() -> None:
    phases, parts = [], []
    for level in (-0.03, -0.0301, -0.0294):
        for pick in "01":
            model = spectrum(pick)
            replace_stft(model)
            parts.append(result(model, x=np.full((1, 100), level, np.float32))[0])
        phases.append(np.arctan2(parts[-1], parts[-2]))
    assert (phases[0][0] > 3).all(), "pi, not -pi, which is far from it to the decoder"
    np.testing.assert_allclose(np.cos(phases - phases[0][:, :1]), 1, atol=0.05)
    assert np.abs(parts)[:, 2:].max() < 1e-6, "it is still next to nothing"


def test_the_first_samples_are_divided_by_the_sum_of_their_windows() -> None:
    sums = np.linspace(0, 1.5, 20, dtype=np.float32)
    model = made(
        """ends (float[1,N] x) => (float[1,N] y) {
            which = Greater (sums, tiny)
            at = NonZero (which)
            places = Transpose <perm = [1, 0]> (at)
            found = Gather <axis = 1> (x, places)
            by = Gather <axis = 0> (sums, places)
            divided = Div (found, by)
            updates = Reshape (divided, row)
            rows = Mul (places, none)
            indices = Concat <axis = -1> (rows, places)
            paired = Unsqueeze (indices, none_axis)
            y = ScatterND (x, paired, updates)
        }""",
        sums=sums,
        tiny=np.array(np.finfo(np.float32).tiny),
        row=np.array([1, -1]),
        none=np.array(0),
        none_axis=np.array([0]),
    )
    feeds = {"x": weights(1, 60)}
    expected = result(model, **feeds)
    assert not np.array_equal(expected, feeds["x"])
    divide_by_window(model)
    assert not {"NonZero", "ScatterND"} & set(kinds(model))
    np.testing.assert_allclose(result(model, **feeds), expected, rtol=1e-6)


def test_onnx_runtimes_own_operators_become_onnxs() -> None:
    model = made(
        """own (float[1,T,8] x, float[1,T,8] z) => (float[1,8,8] y) {
            g = com.microsoft.FastGelu (x, bias)
            n = com.microsoft.SkipLayerNormalization <epsilon = 1e-5> (g, z, scale, shift)
            m = com.microsoft.SkipLayerNormalization (n, z, scale, shift, bias)
            y = com.microsoft.FusedMatMul <transA = 1> (m, x)
        }""",
        bias=weights(8),
        scale=weights(8),
        shift=weights(8),
    )
    feeds = {"x": weights(1, 30, 8), "z": weights(1, 30, 8)}
    expected = evaluate(model.SerializeToString(), feeds, ["y"])["y"]
    standardise(model)
    assert {node.domain for node in model.graph.node} == {""}
    assert [entry.domain for entry in model.opset_import] == [""]
    np.testing.assert_allclose(result(model, **feeds), expected, atol=1e-3)


def test_what_has_no_such_form_stays() -> None:
    model = made(
        """own (float[1,T,8] x) => (float[1,T,T] y) {
            y = com.microsoft.FusedMatMul <transB = 1, alpha = 0.5> (x, x)
        }"""
    )
    standardise(model)
    assert [node.domain for node in model.graph.node] == ["com.microsoft"]

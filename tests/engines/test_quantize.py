from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engines.errors import GraphError
from engines.runtime.half import half, rounded
from engines.runtime.ort import evaluate
from engines.runtime.quantize import Site, quantized, sites, worthwhile
from engines.runtime.ranges import Grid, fit

FRAMES = 40
CHANNELS = 16
RNG = np.random.default_rng(2)


def model(opset: int = 15) -> onnx.ModelProto:
    """A convolution on the input, two on one activation, of which one is dilated, and one that upsamples by 4."""
    c = CHANNELS

    def weights(*shape: int) -> Any:  # noqa: ANN401
        return (RNG.standard_normal(shape) / np.sqrt(shape[0] * shape[2])).astype(np.float32)

    constants = {
        "w_in": weights(c, 4, 1),
        "w_a": weights(c, c, 3),
        "w_b": weights(c, c, 7),
        "b": (0.1 * RNG.standard_normal(c)).astype(np.float32),
        "w_up": weights(c, c, 8),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w_in", "b"], ["first"]),
        helper.make_node("LeakyRelu", ["first"], ["active"], alpha=0.1),
        helper.make_node("Conv", ["active", "w_a", "b"], ["a"], pads=[1, 1]),
        helper.make_node("Conv", ["active", "w_b", "b"], ["b_out"], pads=[9, 9], dilations=[3]),
        helper.make_node("Add", ["a", "b_out"], ["sum"]),
        helper.make_node("ConvTranspose", ["sum", "w_up", "b"], ["y"], pads=[2, 2], strides=[4]),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, d, None]) for n, d in (("x", 4), ("y", c)))
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(graph: onnx.ModelProto, x: Any, *names: str) -> dict[str, Any]:  # noqa: ANN401
    told = onnx.ModelProto.FromString(graph.SerializeToString())
    known = {item.name for item in told.graph.output}
    told.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    return evaluate(told.SerializeToString(), {"x": x}, names)


X = RNG.standard_normal((1, 4, FRAMES)).astype(np.float32)


@pytest.fixture(scope="module")
def original() -> onnx.ModelProto:
    return model()


@pytest.fixture(scope="module")
def found(original: onnx.ModelProto) -> list[Site]:
    return sites(original, "x")


@pytest.fixture(scope="module")
def grids(original: onnx.ModelProto, found: list[Site]) -> dict[Site, Grid]:
    held = {"x": X} | run(original, X, "active", "sum")
    moments = np.arange(FRAMES)
    return {
        site: fit(site.takers([one.columns(held[site.source][0], moments) for one in site.convolutions]))
        for site in found
    }


def test_sites_are_tensors_with_all_who_take_them(found: list[Site]) -> None:
    assert [(site.source, [one.output for one in site.convolutions]) for site in found] == [
        ("x", ["first"]),
        ("active", ["a", "b_out"]),
        ("sum", ["y"]),
    ]
    assert [site.macs for site in found] == [4 * 16, 16 * 16 * 10, 16 * 16 * 8]
    assert [site.source for site in worthwhile(found)] == ["active", "sum"]


def test_the_work_of_what_comes_after_an_upsampling_counts_as_often(original: onnx.ModelProto) -> None:
    longer = onnx.ModelProto.FromString(original.SerializeToString())
    longer.graph.node.append(helper.make_node("Conv", ["y", "w_a"], ["z"], pads=[1, 1]))
    assert sites(longer, "x")[-1].macs == 4 * 16 * 16 * 3


def test_columns_times_rows_is_the_convolution(original: onnx.ModelProto, found: list[Site]) -> None:
    held = run(original, X, "active", "a", "b_out", "sum", "y")
    bias = numpy_helper.to_array(next(t for t in original.graph.initializer if t.name == "b"))
    moments = np.array([0, 1, 17, FRAMES - 1])
    for one in found[1].convolutions:
        columns = one.columns(held["active"][0], moments)
        product = one.rows.reshape(CHANNELS, -1) @ columns.reshape(-1, moments.size) + bias[:, None]
        np.testing.assert_allclose(product, held[one.output][0][:, moments], atol=1e-4)
    (up,) = found[2].convolutions
    taps = (up.rows[:, :, 0] @ up.columns(held["sum"][0], np.arange(FRAMES))[:, 0]).reshape(CHANNELS, 8, FRAMES)
    full = np.zeros((CHANNELS, 4 * FRAMES + 4), np.float32)
    for frame in range(FRAMES):
        full[:, 4 * frame : 4 * frame + 8] += taps[:, :, frame]
    np.testing.assert_allclose(full[:, 2:-2] + bias[:, None], held["y"][0], atol=1e-4)


def test_int8_is_near_the_original(original: onnx.ModelProto, grids: dict[Site, Grid]) -> None:
    graph = quantized(original, grids)
    expected, heard = (run(g, X, "y")["y"] for g in (original, graph))
    noise = np.square(heard - expected).mean() / np.square(expected).mean()
    assert 1e-6 < noise < 1e-3, "-30 dB at most, but quantised it is"
    in_half = run(rounded(half(graph)), X, "y")["y"]
    assert np.square(in_half - heard).mean() < 0.5 * np.square(heard - expected).mean()


def test_it_is_the_recipe_that_tensorrt_takes(original: onnx.ModelProto, grids: dict[Site, Grid]) -> None:
    graph = quantized(original, grids).graph
    kinds = Counter(node.op_type for node in graph.node)
    assert kinds["QuantizeLinear"] == 3, "one for each tensor, not for each convolution"
    assert kinds["DequantizeLinear"] == 3 + 4
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type in {"Conv", "ConvTranspose"}:
            assert constants[node.input[2]].data_type == TensorProto.FLOAT, "biases stay float"
        if node.op_type in {"QuantizeLinear", "DequantizeLinear"}:
            assert not numpy_helper.to_array(constants[node.input[2]]).any(), "symmetric"
    axes = {
        node.output[0]: node.attribute[0].i
        for node in graph.node
        if node.op_type == "DequantizeLinear" and node.attribute
    }
    assert axes == {"first/weights": 0, "a/weights": 0, "b_out/weights": 0, "y/weights": 1}
    assert not {"w_a", "w_b", "w_up"} & set(constants), "float weights are not kept beside"


def test_only_what_is_asked_for_is_quantised(original: onnx.ModelProto, found: list[Site], grids: Any) -> None:  # noqa: ANN401
    graph = quantized(original, {found[1]: grids[found[1]]})
    names = {node.output[0] for node in graph.graph.node if node.op_type == "QuantizeLinear"}
    assert names == {"active/levels"}
    held, now = run(original, X, "first"), run(graph, X, "first")
    np.testing.assert_array_equal(held["first"], now["first"])
    assert quantized(original, {}).graph.node == original.graph.node


@pytest.mark.parametrize("opset", [11, 20])
def test_an_opset_that_is_not_known_is_refused(opset: int) -> None:
    with pytest.raises(GraphError, match="opset"):
        quantized(model(opset), {})

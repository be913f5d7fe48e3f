"""Small graphs for engines to run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def value(name: str, shape: Sequence[int | str], element: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: dict[str, np.ndarray] | None = None,
) -> bytes:
    for position, node in enumerate(nodes):
        node.name = node.name or f"{node.op_type}_{position}"
    initializers = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def double(size: int | str) -> bytes:
    """y = 2 x + offset and xx = 2 x, for x of `size`."""
    nodes = [helper.make_node("Add", ["x", "x"], ["xx"]), helper.make_node("Add", ["xx", "offset"], ["y"])]
    return model(nodes, [value("x", [size]), value("offset", [1])], [value("y", [size]), value("xx", [size])])


def convolution(precision: str) -> bytes:
    """One convolution of 16 channels over 32 frames, in 'fp32', 'fp16' or 'int8' (Q/DQ), float32 at both ends."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((16, 16, 3)).astype(np.float32)
    bias = rng.standard_normal(16).astype(np.float32)
    constants: dict[str, np.ndarray] = {"w": weight, "b": bias}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[1, 1])]
    if precision == "fp16":
        constants = {"w": weight.astype(np.float16), "b": bias.astype(np.float16)}
        nodes = [
            helper.make_node("Cast", ["x"], ["xh"], to=TensorProto.FLOAT16),
            helper.make_node("Conv", ["xh", "w", "b"], ["yh"], pads=[1, 1]),
            helper.make_node("Cast", ["yh"], ["y"], to=TensorProto.FLOAT),
        ]
    elif precision == "int8":
        scale = (np.abs(weight).max(axis=(1, 2)) / 127).astype(np.float32)
        constants = {
            "wq": np.clip(np.round(weight / scale[:, None, None]), -127, 127).astype(np.int8),
            "ws": scale,
            "wz": np.zeros(16, np.int8),
            "xs": np.array(0.03, np.float32),
            "xz": np.array(0, np.int8),
            "b": bias,
        }
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
            helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
            helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["w"], axis=0),
            helper.make_node("Conv", ["xd", "w", "b"], ["y"], pads=[1, 1]),
        ]
    return model(nodes, [value("x", [1, 16, 32])], [value("y", [1, 16, 32])], constants)


def int8_bias() -> bytes:
    """A convolution whose bias is int32 behind a DequantizeLinear, as ONNX Runtime's quantiser writes it."""
    constants = {
        "xs": np.array(0.03, np.float32),
        "xz": np.array(0, np.int8),
        "wq": np.ones((16, 16, 3), np.int8),
        "ws": np.full(16, 0.01, np.float32),
        "wz": np.zeros(16, np.int8),
        "bq": np.ones(16, np.int32),
        "bs": np.full(16, 0.0003, np.float32),
        "bz": np.zeros(16, np.int32),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["w"], axis=0),
        helper.make_node("DequantizeLinear", ["bq", "bs", "bz"], ["b"], axis=0),
        helper.make_node("Conv", ["xd", "w", "b"], ["y"], pads=[1, 1]),
    ]
    return model(nodes, [value("x", [1, 16, 32])], [value("y", [1, 16, 32])], constants)


def non_zero() -> bytes:
    """How many elements are not zero: a shape that depends on data."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("Cast", ["where"], ["y"], to=TensorProto.FLOAT),
    ]
    return model(nodes, [value("x", [8])], [value("y", [1, "n"])])

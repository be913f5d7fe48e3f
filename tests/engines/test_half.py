from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engines.errors import GraphError
from engines.runtime.graph import value
from engines.runtime.half import half, rounded
from engines.runtime.ort import OrtEngine


def _model(factor: float = 3.0) -> onnx.ModelProto:
    """y = exp(3 x) + 3.5 (4.5 where x > 3), and z, an output on the way, that is taken further too."""
    nodes = [
        helper.make_node("Greater", ["x", "factor"], ["high"]),
        helper.make_node("Cast", ["high"], ["is_high"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "factor"], ["z"]),
        helper.make_node("Exp", ["z"], ["grown"], name="delicate"),
        helper.make_node("Add", ["grown", "factor"], ["sum"]),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["half"], value=numpy_helper.from_array(np.full(1, 0.5, "f4"))),
        helper.make_node("Sum", ["sum", "is_high", "half"], ["y"]),
    ]
    floats = [value(name, TensorProto.FLOAT, [5]) for name in "xyz"]
    tensors = [numpy_helper.from_array(np.array(factor, np.float32), "factor")]
    graph = helper.make_graph(nodes, "g", floats[:1], floats[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _types(model: onnx.ModelProto) -> dict[str, int]:
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    items = (*inferred.input, *inferred.value_info, *inferred.output)
    return {item.name: item.type.tensor_type.elem_type for item in items}


X = {"x": np.linspace(-1, 4, 5, dtype=np.float32)}


def test_inputs_and_outputs_keep_their_type_and_about_their_values() -> None:
    model = _model()
    result = half(model)
    types = _types(result)
    assert [types[name] for name in ("x", "y", "z")] == [TensorProto.FLOAT] * 3
    assert {types[name] for name in ("grown", "sum", "is_high", "half")} == {TensorProto.FLOAT16}
    found = OrtEngine(rounded(result).SerializeToString()).run(X)["y"]
    expected = OrtEngine(model.SerializeToString()).run(X)["y"]
    finite = expected < 6e4
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-2)
    assert np.isinf(found[~finite]).all(), "FP16 ends at 65504"


def test_what_is_kept_stays_float32() -> None:
    model = _model()
    result = half(model, keep=lambda node: node.op_type in {"Exp", "Add", "Sum"})
    types = _types(result)
    assert {types[name] for name in ("grown", "sum")} == {TensorProto.FLOAT}
    found, expected = (OrtEngine(m.SerializeToString()).run(X)["y"] for m in (rounded(result), model))
    np.testing.assert_allclose(found, expected, rtol=1e-2)
    assert found.max() > 1e5


def test_weights_are_stored_once_in_each_type_that_somebody_takes() -> None:
    kinds = {tensor.name: tensor.data_type for tensor in half(_model()).graph.initializer}
    assert kinds == {"factor/half": TensorProto.FLOAT16}
    both = half(_model(), keep=lambda node: node.op_type == "Mul").graph.initializer
    assert {tensor.name: tensor.data_type for tensor in both} == {
        "factor": TensorProto.FLOAT,
        "factor/half": TensorProto.FLOAT16,
    }


def test_a_constant_too_large_for_fp16_is_named() -> None:
    with pytest.raises(GraphError, match=r"factor is too large for FP16: 1e\+06"):
        half(_model(1e6))
    half(_model(1e6), keep=lambda _: True)

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engines.errors import GraphError
from engines.runtime.graph import value
from engines.runtime.ort import OrtEngine
from engines.runtime.static import sum_by_product


def _sums(axis: int, **attributes: int) -> onnx.ModelProto:
    """y = cumulative sums of x [2, 3, 10]."""
    x, y = (value(name, TensorProto.FLOAT, [2, 3, 10]) for name in "xy")
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(np.array(axis), "axis")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("axis", [2, -1])
def test_cumulative_sums_become_products(axis: int) -> None:
    model = _sums(axis)
    sum_by_product(model)
    assert [node.op_type for node in model.graph.node] == ["MatMul"]
    x = np.random.default_rng(0).standard_normal((2, 3, 10), dtype=np.float32)
    found = OrtEngine(model.SerializeToString()).run({"x": x})["y"]
    np.testing.assert_allclose(found, x.cumsum(axis=2), atol=1e-4)


@pytest.mark.parametrize("model", [_sums(0), _sums(1), _sums(-2), _sums(2, exclusive=1), _sums(2, reverse=1)])
def test_sums_of_another_kind_are_refused(model: onnx.ModelProto) -> None:
    with pytest.raises(GraphError, match="y is a cumulative sum of another kind"):
        sum_by_product(model)

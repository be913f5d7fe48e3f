"""A plain cast of a graph to float16 between float32 ends: what a builder's test needs, with no care for quality."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def cast(model: onnx.ModelProto) -> onnx.ModelProto:
    """Let everything between the latents and the resampler compute in float16."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    graph = model.graph
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and not tensor.name.startswith("resample/"):
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float16), tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
            if attribute.name == "value" and attribute.t.data_type == TensorProto.FLOAT:
                array = numpy_helper.to_array(attribute.t).astype(np.float16)
                attribute.t.CopyFrom(numpy_helper.from_array(array, attribute.t.name))
        for i, name in enumerate(node.input):
            if name == "latents":
                node.input[i] = "latents/half"
    flat = next(node for node in graph.node if node.output[0] == "resample/flat")
    graph.node.insert(
        list(graph.node).index(flat),
        helper.make_node("Cast", [flat.input[0]], ["resample/single"], to=TensorProto.FLOAT),
    )
    flat.input[0] = "resample/single"
    graph.node.insert(0, helper.make_node("Cast", ["latents"], ["latents/half"], to=TensorProto.FLOAT16))
    del graph.value_info[:]
    return model

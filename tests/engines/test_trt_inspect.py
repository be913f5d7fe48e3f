from __future__ import annotations

import json
import sys

import pytest
from simulators import graphs
from simulators.tensorrt import World

from engines.runtime.trt import TensorRt
from engines.runtime.trt_build import build
from engines.runtime.trt_engine import TrtEngine
from engines.runtime.trt_inspect import Layers, complaint, layers


def told(world: World, monkeypatch: pytest.MonkeyPatch, precision: str) -> str:
    monkeypatch.setitem(sys.modules, "tensorrt", world.module())
    plan, _ = build(graphs.convolution(precision), name="voice")
    return TrtEngine(TensorRt(world.gpu), plan, name="voice", precision=precision).layers()


@pytest.mark.parametrize("version", ["10.3.0", "10.13.3.9", "11.4.1"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_what_a_plan_computes_in_is_told(precision: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = layers(told(World(version=version), monkeypatch, precision))
    assert found.costly == {precision: 1}
    assert complaint(found, precision) == ""


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_a_plan_that_silently_became_fp32_is_told(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.faults.all_float = True
    found = layers(told(world, monkeypatch, precision))
    assert "fp32" in complaint(found, precision)


def test_a_layer_of_tensorrts_guide() -> None:
    """As NVIDIA's own documentation prints it."""
    text = {
        "Name": "node_of_gpu_0/res4_0_branch2a_1 + node_of_gpu_0/res4_0_branch2a_bn_1",
        "LayerType": "CaskConvolution",
        "Inputs": [{"Name": "a", "Format/Datatype": "Thirty-two wide channel vectorized row major Int8 format."}],
        "Outputs": [{"Name": "b", "Format/Datatype": "Thirty-two wide channel vectorized row major Int8 format."}],
        "Weights": {"Type": "Int8", "Count": 131072},
        "Bias": {"Type": "Float", "Count": 256},
    }
    assert layers(json.dumps({"Layers": [text], "Bindings": ["x"]})) == Layers({"int8": 1}, {"int8": 1})


def test_layers_that_move_data_do_not_count() -> None:
    moving = {"Name": "Reformatting CopyNode", "LayerType": "Reformat", "Inputs": [{"Format/Datatype": "Float"}]}
    assert layers(json.dumps({"Layers": [moving]})).all == {}


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "{}", '{"Layers": 3}', '{"Layers": ["conv1", "conv2"]}'])
def test_what_tells_nothing_is_said_to(text: str) -> None:
    found = layers(text)
    assert str(found) == "unknown"
    assert "does not tell" in complaint(found, "fp16")


def test_the_share_decides() -> None:
    assert complaint(Layers({"int8": 6, "fp16": 4, "fp32": 5}, {"int8": 6, "fp16": 4, "fp32": 5}), "int8") == ""
    assert complaint(Layers({"int8": 1, "fp32": 9}, {"int8": 1, "fp32": 9}), "int8")
    assert complaint(Layers({"fp16": 10}, {"fp16": 10}), "int8").startswith("no layer computes in int8")
    assert complaint(Layers({"fp32": 3}, {"fp32": 3}), "fp32") == ""

"""NVIDIA's own ONNX parser and builder, which need no GPU: they refuse what TensorRT would refuse.

TensorRT for RTX knows no Jetson and runs nothing here. What it builds for the same generation of GPU (8.6; Orin is
8.7) is evidence, not proof, that TensorRT on a Jetson will.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorrt_rtx_bindings as trt


class RefusedError(Exception):
    """The parser or the builder does not take a graph, and why."""


class _Log(trt.ILogger):
    def __init__(self) -> None:
        trt.ILogger.__init__(self)
        self.errors: list[str] = []

    def log(self, severity: trt.ILogger.Severity, msg: str) -> None:
        if severity in (trt.ILogger.INTERNAL_ERROR, trt.ILogger.ERROR):
            self.errors.append(msg)


def build(graph: bytes, compute_capabilities: Sequence[int] = (86,)) -> bytes:
    """Build a strongly typed network for GPUs such as 86; gives the plan. RefusedError."""
    log = _Log()
    builder = trt.Builder(log)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, log)
    if not parser.parse(graph):
        raise RefusedError("; ".join(parser.get_error(i).desc() for i in range(parser.num_errors)))
    config = builder.create_builder_config()
    config.num_compute_capabilities = len(compute_capabilities)
    for i, capability in enumerate(compute_capabilities):
        config.set_compute_capability(getattr(trt.ComputeCapability, f"SM{capability}"), i)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise RefusedError("; ".join(log.errors))
    return bytes(memoryview(plan))

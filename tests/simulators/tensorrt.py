"""A `tensorrt` module that builds, loads and runs plans without a GPU, by ONNX Runtime.

It has the names and signatures of the real binding's type stubs and no others (test_trt_simulator.py holds it), and is
as strict as the real one: it refuses plans of another version or GPU, unset addresses, the default stream.
"""

from __future__ import annotations

import enum
import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper
from simulators.gpu import ALIGNMENT, Gpu
from simulators.tensorrt_parts import (
    ELEMENTS,
    TF32,
    DataType,
    ExecutionContextAllocationStrategy,
    Host,
    IBuilderConfig,
    ILogger,
    INetworkDefinition,
    IProgressMonitor,
    ITensor,
    ITimingCache,
    LayerInformationFormat,
    MemoryPoolType,
    ParserError,
    ProfilingVerbosity,
    TensorIOMode,
    TensorLocation,
    parse,
    shape_of,
)

PHASES = (
    ("Building engine", "", 4),
    ("Preparing graph", "Building engine", 2),
    ("Timing tactics", "Building engine", 8),
)


@dataclass
class Faults:
    """What goes wrong, until it is taken back."""

    loading: bool = False
    """No memory for a context."""
    enqueue: bool = False
    output: Callable[[NDArray[Any]], None] | None = None
    """Spoils what a run wrote."""
    building: str = ""
    """Reason why a build gives no plan."""
    during_build: Callable[[], None] = lambda: None
    all_float: bool = False
    """The inspector finds nothing but float32."""
    workspace: list[int] = field(default_factory=list)
    """Not a fault: the limits that builds were given."""
    timings_used: list[bytes] = field(default_factory=list)
    """Not a fault either: the timing caches."""


_WORDS = {TensorProto.INT8: "Int8", TensorProto.FLOAT16: "FP16", TensorProto.FLOAT: "FP32"}


class EngineInspector:
    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine

    def get_engine_information(self, format: enum.IntEnum) -> str:  # noqa: A002  the real signature
        assert format == LayerInformationFormat.JSON
        return json.dumps(self._engine._layers())


class ICudaEngine:
    def __init__(self, world: World, plan: dict[str, Any], model: onnx.ModelProto) -> None:
        self._world, self._plan, self._model = world, plan, model
        self._tensors = {t.name: t for t in (*model.graph.input, *model.graph.output)}

    @property
    def num_io_tensors(self) -> int:
        return len(self._tensors)

    def get_tensor_name(self, index: int) -> str:
        return list(self._tensors)[index]

    def get_tensor_mode(self, name: str) -> enum.IntEnum:
        inputs = {item.name for item in self._model.graph.input}
        return TensorIOMode.INPUT if name in inputs else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> enum.IntEnum:
        return ELEMENTS[self._tensors[name].type.tensor_type.elem_type]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return shape_of(self._tensors[name])

    def get_tensor_location(self, name: str) -> enum.IntEnum:
        return TensorLocation.HOST if name.startswith("host/") else TensorLocation.DEVICE

    def create_execution_context(
        self, strategy: enum.IntEnum = ExecutionContextAllocationStrategy.STATIC
    ) -> IExecutionContext | None:
        if self._world.faults.loading:
            self._world.error("Error Code 2: OutOfMemory (Requested size was 104857600 bytes.)")
            return None
        return IExecutionContext(self)

    def create_engine_inspector(self) -> EngineInspector:
        return EngineInspector(self)

    def _layers(self) -> dict[str, Any]:
        if self._plan["verbosity"] != int(ProfilingVerbosity.DETAILED):
            return {"Layers": [node.name for node in self._model.graph.node]}
        inferred = onnx.shape_inference.infer_shapes(self._model).graph
        types = {
            v.name: v.type.tensor_type.elem_type for v in (*inferred.value_info, *inferred.input, *inferred.output)
        }
        quantised = {n.output[0] for n in inferred.node if n.op_type == "DequantizeLinear"}
        listed = []
        for node in inferred.node:
            element = TensorProto.INT8 if node.input and node.input[0] in quantised else types.get(node.output[0], 0)
            word = {TensorProto.INT8: "Int8", TensorProto.FLOAT16: "FP16", TensorProto.FLOAT: "FP32"}.get(
                element, "Int32"
            )
            kind = "CaskConvolution" if "Conv" in node.op_type else node.op_type
            if node.op_type == "DequantizeLinear":
                kind, word = "Reformat", "Int8"
            tensor = self._world.told_type("FP32" if self._world.faults.all_float else word)
            listed.append({"Name": node.name, "LayerType": kind, "Inputs": [{"Name": node.input[0], **tensor}]})
        return {"Layers": listed}


class IExecutionContext:
    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine
        self._addresses: dict[str, int] = {}
        self._warm = False
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(engine._model.SerializeToString(), options)

    def set_tensor_address(self, name: str, memory: int) -> bool:
        assert name in self._engine._tensors, f"{name} is no tensor"
        assert memory % ALIGNMENT == 0, f"{name}: the address is not aligned"
        self._addresses[name] = memory
        return True

    def execute_async_v3(self, stream_handle: int) -> bool:
        world = self._engine._world
        assert stream_handle != 0, "the default stream"
        stream = world.gpu.streams[stream_handle]
        unset = set(self._engine._tensors) - set(self._addresses)
        if unset or world.faults.enqueue:
            world.error(f"Error Code 3: API Usage Error (no address for {sorted(unset)})")
            return False
        if stream.capturing is not None and not (self._warm and stream.capture_is_valid):
            world.error("Error Code 1: Cuda Runtime (operation not permitted when stream is capturing)")
            stream.capture_is_valid = False
            return False
        self._warm = True
        addresses = dict(self._addresses)
        stream.put(lambda: self._run(addresses))
        return True

    def _run(self, addresses: dict[str, int]) -> None:
        world = self._engine._world
        world.runs += 1
        feeds = {i.name: self._array(i, addresses) for i in self._engine._model.graph.input}
        names = [o.name for o in self._engine._model.graph.output]
        for item, value in zip(self._engine._model.graph.output, self._session.run(names, feeds), strict=True):
            place = self._array(item, addresses)
            np.copyto(place, value.reshape(place.shape))
            if world.faults.output is not None:
                world.faults.output(place)

    def _array(self, item: onnx.ValueInfoProto, addresses: dict[str, int]) -> NDArray[Any]:
        shape = shape_of(item)
        element = helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type)
        size = int(np.prod(shape, dtype=np.int64)) * element.itemsize
        return self._engine._world.gpu.bytes_at(addresses[item.name], size).view(element).reshape(shape)


@dataclass
class World:
    """One machine: a GPU, a version, and what goes wrong on it."""

    gpu: Gpu = field(default_factory=Gpu)
    version: str = "10.3.0"
    sm: str = "sm87"
    typed_flag: bool = True
    """Whether the flag for strong typing still exists."""
    faults: Faults = field(default_factory=Faults)
    runs: int = 0
    builds: int = 0
    logger: ILogger | None = None

    def error(self, text: str) -> None:
        assert self.logger is not None
        self.logger.log(ILogger.ERROR, text)

    def told_type(self, word: str) -> dict[str, str]:
        """Say a tensor's type as the inspector of this version does."""
        short = {"Int8": "Int8", "FP16": "Half", "FP32": "Float", "Int32": "Int32"}[word]
        major, minor = map(int, self.version.split(".")[:2])
        if major >= 11:
            return {"Format": "Row major linear", "DataType": short}
        return {"Format/Datatype": short if minor >= 9 else f"Row major linear {word} format"}

    def module(self) -> ModuleType:
        """Give the module, to be put in the place of `tensorrt`."""
        world = self
        module = ModuleType("tensorrt")
        flags = ["STRONGLY_TYPED"] if self.typed_flag else []
        modern = int(self.version.split(".")[0]) >= 11

        class Builder:
            def __init__(self, logger: ILogger) -> None:
                assert logger._ready, "the logger's base was not initialised"
                world.logger = logger

            def create_network(self, flags: int = 0) -> INetworkDefinition:
                return INetworkDefinition(flags)

            def create_builder_config(self) -> IBuilderConfig:
                return IBuilderConfig()

            def build_serialized_network(self, network: INetworkDefinition, config: IBuilderConfig) -> Host | None:
                return world._build(network, config, needs_flag=not modern)

        class OnnxParser:
            def __init__(self, network: INetworkDefinition, logger: ILogger) -> None:
                self._network = network
                self._errors: list[ParserError] = []

            def parse(self, model: bytes, path: str | None = None) -> bool:
                self._errors = parse(self._network, model)
                return not self._errors

            @property
            def num_errors(self) -> int:
                return len(self._errors)

            def get_error(self, index: int) -> ParserError:
                return self._errors[index]

        class Runtime:
            def __init__(self, logger: ILogger) -> None:
                assert logger._ready, "the logger's base was not initialised"
                world.logger = logger

            def deserialize_cuda_engine(self, serialized_engine: bytes) -> ICudaEngine | None:
                return world._load(bytes(serialized_engine))

        weak = [] if modern else ["FP16", "INT8"]
        module.__dict__.update(
            __version__=self.version,
            Builder=Builder,
            OnnxParser=OnnxParser,
            Runtime=Runtime,
            NetworkDefinitionCreationFlag=enum.IntEnum("NetworkDefinitionCreationFlag", flags, start=1),
            BuilderFlag=enum.IntEnum("BuilderFlag", {"TF32": TF32, **{name: i for i, name in enumerate(weak)}}),
            **{c.__name__: c for c in _SHARED},
        )
        return module

    def _build(self, network: INetworkDefinition, config: IBuilderConfig, *, needs_flag: bool) -> Host | None:
        assert not needs_flag or network._flags == 1 << 1, "the network is not strongly typed"
        self.builds += 1
        self.faults.workspace.append(config._pools[MemoryPoolType.WORKSPACE])
        self.faults.timings_used.append(config._cache._content if config._cache else b"")
        if not self._tell(config.progress_monitor):
            return None
        if self.faults.building:
            self.error(self.faults.building)
            return None
        assert config._cache is not None
        config._cache._content = b"timing of " + self.sm.encode()
        body = network._model.SerializeToString()
        header = {
            "version": self.version,
            "sm": self.sm,
            "size": len(body),
            "verbosity": int(config.profiling_verbosity),
            "tf32": TF32 in config._flags,
            "sha": hashlib.sha256(body).hexdigest(),
        }
        return Host(json.dumps(header).encode() + b"\n" + body)

    def _tell(self, monitor: IProgressMonitor | None) -> bool:
        """Report as the real builder does: nested phases, from a thread of its own."""
        if monitor is None:
            return True
        assert monitor._ready, "the monitor's base was not initialised"
        going_on = []

        def report() -> None:
            (root, _, steps), *inner = PHASES
            monitor.phase_start(root, None, steps)  # type: ignore[arg-type]  the stub says str; it is None
            for step, (phase, parent, count) in enumerate(inner):
                monitor.phase_start(phase, parent, count)
                going_on.extend(monitor.step_complete(phase, i) for i in range(count))
                self.faults.during_build()
                monitor.phase_finish(phase)
                going_on.append(monitor.step_complete(root, step))
            monitor.phase_finish(root)

        thread = threading.Thread(target=report)
        thread.start()
        thread.join()
        return all(going_on)

    def _load(self, plan: bytes) -> ICudaEngine | None:
        line, _, body = plan.partition(b"\n")
        try:
            header = json.loads(line)
        except ValueError:
            self.error("Error Code 1: Serialization (magic tag does not match)")
            return None
        if (header["version"], header["sm"]) != (self.version, self.sm):
            self.error(f"Error Code 6: API Usage Error (expecting {self.version} {self.sm}, got {header['version']})")
            return None
        if len(body) != header["size"]:
            self.error("Error Code 1: Serialization (stream is too short)")
            return None
        return ICudaEngine(self, header, onnx.ModelProto.FromString(body))


_SHARED: tuple[Any, ...] = (
    ILogger,
    IProgressMonitor,
    ITimingCache,
    ParserError,
    ITensor,
    INetworkDefinition,
    IBuilderConfig,
    EngineInspector,
    ICudaEngine,
    IExecutionContext,
    DataType,
    ExecutionContextAllocationStrategy,
    TensorIOMode,
    TensorLocation,
    MemoryPoolType,
    ProfilingVerbosity,
    LayerInformationFormat,
)

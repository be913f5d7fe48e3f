"""The parts of a simulated `tensorrt` module that need no GPU: enumerations, settings, networks and their parser."""

from __future__ import annotations

import enum

import onnx
from onnx import TensorProto

DataType = enum.IntEnum(
    "DataType", ["FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8", "FP8", "BF16", "INT64"], start=0
)
TensorIOMode = enum.IntEnum("TensorIOMode", ["NONE", "INPUT", "OUTPUT"], start=0)
TensorLocation = enum.IntEnum("TensorLocation", ["DEVICE", "HOST"], start=0)
MemoryPoolType = enum.IntEnum("MemoryPoolType", ["WORKSPACE", "DLA_MANAGED_SRAM"], start=0)
ProfilingVerbosity = enum.IntEnum("ProfilingVerbosity", ["LAYER_NAMES_ONLY", "NONE", "DETAILED"], start=0)
ExecutionContextAllocationStrategy = enum.IntEnum("ExecutionContextAllocationStrategy", ["STATIC"], start=0)
LayerInformationFormat = enum.IntEnum("LayerInformationFormat", ["ONELINE", "JSON"], start=0)

ELEMENTS = {
    TensorProto.FLOAT: DataType.FLOAT,
    TensorProto.FLOAT16: DataType.HALF,
    TensorProto.INT8: DataType.INT8,
    TensorProto.INT32: DataType.INT32,
    TensorProto.INT64: DataType.INT64,
    TensorProto.BOOL: DataType.BOOL,
    TensorProto.DOUBLE: DataType.BF16,  # a type that no numpy array has
}


class ILogger:
    class Severity(enum.IntEnum):
        INTERNAL_ERROR = 0
        ERROR = 1
        WARNING = 2
        INFO = 3
        VERBOSE = 4

    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = Severity

    def __init__(self) -> None:
        self._ready = True

    def log(self, severity: ILogger.Severity, msg: str) -> None:
        raise NotImplementedError


class IProgressMonitor:
    def __init__(self) -> None:
        self._ready = True

    def phase_start(self, phase_name: str, parent_phase: str, num_steps: int) -> None:
        raise NotImplementedError

    def step_complete(self, phase_name: str, step: int) -> bool:
        raise NotImplementedError

    def phase_finish(self, phase_name: str) -> None:
        raise NotImplementedError


class Host(bytes):
    """The binding's IHostMemory: something with a buffer."""


class ITimingCache:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def serialize(self) -> Host:
        return Host(self._content)


class ParserError:
    def __init__(self, node: onnx.NodeProto | None, text: str) -> None:
        self._node, self._text = node, text

    def desc(self) -> str:
        return self._text

    def node_name(self) -> str:
        return self._node.name if self._node else ""

    def node_operator(self) -> str:
        return self._node.op_type if self._node else ""


class ITensor:
    def __init__(self, info: onnx.ValueInfoProto) -> None:
        self.name = info.name
        self.shape = shape_of(info)
        self.dtype = ELEMENTS[info.type.tensor_type.elem_type]


class INetworkDefinition:
    def __init__(self, flags: int) -> None:
        self._flags = flags
        self._model = onnx.ModelProto()

    @property
    def num_inputs(self) -> int:
        return len(self._model.graph.input)

    def get_input(self, index: int) -> ITensor:
        return ITensor(self._model.graph.input[index])


class IBuilderConfig:
    def __init__(self) -> None:
        self.profiling_verbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
        self.progress_monitor: IProgressMonitor | None = None
        self.max_aux_streams = -1
        self._pools: dict[int, int] = {}
        self._flags = {int(TF32)}
        self._cache: ITimingCache | None = None

    def set_memory_pool_limit(self, pool: enum.IntEnum, pool_size: int) -> None:
        self._pools[pool] = pool_size

    def clear_flag(self, flag: enum.IntEnum) -> None:
        self._flags.discard(int(flag))

    def create_timing_cache(self, serialized_timing_cache: bytes) -> ITimingCache:
        return ITimingCache(serialized_timing_cache)

    def set_timing_cache(self, cache: ITimingCache, ignore_mismatch: bool) -> bool:  # noqa: FBT001  the real signature
        self._cache = cache
        return not cache._content or cache._content.startswith(b"timing") or ignore_mismatch


TF32 = 8


def parse(network: INetworkDefinition, content: bytes) -> list[ParserError]:
    try:
        model = onnx.ModelProto.FromString(content)
        onnx.checker.check_model(model)
    except Exception as error:  # noqa: BLE001  protobuf's and onnx's errors have no common root
        return [ParserError(None, f"ModelImporter: {error}")]
    network._model = model
    return [ParserError(n, "data-dependent shape") for n in model.graph.node if n.op_type == "NonZero"]


def shape_of(info: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(d.dim_value if d.HasField("dim_value") else -1 for d in info.type.tensor_type.shape.dim)

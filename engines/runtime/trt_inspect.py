"""In which types a plan's layers really compute, read from what TensorRT's inspector tells.

Its JSON says a tensor's type in words that changed from version to version: "Row major linear FP16 format" (10.0),
"Half" (10.9), and since 11 a field of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "int8": ("int8",),
    "bf16": ("bf16", "bfloat16"),
    "fp16": ("fp16", "half", "float16"),
    "fp32": ("fp32", "float"),
}
"""Precision -> how TensorRT calls it. In this order: a word of the last line is part of some before."""

_MOVING: Final = frozenset({"reformat", "noop", "constant", "shuffle", "signal", "wait", "cast", "identity"})
"""Layers that compute nothing: their types say only what those beside them take."""

_COSTLY: Final = ("conv", "gemm", "matrixmultiply", "matmul", "einsum")
"""Parts of the layer types that do nearly all of the work, in lower case; 'conv' is in 'deconvolution' too."""

_SILENT: Final = 0.5
"""Share of the costly layers, those that a graph has in INT8 or FP16, that may turn out as FP32 before it is told."""


@dataclass(frozen=True, slots=True)
class Layers:
    """How many of a plan's layers compute in which precision: 'int8', 'fp16', 'fp32', 'bf16'."""

    all: Mapping[str, int]
    costly: Mapping[str, int]
    """Convolutions and matrix products alone."""

    def __str__(self) -> str:
        """For people: '23 int8, 40 fp16'."""
        return ", ".join(f"{count} {precision}" for precision, count in sorted(self.all.items())) or "unknown"


def layers(told: str) -> Layers:
    """Count layers by precision, from the inspector's JSON; nothing is counted of what it does not tell."""
    everything: Counter[str] = Counter()
    costly: Counter[str] = Counter()
    try:
        listed: Any = json.loads(told)["Layers"]
    except (ValueError, KeyError, TypeError):
        listed = []
    for layer in listed if isinstance(listed, list) else []:
        if not isinstance(layer, dict):  # a bare name: the plan was built without details
            continue
        kind = str(layer.get("LayerType", "")).lower()
        precision = _precision(layer)
        if not precision or kind in _MOVING:
            continue
        everything[precision] += 1
        names = f"{kind} {layer.get('ParameterType', '')} {layer.get('Name', '')}".lower()
        if any(word in names for word in _COSTLY):
            costly[precision] += 1
    return Layers(dict(everything), dict(costly))


def complaint(found: Layers, wanted: str) -> str:
    """Say how a plan falls short of the precision that its graph was written in; empty where it does not."""
    counted = found.costly or found.all
    total = sum(counted.values())
    if total == 0:
        return "TensorRT does not tell in what its layers compute"
    if wanted == "fp32":
        return ""
    if wanted == "int8" and not counted.get("int8"):
        return f"no layer computes in int8: {found}"
    slow = counted.get("fp32", 0)
    if slow > _SILENT * total:
        return f"{slow} of {total} layers compute in fp32, not in {wanted}: {found}"
    return ""


def _precision(layer: Mapping[str, Any]) -> str:
    """Give the narrowest floating or quantised type that a layer takes: what it multiplies in."""
    weights = layer.get("Weights")
    words = [str(weights.get("Type", ""))] if isinstance(weights, dict) else []
    inputs = layer.get("Inputs")
    words += [_type(tensor) for tensor in inputs if isinstance(tensor, dict)] if isinstance(inputs, list) else []
    named = [_named(word) for word in words]
    return next((precision for precision in _WORDS if precision in named), "")


def _type(tensor: Mapping[str, Any]) -> str:
    """Give a tensor's type in TensorRT's words, from whichever field has it."""
    return str(
        tensor.get("DataType") or tensor.get("Datatype") or tensor.get("Format/Datatype") or tensor.get("Format") or ""
    )


def _named(word: str) -> str:
    lower = word.lower()
    return next((precision for precision, names in _WORDS.items() if any(name in lower for name in names)), "")

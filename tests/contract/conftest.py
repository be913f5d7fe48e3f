from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from contract.rigs import QUANTUM, AlsaFileRig, AlsaPulseRig, NullRig, OpusRig, Rig, WavRig
from simulators.pulse import PulseServer


@pytest.fixture(params=["null", "null-unpaced", "wav", "opus", "alsa-file", "alsa-pulse-float", "alsa-pulse-s16"])
def rig(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    kind: str = request.param
    if kind.startswith("alsa-pulse"):
        sample_format, tolerance = ("float32le", 0.0) if kind.endswith("float") else ("s16le", QUANTUM)
        with PulseServer(sample_format) as server:  # type: ignore[arg-type]
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            made = AlsaPulseRig(server, tolerance)
            yield made
            made.sink.close()
        return
    if kind == "alsa-file":
        (tmp_path / "asound.conf").write_text(
            "</usr/share/alsa/alsa.conf>\n"
            f'pcm.tofile {{ type file slave.pcm null file "{tmp_path / "speech.raw"}" format raw }}\n'
        )
        monkeypatch.setenv("ALSA_CONFIG_PATH", str(tmp_path / "asound.conf"))
    rigs = {
        "null": lambda: NullRig(paced=True),
        "null-unpaced": lambda: NullRig(paced=False),
        "wav": lambda: WavRig(tmp_path),
        "opus": lambda: OpusRig(tmp_path),
        "alsa-file": lambda: AlsaFileRig(tmp_path),
    }
    rig: Rig = rigs[kind]()
    yield rig
    rig.sink.close()

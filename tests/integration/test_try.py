"""`speakd try`, as somebody who has just installed it sees it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path

import pytest

TIMEOUT_S = 60


@pytest.fixture
def environment(tmp_path: Path, voice_packs: Path) -> dict[str, str]:
    """Give an environment with no sound card, a cache of its own that has the voice, and a mark on each process."""
    (tmp_path / "asound.conf").write_text('pcm.!default { type hw card "none" }\n')
    (tmp_path / "speakd").mkdir()
    (tmp_path / "speakd/packs").symlink_to(voice_packs)
    return {
        **os.environ,
        "ALSA_CONFIG_PATH": str(tmp_path / "asound.conf"),
        "XDG_CACHE_HOME": str(tmp_path),
        "SPEAKD_TEST_MARK": str(tmp_path),
    }


def marked_processes(mark: str) -> list[str]:
    """Give the command lines of all processes that inherited the mark."""
    return [
        (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        for folder in Path("/proc").iterdir()
        if folder.name.isdecimal() and f"SPEAKD_TEST_MARK={mark}\0".encode() in environment_of(folder)
    ]


def environment_of(folder: Path) -> bytes:
    try:
        return (folder / "environ").read_bytes()
    except OSError:  # it has just ended
        return b""


@pytest.fixture
def process(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "daemon", "try"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process
        if process.poll() is None:
            process.kill()


def test_it_speaks_and_tells_what_became_of_it(environment: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "daemon", "try"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert (done.returncode, done.stderr.splitlines()[1:]) == (0, [])
    online, *events, figures = done.stdout.splitlines()
    assert re.fullmatch(r"speakd \S+ is online: voice en_US-joe-medium, onnxruntime-cpu", online)
    assert [line.split()[0] for line in events] == ["accepted", "started", "synthesized", "finished"]
    path = tmp_path / "speakd/try.wav"
    found = re.fullmatch(r"first audio after (\d+) ms, real-time factor ([\d.]+), sound to (.+)", figures)
    assert found is not None
    assert found[3] == str(path)
    with wave.open(str(path), "rb") as reader:
        assert 2 < reader.getnframes() / 48_000 < 5
    assert marked_processes(environment["SPEAKD_TEST_MARK"]) == []


@pytest.mark.parametrize(
    ("moment", "how"),
    [("", signal.SIGINT), ("is online", signal.SIGINT), ("accepted", signal.SIGINT), ("accepted", signal.SIGTERM)],
)
def test_interrupted_at_any_moment_it_leaves_no_process_behind(
    process: subprocess.Popen[str], environment: dict[str, str], moment: str, how: signal.Signals
) -> None:
    mark = environment["SPEAKD_TEST_MARK"]
    assert process.stdout is not None
    while moment not in process.stdout.readline():
        assert process.poll() is None
    assert marked_processes(mark)
    process.send_signal(how)
    output, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert "Traceback" not in output
    assert marked_processes(mark) == []

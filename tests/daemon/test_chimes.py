from __future__ import annotations

import subprocess
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from daemon.chimes import Chimes
from daemon.commands import Chime, Priority, Speak
from daemon.config import ChimesConfig
from daemon.errors import ChimeError, PayloadError
from device.bell import BELL_LUFS, BELLS, bell
from device.format import RATE, Samples
from engines.loudness import measure_loudness

TARGET = -23.0


def tone(seconds: float, rate: int = RATE, level: float = 0.1) -> Samples:
    return (level * np.sin(2 * np.pi * 800 * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def load(folder: Path | None = None, **keys: Any) -> Chimes:  # noqa: ANN401
    return Chimes.load(ChimesConfig(folder=str(folder or ""), **keys), TARGET)


@pytest.mark.parametrize("name", BELLS)
def test_a_bundled_one_has_the_loudness_that_was_written_down_and_no_click(name: str) -> None:
    assert measure_loudness(bell(name)) == pytest.approx(BELL_LUFS[name], abs=0.05)
    assert abs(bell(name)[0]) < 1e-3
    assert abs(bell(name)[-1]) < 1e-3


def test_all_are_as_loud_as_the_voice_whatever_they_came_as(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "mine.flac", tone(1.0, 44_100, 0.9), 44_100)
    soundfile.write(tmp_path / "stereo.wav", np.stack([tone(1.0, 16_000, 0.02)] * 2, axis=1), 16_000)
    soundfile.write(tmp_path / "loud.wav", tone(0.7, level=0.5), RATE, subtype="FLOAT")
    subprocess.run(["opusenc", "--quiet", tmp_path / "loud.wav", tmp_path / "small.opus"], check=True)  # noqa: S607
    (tmp_path / "README.txt").write_text("no sound")
    chimes = load(tmp_path)
    assert set(chimes.sounds) == {"attention", "done", "mine", "stereo", "loud", "small"}
    for sound in chimes.sounds.values():
        assert measure_loudness(sound) == pytest.approx(TARGET, abs=1)
    assert chimes.sounds["mine"].size == pytest.approx(RATE, abs=2)


def test_a_short_one_is_measured_too(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "tick.wav", tone(0.1, level=0.5), RATE)
    padded = np.pad(load(tmp_path).sounds["tick"], (0, RATE * 3 // 10))
    assert measure_loudness(padded) == pytest.approx(TARGET, abs=1)


def broken(folder: Path) -> None:
    (folder / "bad.wav").write_bytes(b"<html>not a sound</html>")


def silent(folder: Path) -> None:
    soundfile.write(folder / "bad.wav", np.zeros(RATE), RATE)


def endless(folder: Path) -> None:
    soundfile.write(folder / "bad.wav", tone(11), RATE)


def empty(folder: Path) -> None:
    with wave.open(str(folder / "bad.wav"), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))


@pytest.mark.parametrize("spoil", [broken, silent, endless, empty])
def test_a_bad_file_is_named_at_the_start(spoil: Any, tmp_path: Path) -> None:  # noqa: ANN401
    spoil(tmp_path)
    with pytest.raises(ChimeError, match=r"chimes\.folder.*bad\.wav"):
        load(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChimeError, match="nowhere"):
        load(tmp_path / "nowhere")


def test_a_default_that_there_is_none_of_is_named() -> None:
    with pytest.raises(ChimeError, match=r"chimes\.critical.*gong.*attention"):
        load(critical="gong")


class TestCommand:
    def test_gets_the_default_of_its_priority(self) -> None:
        chimes = load(critical="attention")
        assert chimes.settled(Speak(text="a", priority=Priority.CRITICAL)).chime == "attention"
        assert chimes.settled(Speak(text="a")).chime is None
        quiet = chimes.settled(Speak(text="a", priority=Priority.CRITICAL, chime=""))
        assert chimes.framing(quiet) is None

    @pytest.mark.parametrize("chime", ["gong", Chime(after="gong"), Chime(before="gong")])
    def test_names_one_that_exists(self, chime: str | Chime) -> None:
        with pytest.raises(PayloadError, match=r"gong.*attention, done") as refused:
            load().settled(Speak(id="x", text="a", chime=chime))
        assert (refused.value.code, refused.value.command_id) == ("chime", "x")

    def test_lasts_longer_by_its_chimes(self) -> None:
        chimes = load(overlap_ms=0)
        seconds = {name: bell(name).size / RATE for name in BELLS}
        assert chimes.length_s(Speak(text="a", chime="attention")) == pytest.approx(seconds["attention"], abs=0.02)
        both = Speak(text="a", chime=Chime(before="attention", after="done"))
        assert chimes.length_s(both) == pytest.approx(sum(seconds.values()), abs=0.02)
        assert chimes.length_s(Speak(text="a")) == 0

"""The real mark in the real voice: found after what happens to sound on its way, and not where it is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from integration.conftest import MakeDaemon
from simulators.broker import free_port
from simulators.controller import Controller
from simulators.figures import scraped
from simulators.waiting import wait_until

from daemon.cli import main
from daemon.config import Config, load
from daemon.views import doctor_voice
from device.format import RATE, Samples
from device.memory import HostBufferPool
from device.opus import OpusSettings
from device.opus_sink import OpusSink
from device.resampler import Resampler, to_house_rate
from device.sound_file import read_sound
from engines.pack_store import PackStore
from engines.runtime.ort import OrtEngine
from engines.shelf import Preferences
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.vits import VitsVoice
from engines.watermark_detector import LONGEST_S, MARKED, confidences
from engines.watermark_files import open_detector, open_watermark

TEXTS = ("Caution, the floor is wet.", "Room 217 is at the end of the corridor, on your right.", "Yes.")
"""1.8, 3.8 and 0.6 s."""


@pytest.fixture(scope="module")
def detector(watermark_state: Path) -> Iterator[OrtEngine]:
    with closing(open_detector(watermark_state / "watermark")) as detector:
        yield detector


@pytest.fixture(scope="module")
def said(voice_packs: Path, watermark_state: Path) -> dict[bool, list[Samples]]:
    """Give the texts as the default voice says them, with the mark and without."""
    pool = HostBufferPool(buffers=2, capacity=4 * RATE, limit_bytes=2**22)
    sounds: dict[bool, list[Samples]] = {True: [], False: []}
    with (
        closing(Phonemizer(60)) as phonemizer,
        closing(VitsVoice.load(PackStore(voice_packs).get("en_US-joe-medium"))) as voice,
    ):
        utterances = [Utterance(text, Preferences(loudness_lufs=-23).delivery(voice.info), seed=1) for text in TEXTS]
        for marked, heard in sounds.items():
            watermark = open_watermark(watermark_state / "watermark") if marked else None
            synthesizer = Synthesizer(phonemizer, pool, watermark=watermark)
            for utterance in utterances:
                parts = []
                for chunk in synthesizer.chunks(utterance, voice, Tally()):
                    parts.append(chunk.samples.copy())
                    chunk.release()
                heard.append(np.concatenate(parts))
    return sounds


def through_opus(sound: Samples, folder: Path) -> Samples:
    sink = OpusSink(str(folder / "x.opus"), OpusSettings(bitrate=24_000))
    with closing(sink):
        sink.open()
        sink.write(np.clip(sound, -1, 1))
        sink.drain()
    return read_sound(folder / "x.opus", longest_s=60)


def through_16_khz(sound: Samples, _folder: Path) -> Samples:
    narrow = Resampler(16_000)
    return to_house_rate(np.concatenate([narrow.more(sound), narrow.rest()]), 16_000)


WAYS: dict[str, Callable[[Samples, Path], Samples]] = {
    "as it is": lambda sound, _: sound,
    "Opus at 24 kbit/s": through_opus,
    "16 kHz": through_16_khz,
    "a tenth as loud": lambda sound, _: sound * np.float32(0.1),
    "too loud": lambda sound, _: np.clip(sound * 3, -1, 1),
    "all of it": lambda sound, folder: through_opus(through_16_khz(sound * np.float32(0.3), folder), folder),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_mark_is_found_where_it_is(
    way: str, said: dict[bool, list[Samples]], detector: OrtEngine, tmp_path: Path
) -> None:
    found = {
        marked: [confidences(WAYS[way](sound, tmp_path), detector)[0] for sound in sounds]
        for marked, sounds in said.items()
    }
    for with_mark, without in zip(found[True], found[False], strict=True):
        assert with_mark is not None
        assert without is not None
        assert without < 0.3 < MARKED < 0.7 < with_mark, found


def test_a_long_recording_is_told_in_stretches(said: dict[bool, list[Samples]], detector: OrtEngine) -> None:
    size = LONGEST_S * RATE
    stretches = [np.resize(said[marked][1], size) for marked in (False, True)]
    found = confidences(np.concatenate([*stretches, np.zeros(size, np.float32), said[True][2][:100]]), detector)
    assert [c is not None and c > MARKED for c in found] == [False, True, False, False]
    assert found[2:] == [None, None]  # silent; too short


def test_marked_speech_is_as_loud_and_nearly_the_same(said: dict[bool, list[Samples]]) -> None:
    for marked, plain in zip(said[True], said[False], strict=True):
        assert marked.size == plain.size
        power, added = float(np.mean(plain**2)), float(np.mean((marked - plain) ** 2))
        assert abs(10 * np.log10(float(np.mean(marked**2)) / power)) < 1
        assert 10 * np.log10(power / added) > 10


def test_whatever_a_daemon_says_is_marked(
    make_daemon: MakeDaemon,
    controller: Controller,
    watermark_state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "watermark").symlink_to(watermark_state / "watermark")
    spoken, port = tmp_path / "spoken.wav", free_port()
    figures = {"telemetry": {"interval_s": 1, "self_check": False}, "prometheus": {"enabled": True, "port": port}}
    with make_daemon(audio={"output": "wav", "path": str(spoken), "watermark": True}, **figures) as daemon:
        controller.wait_for_status("online")
        for number in range(3):  # the third time it is a kept phrase
            controller.speak({"id": f"s{number}", "text": "Please mind the gap."})
            controller.wait_for_final(f"s{number}")
        controller.speak({"id": "f", "text": "Please mind the gap.", "output": "file"})
        location = controller.wait_for_final("f")[-1]["location"]
        controller.speak({"id": "chime", "text": "", "chime": "done"})
        wait_until(lambda: scraped(port, "speakd_watermarked_total") == 4, "what was marked is not counted")
        daemon.terminate()
        daemon.wait()
    monkeypatch.setenv("STATE_DIRECTORY", str(watermark_state))
    assert main(["watermark", "check", "--json", str(spoken), str(tmp_path / "renders" / location)]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert [report["marked"] for report in reports] == [True, True]
    assert main(["watermark", "check", "--json", str(tmp_path / "none.wav"), str(spoken)]) == 1
    reports = json.loads(capsys.readouterr().out)
    assert [report["marked"] for report in reports] == [False, True], "one that cannot be read hides no other"


def test_without_its_graphs_nothing_is_said(
    voice_packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    file = tmp_path / "speakd.toml"
    file.write_text(f'[audio]\noutput = "null"\nwatermark = true\n[voice]\npacks = "{voice_packs}"\n')
    assert main(["--config", str(file), "say", "Hello."]) == 1
    assert "`speakd watermark add`" in capsys.readouterr().err
    config = load(file)
    assert [finding.state for finding in doctor_voice.watermark(config)] == ["fault"]
    assert not doctor_voice.watermark(Config())


@pytest.mark.parametrize("damage", ["changed", "another version", "no record"])
def test_graphs_that_are_not_as_they_were_written_are_refused(
    damage: str,
    watermark_state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "watermark"
    folder.mkdir()
    for name in ("detector.onnx", "watermark.json"):
        (folder / name).write_bytes((watermark_state / "watermark" / name).read_bytes())
    record = folder / "watermark.json"
    match damage:
        case "changed":
            with (folder / "detector.onnx").open("r+b") as graph:
                graph.seek(10_000_000)
                graph.write(b"x")
        case "another version":
            record.write_text(record.read_text().replace('"revision": 1', '"revision": 0'))
        case _:
            record.write_text("{")
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    assert main(["watermark", "check", "x.wav"]) == 1
    assert "install it again by `speakd watermark add`" in capsys.readouterr().err


def test_it_is_added_where_it_is_wanted_and_lacking(
    watermark_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What install.sh asks for: a wheel that is not there shows whether it would have been read."""
    file = tmp_path / "speakd.toml"
    add = ["--config", str(file), "watermark", "add", "--wanted", str(tmp_path / "absent.whl")]
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    file.write_text("")
    assert main(add) == 0
    file.write_text("[audio]\nwatermark = true\n")
    assert main(add) == 1
    assert "absent.whl" in capsys.readouterr().err
    monkeypatch.setenv("STATE_DIRECTORY", str(watermark_state))
    assert main(add) == 0

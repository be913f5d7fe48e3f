"""Chimes by MQTT, as the recorder heard them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile
from integration.conftest import MakeDaemon
from simulators.controller import Controller

from device.bell import bell
from device.format import RATE


def test_a_command_is_heard_with_its_chimes(make_daemon: MakeDaemon, controller: Controller, tmp_path: Path) -> None:
    own, recordings = tmp_path / "chimes", tmp_path / "recordings"
    own.mkdir()
    soundfile.write(own / "ping.flac", 0.5 * np.sin(np.arange(24_000) / 5), RATE)
    settings = {
        "chimes": {"folder": str(own), "critical": "ping", "overlap_ms": 0},
        "recorder": {"enabled": True, "folder": str(recordings)},
    }
    with make_daemon(**settings):
        controller.wait_for_status("online")
        plain = controller.speak({"id": "a", "text": "Yes."})[-1]["audio_s"]
        both = controller.speak({"id": "b", "text": "Yes.", "chime": {"before": "attention", "after": "done"}})
        default = controller.speak({"id": "c", "text": "Yes.", "priority": "critical"})
        silent = controller.speak({"id": "d", "text": "Yes.", "priority": "critical", "chime": ""})
        alone = controller.speak({"id": "e", "text": "", "chime": "done"})
        (refused,) = controller.speak({"id": "f", "text": "Yes.", "chime": "gong"})
        rendered = controller.speak({"id": "g", "text": "Yes.", "chime": "done", "output": "file"})
    chimes = {name: bell(name).size / RATE for name in ("attention", "done")}
    assert both[-1]["audio_s"] == pytest.approx(plain + sum(chimes.values()), abs=0.15)
    assert default[-1]["audio_s"] == pytest.approx(plain + 0.5, abs=0.15)
    assert silent[-1]["audio_s"] == pytest.approx(plain, abs=0.15)
    assert alone[-1]["audio_s"] == pytest.approx(chimes["done"], abs=0.02)
    assert (refused["event"], refused["code"]) == ("rejected", "chime")
    assert "attention, done, ping" in refused["reason"]
    assert rendered[-1]["audio_s"] == pytest.approx(plain + chimes["done"], abs=0.15)

    said = {json.loads(path.read_text())["id"]: path for path in recordings.glob("*.json")}
    assert set(said) == {"a", "b", "c", "d", "e"}
    for command_id, audio_s in (("a", plain), ("b", both[-1]["audio_s"])):
        command = ["opusinfo", str(said[command_id].with_suffix(".opus"))]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "WARNING" not in report
        minutes, seconds = report.split("Playback length: ")[1].split("s\n")[0].split("m:")
        assert 60 * int(minutes) + float(seconds) == pytest.approx(audio_s, abs=0.002)


def test_what_is_paused_in_its_closing_chime_goes_on_there(
    make_daemon: MakeDaemon, controller: Controller, tmp_path: Path
) -> None:
    own = tmp_path / "chimes"
    own.mkdir()
    soundfile.write(own / "long.flac", 0.5 * np.sin(np.arange(4 * RATE) / 5), RATE)
    spoken = {"ssml": "<speak>Yes, I will.<mark name='end'/></speak>", "chime": {"after": "long"}, "marks": True}
    with make_daemon(chimes={"folder": str(own)}):
        controller.wait_for_status("online")
        controller.publish({"id": "a", **spoken})
        end = controller.wait_for("a", "mark")["at_s"]
        controller.publish({}, command="pause")
        stopped = controller.wait_for("a", "interrupted")["at_s"]
        assert stopped >= end, "the last word is over"
        controller.publish({}, command="resume")
        events = controller.wait_for_final("a")
        whole = controller.speak({"id": "b", "output": "file", **spoken})
    words = [event["index"] for event in events if event["event"] == "word"]
    assert words == sorted(set(words)), "no word is heard again"
    assert controller.wait_for("a", "resumed")["at_s"] == stopped
    assert events[-1]["audio_s"] == whole[-1]["audio_s"]


def test_a_chime_that_cannot_be_read_is_told_before_the_daemon_starts(make_daemon: MakeDaemon, tmp_path: Path) -> None:
    own = tmp_path / "chimes"
    own.mkdir()
    (own / "ping.wav").write_text("no sound")
    with make_daemon(chimes={"folder": str(own)}) as daemon:
        assert daemon.wait() != 0
        assert f"chimes.folder: {own / 'ping.wav'} cannot be read" in daemon.log

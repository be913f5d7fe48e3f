from __future__ import annotations

import json
import logging
import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from simulators.waiting import wait_until

from daemon import recorder as recorder_module
from daemon.inbox import Inbox
from daemon.recorder import Recorder, Said
from device.format import PERIOD, RATE, Samples
from device.memory import AudioChunk, HostBufferPool
from device.opus import OpusSettings
from device.opus_sink import OpusSink

TIMEOUT_S = 60


class Counted(Recorder):
    """One that tells how many recordings it has done."""

    done = 0

    def _record(self, said: Said) -> None:
        try:
            super()._record(said)
        finally:
            self.done += 1


class Desk:
    """A recorder, and somebody who speaks past it."""

    def __init__(self, folder: Path, keep: int = 3) -> None:
        self.posted: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        self.pool = HostBufferPool(buffers=2, capacity=10 * PERIOD, limit_bytes=2**20)
        self.recorder = Counted(folder, keep, OpusSettings(), self.posted.put)
        self.spoken = 0
        self.recorder.start()

    def chunks(self, samples: Samples) -> Iterator[AudioChunk]:
        for start in range(0, samples.size, 10 * PERIOD):
            buffer = self.pool.acquire(0)
            piece = samples[start : start + 10 * PERIOD]
            buffer.samples[: piece.size] = piece
            yield AudioChunk(buffer, buffer.samples[: piece.size])

    def speak(self, name: str, text: str, frames: int) -> Samples:
        samples = (0.3 * np.sin(np.arange(frames) / 10)).astype(np.float32)
        self.spoken += 1
        passed = []
        for chunk in self.recorder.tape(Said(name, text, "joe"), self.chunks(samples)):
            passed.append(chunk.samples.copy())
            chunk.release()
        np.testing.assert_array_equal(np.concatenate(passed), samples)
        return samples

    def until_written(self) -> None:
        """Wait until nothing of what was spoken is still to be written."""
        wait_until(lambda: self.recorder.done == self.spoken, "it still writes")

    def close(self) -> None:
        self.recorder.stop()
        self.recorder.join(TIMEOUT_S)
        assert not self.recorder.is_alive()
        assert self.posted.empty()
        assert self.pool.free == self.pool.size


def frames_of(path: Path) -> int:
    raw = path.with_suffix(".raw")
    subprocess.run(["opusdec", "--quiet", "--float", "--rate", str(RATE), path, raw], check=True)  # noqa: S607
    frames = raw.stat().st_size // 4
    raw.unlink()
    return frames


def test_the_last_ones_are_kept_with_their_text(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    with closing(Desk(folder)) as desk:
        for number in range(5):
            desk.speak(f"job {number}", f"Zug {number} fährt ab", 1000 + number)
    names = sorted(path.name for path in folder.iterdir())
    assert [name[:6] for name in names] == ["000003", "000003", "000004", "000004", "000005", "000005"]
    for number, sound in enumerate(sorted(folder.glob("*.opus")), start=2):
        beside = json.loads(sound.with_suffix(".json").read_text())
        assert beside["text"] == f"Zug {number} fährt ab"
        assert (beside["id"], beside["voice"], beside["whole"]) == (f"job {number}", "joe", True)
        assert frames_of(sound) == 1000 + number
    assert folder.stat().st_mode & 0o077 == 0, "nobody else may listen"


def test_a_restart_goes_on_counting_and_clears_what_was_not_finished(tmp_path: Path) -> None:
    with closing(Desk(tmp_path)) as desk:
        desk.speak("a", "a", PERIOD)
    (tmp_path / ".000002-b.part").write_bytes(b"half")
    (tmp_path / "000002-b.json.0123abcd.part").write_bytes(b"half")
    (tmp_path / "a download.zip.part").write_bytes(b"somebody else's")
    with closing(Desk(tmp_path)) as desk:
        desk.speak("b", "b", PERIOD)
    (tmp_path / "a download.zip.part").unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "000001-a.json",
        "000001-a.opus",
        "000002-b.json",
        "000002-b.opus",
    ]


def test_a_full_disk_costs_a_recording_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write = OpusSink.write

    def full(sink: OpusSink, samples: Samples) -> None:
        raise OSError(28, "No space left on device")

    with closing(Desk(tmp_path)) as desk:
        monkeypatch.setattr(OpusSink, "write", full)
        desk.speak("a", "a", 30 * PERIOD)
        desk.speak("b", "b", 30 * PERIOD)
    assert list(tmp_path.iterdir()) == []
    assert "No space left" in caplog.text
    monkeypatch.setattr(OpusSink, "write", write)
    with closing(Desk(tmp_path)) as desk:
        desk.speak("c", "c", PERIOD)
    assert len(list(tmp_path.glob("*.opus"))) == 1


def test_a_folder_that_cannot_be_used_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING), closing(Desk(tmp_path / "file" / "folder")) as desk:
        desk.speak("a", "a", PERIOD)
    assert "cannot be used" in caplog.text


def test_a_disk_that_stalls_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stalled = threading.Event()
    write = OpusSink.write

    def slow(sink: OpusSink, samples: Samples) -> None:
        assert stalled.wait(TIMEOUT_S)
        write(sink, samples)

    monkeypatch.setattr(OpusSink, "write", slow)
    monkeypatch.setattr(recorder_module, "_MOST_WAITING", 20 * PERIOD)
    with closing(Desk(tmp_path)) as desk:
        desk.speak("long", "long", 100 * PERIOD)
        desk.speak("short", "short", PERIOD)
        stalled.set()
    beside = {path.stem[7:]: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert not beside["long"]["whole"]
    assert beside["long"]["audio_s"] < 1


def test_whoever_speaks_for_long_is_no_disk_that_hangs(tmp_path: Path) -> None:
    with closing(Desk(tmp_path)) as desk:
        tape = desk.recorder.tape(Said("a", "a", "joe"), desk.chunks(np.zeros(30 * PERIOD, np.float32)))
        next(tape).release()
        wait_until(lambda: desk.recorder._taken > 0, "it takes nothing")
        later = time.monotonic() + 60
        wait_until(lambda: desk.recorder.pulse.still_s(later) == 0, "at the end nobody would wait for it")
        tape.close()


def test_what_is_cut_short_says_so(tmp_path: Path) -> None:
    with closing(Desk(tmp_path)) as desk:
        tape = desk.recorder.tape(Said("a", "a", "joe"), desk.chunks(np.zeros(30 * PERIOD, np.float32)))
        next(tape).release()
        tape.close()
    (beside,) = tmp_path.glob("*.json")
    assert json.loads(beside.read_text())["whole"] is False


def test_half_a_character_costs_nobody_anything(tmp_path: Path) -> None:
    with closing(Desk(tmp_path)) as desk:
        desk.speak("a", "half \ud800 a character, ü", PERIOD)
    (beside,) = tmp_path.glob("*.json")
    assert json.loads(beside.read_bytes())["text"] == "half \ud800 a character, ü"


def test_only_its_own_files_are_counted_or_deleted(tmp_path: Path) -> None:
    others = {"2024 in the mountains.opus", "10-green-bottles.opus", "000000.json", "000001-x.txt"}
    for name in others:
        (tmp_path / name).touch()
    with closing(Desk(tmp_path, keep=1)) as desk:
        for name in "ab":
            desk.speak(name, name, PERIOD)
    assert {path.name for path in tmp_path.iterdir()} == others | {"000002-b.json", "000002-b.opus"}


def test_the_millionth_is_newer_than_those_before(tmp_path: Path) -> None:
    for suffix in (".opus", ".json"):
        (tmp_path / f"999999-a{suffix}").touch()
    with closing(Desk(tmp_path, keep=2)) as desk:
        for name in "bc":
            desk.speak(name, name, PERIOD)
    assert {path.stem for path in tmp_path.iterdir()} == {"1000000-b", "1000001-c"}


def test_a_folder_that_comes_later_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "mount"
    folder.write_text("not there yet")
    with closing(Desk(folder)) as desk:
        desk.speak("a", "a", PERIOD)
        desk.until_written()
        folder.unlink()
        folder.mkdir()
        (folder / "000041-old.opus").touch()
        desk.speak("b", "b", PERIOD)
    assert {path.stem for path in folder.iterdir()} == {"000041-old", "000042-b"}


def test_what_waits_for_a_disk_that_stalls_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stalled, write = threading.Event(), OpusSink.write

    def slow(sink: OpusSink, samples: Samples) -> None:
        assert stalled.wait(TIMEOUT_S)
        write(sink, samples)

    monkeypatch.setattr(OpusSink, "write", slow)
    monkeypatch.setattr(recorder_module, "_MOST_WAITING", 20 * PERIOD)
    with closing(Desk(tmp_path, keep=100)) as desk:
        for number in range(100):
            desk.speak(f"job {number}", "a text", 10 * PERIOD)
        assert desk.recorder._items.qsize() < 20
        stalled.set()
    assert 0 < len(list(tmp_path.glob("*.opus"))) < 10

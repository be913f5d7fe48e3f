"""The voice judges itself: a sound one passes, a damaged one is found, a command goes first."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import queue
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from daemon import self_check
from daemon.clock import Clock
from daemon.inbox import Inbox, PlaybackEnded, SelfChecked
from daemon.job import Job
from daemon.journal import Journal
from daemon.player import Player
from daemon.sampling import Sample
from daemon.self_check import Moment, SelfChecks
from daemon.synthesis import Engines, Order, SynthesisThread
from daemon.telemetry_messages import SelfCheck
from device.format import RATE
from device.memory import HostBufferPool
from device.null import NullSink
from engines.digest import sha256
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.shelf import Preferences, VoiceShelf
from engines.synthesizer import Synthesizer
from engines.text.phonemes import Phonemizer

TIMEOUT_S = 60
DAY_S = 24 * 3600
NAME = "en_US-joe-medium"


class Voice:
    """An engine thread that speaks with the voice in a folder, as it is there now."""

    def __init__(self, packs: Path) -> None:
        self.posted: queue.SimpleQueue[Inbox] = queue.SimpleQueue()
        pool = HostBufferPool(buffers=6, capacity=4 * 48_000, limit_bytes=2**24)
        self.phonemizer = Phonemizer(TIMEOUT_S)
        shelf = VoiceShelf(PackStore(packs), Preferences(length_scale=2.0))  # nobody's preferences matter
        self.player = Player(NullSink(paced=False), self.posted.put)
        self.engine = SynthesisThread(
            lambda: Engines(Synthesizer(self.phonemizer, pool), shelf, shelf.close), self.player, None, self.posted.put
        )
        self.player.start()
        self.engine.start()

    def wait_for(self, kind: type[Any]) -> Any:  # noqa: ANN401
        while not isinstance(message := self.posted.get(timeout=TIMEOUT_S), kind):
            pass
        return message

    def close(self) -> None:
        for thread in (self.engine, self.player):
            thread.stop()
            thread.join(TIMEOUT_S)
        self.phonemizer.close()


@pytest.fixture
def packs(voice_packs: Path, tmp_path: Path) -> Path:
    folder = f".{NAME}@copy"
    shutil.copytree(voice_packs / NAME, tmp_path / "packs" / folder)
    (tmp_path / "packs" / NAME).symlink_to(folder)
    return tmp_path / "packs"


@pytest.fixture
def journal() -> Iterator[Journal]:
    with contextlib.closing(Journal(None)) as journal:
        yield journal


def check(packs: Path, journal: Journal) -> SelfCheck:
    """Have the voice check itself as it would be after a restart."""
    with contextlib.closing(Voice(packs)) as voice:
        checks = SelfChecks(journal, voice.engine.sample, PackStore(packs).get, voice.posted.put, Clock.now())
        now = Clock.now().monotonic + 2 * DAY_S
        checks.tend(Moment(idle=True), now)
        found = checks.take(voice.wait_for(SelfChecked), now)
        assert found is not None
        assert checks.last == found
        return found


def damage(packs: Path, part: Callable[[Pack], Path], noise: float) -> None:
    """Damage the weights of a graph, and let the pack vouch for them: a driver or an import that went wrong."""
    pack = PackStore(packs).get(NAME)
    path = part(pack)
    rng = np.random.default_rng(0)
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        weights = numpy_helper.to_array(tensor)
        if weights.dtype == np.float32 and weights.size > 2000:
            spoiled = weights + (noise * weights.std() * rng.standard_normal(weights.shape)).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(spoiled, tensor.name))
    onnx.save(model, path)
    info = json.loads((pack.folder / "pack.json").read_text())
    info["files"][path.name] = sha256(path)
    (pack.folder / "pack.json").write_text(json.dumps(info))


def test_a_sound_voice_passes_and_stays_itself(packs: Path, journal: Journal) -> None:
    first, second = check(packs, journal), check(packs, journal)
    assert (first.state, first.reason) == ("passed", "")
    assert (first.voice, first.level_db) == (NAME, None)
    assert first.mos is not None
    assert first.mos > 3
    assert (second.state, second.level_db) == ("passed", 0.0)
    assert second.spectrum_db is not None
    assert second.spectrum_db < 0.1


@pytest.mark.parametrize("part", ["vocoder", "acoustic"])
def test_a_voice_whose_weights_were_damaged_is_found(packs: Path, journal: Journal, part: str) -> None:
    assert check(packs, journal).state == "passed"
    damage(packs, lambda pack: getattr(pack, part), 0.3)
    found = check(packs, journal)
    assert found.state == "failed"
    assert "spectrum" in found.reason
    assert "add it again" in found.reason


def test_a_voice_that_never_was_one_makes_no_record(packs: Path, journal: Journal) -> None:
    damage(packs, lambda pack: pack.vocoder, 1.0)
    for _ in range(2):
        found = check(packs, journal)
        assert found.state == "failed"
        assert "no speech" in found.reason
        assert found.level_db is None


def test_without_ratings_level_and_spectrum_tell(
    packs: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "speechmos" else find(name))
    found = check(packs, journal)
    assert (found.state, found.mos) == ("passed", None)
    assert "pip install" in found.reason
    damage(packs, lambda pack: pack.vocoder, 0.3)
    assert check(packs, journal).state == "failed"


@pytest.mark.parametrize("value", [0.0, 0.001, np.nan, np.inf])
def test_silence_and_what_is_no_sound_never_become_the_record(monkeypatch: pytest.MonkeyPatch, value: float) -> None:
    """Where no ratings are installed either."""
    monkeypatch.setattr(self_check, "_rated", lambda _speech: (None, "no ratings"))
    sound = np.full(RATE, 0.1, np.float32)
    bad = np.full(RATE, value, np.float32)
    found = self_check.judge([sound, bad, sound], "joe", "key", None, lambda _voice: None)
    assert found.check is not None
    assert (found.check.state, found.record) == ("failed", None)
    assert "says nothing" in found.check.reason
    assert self_check.judge([sound] * 3, "joe", "key", None, lambda _voice: None).record is not None


def test_a_command_goes_first_and_ends_the_check(packs: Path, journal: Journal) -> None:
    with contextlib.closing(Voice(packs)) as voice:
        voice.engine.made.result(TIMEOUT_S)
        checks = SelfChecks(journal, voice.engine.sample, PackStore(packs).get, voice.posted.put, Clock.now())
        now = Clock.now().monotonic + 2 * DAY_S
        checks.tend(Moment(idle=True), now)
        voice.engine.say(Order(Job("a"), "Yes.", cache=False))
        assert checks.take(voice.wait_for(SelfChecked), now) is None
        assert voice.wait_for(PlaybackEnded).error is None
        checks.tend(Moment(idle=True), now + 59)
        checks.tend(Moment(idle=True), now + 61)  # it is tried again
        found = checks.take(voice.wait_for(SelfChecked), now)
        assert found is not None
        assert found.state == "passed"


def test_a_voice_that_cannot_speak_is_an_error_and_no_bad_voice(packs: Path, journal: Journal) -> None:
    (packs / NAME / "vocoder.onnx").write_bytes(b"")
    found = check(packs, journal)
    assert found.state == "error"
    assert "changed since" in found.reason


def test_a_file_that_has_changed_under_a_voice_that_speaks_is_found(packs: Path, journal: Journal) -> None:
    with contextlib.closing(Voice(packs)) as voice:
        voice.engine.made.result(TIMEOUT_S)
        voice.engine.say(Order(Job("a"), "Yes.", cache=False))
        voice.wait_for(PlaybackEnded)
        with (packs / NAME / "acoustic.onnx").open("r+b") as file:
            file.seek(10_000)
            file.write(b"\0\1\2\3")
        checks = SelfChecks(journal, voice.engine.sample, PackStore(packs).get, voice.posted.put, Clock.now())
        now = Clock.now().monotonic + 2 * DAY_S
        checks.tend(Moment(idle=True), now)
        found = checks.take(voice.wait_for(SelfChecked), now)
        assert found is not None
        assert found.state == "failed"
        assert "changed since its import" in found.reason


class Daily:
    """Checks by a clock that stands still until it is told; what was begun is passed or failed by hand."""

    def __init__(self, journal: Journal, wall: float = 1_790_000_000.0) -> None:
        self.begun: list[Sample] = []
        self.now = 1000.0
        self.checks = SelfChecks(journal, self.begun.append, str, lambda _: None, Clock("boot", self.now, wall))

    def wait(self, seconds: float, moment: Moment = Moment(idle=True)) -> int:  # noqa: B008  it is frozen
        before, end = len(self.begun), self.now + seconds
        while self.now < end:
            self.now += 10
            self.checks.tend(moment, self.now)
        return len(self.begun) - before

    def end(self, state: str, wall: float = 1_790_000_000.0) -> None:
        time = datetime.fromtimestamp(wall, timezone.utc)
        self.checks.take(SelfChecked(SelfCheck.model_validate({"state": state, "time": time, "voice": "v"})), self.now)


class TestWhen:
    def test_once_a_day(self, journal: Journal) -> None:
        daily = Daily(journal)
        assert daily.wait(70) == 1
        assert daily.wait(DAY_S) == 0  # it is under way
        daily.end("passed")
        assert daily.wait(DAY_S - 100) == 0
        assert daily.wait(200) == 1

    def test_a_failed_one_is_repeated_within_hours(self, journal: Journal) -> None:
        daily = Daily(journal)
        daily.wait(70)
        daily.end("failed")
        assert daily.wait(3500) == 0
        assert daily.wait(200) == 1

    @pytest.mark.parametrize(
        "moment", [Moment(idle=False), Moment(idle=True, hottest=80_000), Moment(idle=True, strained=True)]
    )
    def test_not_while_there_is_something_to_do_or_it_is_hot(self, journal: Journal, moment: Moment) -> None:
        daily = Daily(journal)
        assert daily.wait(DAY_S, moment) == 0
        assert daily.wait(50, replace(moment, idle=True, hottest=50_000, strained=False)) == 0
        assert daily.wait(20) == 1

    def test_a_command_puts_it_off(self, journal: Journal) -> None:
        daily = Daily(journal)
        for _ in range(100):
            assert daily.wait(50) == 0
            daily.checks.disturb(daily.now)
        assert daily.wait(70) == 1

    def test_a_restart_does_not_make_it_due_unless_it_was_failed(self, journal: Journal) -> None:
        first = Daily(journal)
        first.wait(70)
        first.end("passed")
        again = Daily(journal, wall=1_790_000_000.0 + DAY_S / 2)
        assert again.checks.last is not None
        assert again.wait(DAY_S / 2 - 100) == 0
        assert again.wait(200) == 1
        again.end("failed")
        assert Daily(journal).wait(70) == 1

    def test_a_clock_that_was_never_set_is_not_believed(self, journal: Journal) -> None:
        first = Daily(journal)
        first.wait(70)
        first.end("passed")
        assert Daily(journal, wall=0.0).wait(DAY_S - 100) == 0

    def test_what_the_journal_has_of_another_version_is_forgotten(self, journal: Journal) -> None:
        journal.remember("self_check", '{"last": 7}')
        assert Daily(journal).checks.last is None

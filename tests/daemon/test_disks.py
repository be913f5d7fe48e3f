"""What is known of the disks: their room, what they refuse, and how much is written."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulators.figures import figures
from simulators.waiting import wait_until

from daemon.config import Config
from daemon.disks import Disks, DiskState, written_folders
from daemon.telemetry_messages import Disk
from daemon.views import doctor_disk
from daemon.write_meter import WriteMeter

MIB = 2**20
DAY_S = 86400.0


class TestWriteMeter:
    @given(st.lists(st.tuples(st.floats(1, 7200), st.integers(0, 10**9)), min_size=1, max_size=200))
    def test_it_tells_of_a_day_and_no_more_than_a_step_beside(self, course: list[tuple[float, int]]) -> None:
        meter, now, total = WriteMeter(0.0), 0.0, 0
        counts = [(0.0, 0)]
        for step_s, more in course:
            now, total = now + step_s, total + more
            counts.append((now, total))
            meter.add(total, now)
        within = total - max((count for at, count in counts if at <= now - DAY_S), default=0)
        at_most = total - max((count for at, count in counts if at <= now - DAY_S - 900 - 7200), default=0)
        assert within <= meter.day <= at_most
        assert (meter.per_day is None) == (now < 3600)

    def test_an_even_pace_is_told_as_it_is_whenever_one_asks(self) -> None:
        meter = WriteMeter(1000.0)
        for minute in range(3 * 24 * 60):
            meter.add(minute * MIB, 1000.0 + minute * 60)
            assert meter.per_day is None or meter.per_day == pytest.approx(1440 * MIB, rel=0.001)
        assert meter.day == pytest.approx(1440 * MIB, rel=0.02)

    def test_a_burst_at_the_start_counts_for_what_it_is_and_is_forgotten_after_a_day(self) -> None:
        meter = WriteMeter(0.0)
        meter.add(500 * MIB, 5.0)
        assert (meter.day, meter.per_day) == (500 * MIB, None)
        for quarter in range(1, 4 * 25):
            meter.add(500 * MIB, quarter * 900.0)
        assert meter.day == 0

    def test_what_it_keeps_is_bounded(self) -> None:
        meter = WriteMeter(0.0)
        for second in range(0, 3 * int(DAY_S), 5):
            meter.add(second, float(second))
        assert len(meter._kept) < 100


def kernel(write_bytes: int, cancelled: int = 0) -> str:
    return f"rchar: 1\nwchar: 2\nread_bytes: 0\nwrite_bytes: {write_bytes}\ncancelled_write_bytes: {cancelled}\n"


TIMEOUT_S = 60


def patient(*folders: Path, root: Path = Path("/"), io: Path = Path("/proc/self/io")) -> Disks:
    """Look however long that takes on a busy machine."""
    return Disks(folders, started_at=0.0, root=root, io=io, patience_s=TIMEOUT_S)


class TestDisks:
    def test_what_was_written_is_counted_without_what_never_reached_the_disk(self, tmp_path: Path) -> None:
        account = tmp_path / "io"
        disks = patient(tmp_path, root=tmp_path, io=account)
        account.write_text(kernel(30 * MIB, 10 * MIB))
        state = disks.look(5.0)
        assert (state.written_bytes, state.day_bytes, state.bytes_per_day) == (20 * MIB, 20 * MIB, None)
        account.write_text(kernel(50 * MIB, 10 * MIB))
        assert disks.look(7200.0).bytes_per_day == pytest.approx(12 * 40 * MIB)
        account.write_text(kernel(50 * MIB, 30 * MIB))
        assert disks.look(7203.0).written_bytes == 40 * MIB, "whoever counts would take less for a restart"
        account.write_text("nonsense")
        assert disks.look(7205.0).written_bytes is None
        account.unlink()
        assert disks.look(7210.0).bytes_per_day is None

    def test_the_kernel_s_own_account_can_be_read(self, tmp_path: Path) -> None:
        written = patient(tmp_path).look(1.0).written_bytes
        assert written is not None
        assert written >= 0

    def test_room_is_that_of_the_fullest_and_a_folder_may_come_later(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small = tmp_path / "small"
        small.mkdir()
        answers(monkeypatch, lambda path: room(10 * MIB) if path == small else room(1000 * MIB))
        state = patient(tmp_path, small / "not/yet").look(0.0)
        assert (state.free_bytes, state.refusal) == (10 * MIB, "")

    @pytest.mark.parametrize(
        ("told", "word"),
        [({"flags": os.ST_RDONLY}, "read-only"), ({"inodes": 100, "free_inodes": 0}, "inodes")],
        ids=["read-only", "no inodes"],
    )
    def test_a_disk_that_takes_nothing_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: dict[str, int], word: str
    ) -> None:
        disks = patient(tmp_path)
        assert disks.look(0.0).refusal == ""
        answers(monkeypatch, lambda _: room(1000 * MIB, **told))
        assert word in disks.look(1.0).refusal

    def test_a_disk_that_fails_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(path: Path) -> os.statvfs_result:
            raise OSError(5, "Input/output error")

        answers(monkeypatch, broken)
        state = patient(tmp_path).look(0.0)
        assert (state.free_bytes, "Input/output error" in state.refusal) == (None, True)

    def test_a_folder_that_does_not_answer_is_told_and_holds_nobody_up(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gone, near, go = tmp_path / "gone", tmp_path / "near", threading.Event()
        gone.mkdir()
        near.mkdir()
        asked = []

        def answer(path: Path) -> os.statvfs_result:
            if path == gone and not go.is_set():
                asked.append(path)
                assert go.wait(TIMEOUT_S)
            return room(10 * MIB) if path == gone else room(1000 * MIB)

        disks = Disks([gone, near], started_at=0.0, patience_s=0.5)
        wait_until(lambda: disks.look(0.0).free_bytes is not None, "it does not come back")
        before = threading.active_count()
        answers(monkeypatch, answer)
        begun = time.monotonic()
        for second in range(1, 6):
            assert disks.look(float(second)).refusal == "", "it may come back in a moment"
        for second in range(6, 100):
            assert f"{gone} does not answer" in disks.look(float(second)).refusal
        assert time.monotonic() - begun < 30, "only the first look has waited"
        assert len(asked) == 1
        assert threading.active_count() <= before
        wait_until(lambda: disks.look(100.0).free_bytes == 1000 * MIB, "it does not come back")
        go.set()
        wait_until(
            lambda: disks.look(101.0) == DiskState(10 * MIB, written_bytes=ANY, day_bytes=ANY), "it does not come back"
        )

    def test_one_that_answers_late_does_not_hang_however_seldom_one_looks(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go, told = threading.Event(), threading.Event()

        def answer(_: Path) -> os.statvfs_result:
            assert go.wait(TIMEOUT_S)
            told.set()
            return room(10 * MIB)

        answers(monkeypatch, answer)
        disks = Disks([tmp_path], started_at=0.0, patience_s=0.01)
        for look in range(1, 4):
            go.clear()
            told.clear()
            assert disks.look(look * 3600.0).refusal == ""
            go.set()
            assert told.wait(TIMEOUT_S)
            wait_until(lambda: disks._places[0]._answered, "it does not answer")
        assert disks.look(4 * 3600.0).free_bytes == 10 * MIB

    def test_a_folder_that_cannot_even_be_looked_for_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(self: Path, **_: object) -> os.stat_result:
            raise OSError(5, "Input/output error")

        disks = patient(tmp_path)
        monkeypatch.setattr(Path, "stat", broken)
        assert "Input/output error" in disks.look(0.0).refusal

    def test_what_the_journal_says_goes_first(self, tmp_path: Path) -> None:
        assert patient(tmp_path).look(0.0, "it is full").refusal == "it is full"

    def test_a_file_system_without_inodes_is_not_out_of_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers(monkeypatch, lambda _: room(MIB, inodes=0, free_inodes=0))
        assert patient(tmp_path).look(0.0).refusal == ""


def test_only_folders_that_are_written_to_are_looked_at(tmp_path: Path) -> None:
    told = {"journal": {"file": str(tmp_path / "a/journal.db")}, "cache": {"folder": str(tmp_path / "b")}}
    config = Config.model_validate({**told, "recorder": {"enabled": True, "folder": str(tmp_path / "c")}})
    assert written_folders(config) == (tmp_path / "a", tmp_path / "b", tmp_path / "c")
    elsewhere = Config.model_validate({**told, "render": {"folder": str(tmp_path / "d")}})
    assert written_folders(elsewhere) == (tmp_path / "a", tmp_path / "b", tmp_path / "d")
    told["cache"]["enabled"] = False  # type: ignore[assignment]
    assert written_folders(Config.model_validate(told)) == (tmp_path / "a",)


class TestDoctor:
    def test_wear_is_told_where_there_is_something_to_tell(self, tmp_path: Path) -> None:
        assert doctor_disk.wear(Config(), tmp_path) == []
        device = tmp_path / "sys/block/mmcblk0/device"
        device.mkdir(parents=True)
        for text, state in {"0x05 0x01": "ok", "0x0a 0x01": "fault"}.items():
            (device / "life_time").write_text(text)
            (finding,) = doctor_disk.wear(Config(), tmp_path)
            assert (finding.state, bool(finding.mend)) == (state, state == "fault")

    def test_how_much_is_written_is_told_by_the_daemon(self) -> None:
        assert doctor_disk.written(Config(), None) == []
        assert doctor_disk.written(Config(), figures()) == []
        (refusal,) = doctor_disk.written(Config(), figures(disk=Disk(refusal="disk is full")))
        assert (refusal.state, refusal.text) == ("fault", "disk is full")
        (early,) = doctor_disk.written(Config(), figures(disk=Disk(written_mb=3.2, written_day_mb=3.2)))
        assert (early.state, "3 MiB" in early.text, "after an hour" in early.text) == ("ok", True, True)
        much = Disk(written_mb=5000, written_day_mb=1200, written_per_day_mb=1200, refusal="disk is full")
        refusal, written = doctor_disk.written(Config(), figures(disk=much))
        assert (refusal.state, written.state) == ("fault", "note")
        assert "1200 MiB a day" in written.text
        assert refusal.mend
        assert written.mend

    def test_little_room_is_a_fault_at_the_limit_of_the_alert(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folders = {"voice": {"packs": str(tmp_path)}, "journal": {"file": str(tmp_path / "j.db")}}
        config = Config.model_validate(
            {**folders, "cache": {"folder": str(tmp_path), "min_free_mb": 0}, "alerts": {"disk_free_mb": 300}}
        )
        for free, state in {299: "fault", 300: "ok"}.items():
            answers(monkeypatch, lambda _, free=free: room(free * MIB))  # type: ignore[misc]
            assert {finding.state for finding in doctor_disk.room(config)} == {state}

    def test_a_folder_that_does_not_answer_hides_no_other(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told = {"journal": {"file": str(tmp_path / "a/j.db")}, "cache": {"folder": str(tmp_path / "b")}}
        config = Config.model_validate({**told, "voice": {"packs": str(tmp_path / "v")}})
        go = threading.Event()

        def stat(folder: Path) -> Path:
            assert folder != tmp_path / "b" or go.wait(TIMEOUT_S)
            return tmp_path

        monkeypatch.setattr(doctor_disk, "standing", stat)
        monkeypatch.setattr(doctor_disk, "_PATIENCE_S", 0.5)
        findings = doctor_disk.room(config)
        go.set()
        (hung,) = [finding for finding in findings if f"{tmp_path / 'b'} does not answer" in finding.text]
        assert (hung.state, bool(hung.mend)) == ("fault", True)
        assert all(any(str(tmp_path / folder) in finding.text for finding in findings) for folder in "av")

    def test_it_looks_wherever_the_alert_does(self, tmp_path: Path) -> None:
        told = {"journal": {"file": str(tmp_path / "a/j.db")}, "cache": {"folder": str(tmp_path / "b")}}
        config = Config.model_validate({**told, "recorder": {"enabled": True, "folder": str(tmp_path / "c")}})
        texts = " ".join(finding.text for finding in doctor_disk.room(config))
        assert all(str(folder) in texts for folder in written_folders(config))


def room(free: int, *, flags: int = 0, inodes: int = 1000, free_inodes: int = 900) -> os.statvfs_result:
    """Give the kernel's answer about a file system with blocks of 4 KiB."""
    blocks = free // 4096
    return os.statvfs_result((4096, 4096, 10 * blocks, blocks, blocks, inodes, free_inodes, free_inodes, flags, 255))


def answers(monkeypatch: pytest.MonkeyPatch, answer: Callable[[Path], os.statvfs_result]) -> None:
    """Have the kernel answer otherwise about file systems."""
    monkeypatch.setattr(os, "statvfs", lambda path: answer(Path(path)))

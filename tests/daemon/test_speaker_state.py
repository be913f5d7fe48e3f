"""What a speaker keeps: after a crash, and of how things are."""

from __future__ import annotations

import errno
from collections import Counter
from pathlib import Path

import pytest
from simulators.speaker_bench import Bench

from daemon import journal
from daemon.clock import PLAUSIBLE_WALL, Clock
from daemon.commands import Priority
from daemon.errors import PayloadError
from daemon.events import Failed, Finished, Known, Rejected
from daemon.inbox import AudioState, Connected, PayloadRefused, PlaybackEnded, Stop, Tick, Told
from daemon.journal import Journal


@pytest.fixture
def bench() -> Bench:
    return Bench()


class TestAfterACrash:
    def test_what_was_being_spoken_has_failed_and_what_waited_is_spoken(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.speak("b")
        bench.speak("c", Priority.IMPORTANT)
        again = bench.restarted(5)
        assert [(e.id, e.code) for e in again.events if isinstance(e, Failed)] == [("a", "interrupted")]
        again.end("c")
        again.end("b")
        assert again.began == ["c", "b"]
        assert [e.id for e in again.events if isinstance(e, Finished)] == ["c", "b"]

    def test_a_repeated_id_is_known_again(self, bench: Bench) -> None:
        bench.speak("a")
        bench.end("a")
        again = bench.restarted(5)
        again.speak("a")
        assert again.kinds() == ["known"]

    @pytest.mark.parametrize(
        ("after_s", "boot", "wall", "outcome"),
        [
            (5, "boot", 0.0, "begun"),  # the same boot: whatever the wall clock says
            (15, "boot", None, "expired"),
            (5, "another", None, "begun"),
            (15, "another", None, "expired"),
            (5, "another", 1000.0, "interrupted"),  # no clock since the boot: nobody knows how late it is
        ],
    )
    def test_time_goes_on_while_it_is_down(
        self, bench: Bench, after_s: float, boot: str, wall: float | None, outcome: str
    ) -> None:
        bench.speak("a")
        bench.speak("b", expires_s=10)
        again = bench.restarted(after_s, boot=boot, wall=wall)
        told = ["begun" if "b" in again.began else ""]
        told += [getattr(event, "code", event.event) for event in again.events if getattr(event, "id", "") == "b"]
        assert outcome in told

    def test_what_is_too_old_is_not_spoken(self, bench: Bench) -> None:
        bench.speak("a")
        bench.speak("b")
        again = bench.restarted(61)
        assert not again.began
        assert {e.id: e.code for e in again.events if isinstance(e, Failed)} == dict.fromkeys("ab", "interrupted")

    def test_a_disk_that_takes_nothing_silences_nobody(self, tmp_path: Path) -> None:
        bench = Bench(Journal(tmp_path / "j.db"))
        bench.journal._disk.close()  # type: ignore[union-attr]  whatever makes each use of it fail
        bench.speak("a")
        assert bench.began == ["a"]
        assert "closed" in bench.speaker.condition.journal_problem
        bench.handle(PlaybackEnded("a", 0.0, 1.0, None, None))
        bench.speak("a")
        assert isinstance(bench.events[-1], Known), "what the disk forgot is known while this runs"
        assert bench.began == ["a"]

    def test_what_it_left_is_settled_once_the_disk_answers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = Bench(Journal(tmp_path / "j.db"))
        before.speak("a")
        before.speak("b")
        before.journal.close()

        def refuse(*_: object) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(journal, "_BACK_S", 0.0)
        monkeypatch.setattr(journal, "_PAUSE", 0)
        with monkeypatch.context() as patch:
            patch.setattr(journal, "open_file", refuse)
            patch.setattr(journal, "copy_of", refuse)
            bench = Bench(Journal(tmp_path / "j.db"))
            bench.speaker.recover(Clock("boot", 1.0, PLAUSIBLE_WALL + 1))
            bench.speak("c")
        assert bench.began == ["c"]
        bench.handle(Tick())
        failed = [(e.id, e.code) for e in bench.events if isinstance(e, Failed)]
        assert failed == [("a", "interrupted"), ("b", "interrupted")]
        bench.handle(PlaybackEnded("c", 0.0, 1.0, None, None))
        assert bench.began == ["c"]
        assert bench.journal.open_entries() == []

    def test_a_bit_that_the_disk_has_lost_stops_nobody(self, tmp_path: Path) -> None:
        before = Bench(Journal(tmp_path / "j.db"))
        before.speak("ended")
        before.handle(PlaybackEnded("ended", 0.0, 1.0, None, None))
        before.handle(Told("ended"))
        before.speak("open")
        before.speak("whole")
        before.journal.close()
        content = (tmp_path / "j.db").read_bytes()
        for written in (b'"finished"', b'"text": "a"'):
            place = content.index(written) + len(written) - 1
            content = content[:place] + b"\xff" + content[place + 1 :]
        (tmp_path / "j.db").write_bytes(content)
        bench = Bench(Journal(tmp_path / "j.db"))
        assert not bench.journal.problem
        bench.speaker.recover(Clock("boot", 1.0, PLAUSIBLE_WALL + 1))
        bench.speak("ended")
        assert "ended" in [*bench.began, *(waiting.id for waiting in bench.speaker._playback.queue)]


class TestOtherMessages:
    def test_a_refused_payload_is_told(self, bench: Bench) -> None:
        bench.handle(PayloadRefused(PayloadError("json", "no JSON", "a")))
        rejected = bench.events[-1]
        assert isinstance(rejected, Rejected)
        assert (rejected.id, rejected.code, rejected.reason) == ("a", "json", "no JSON")

    def test_what_is_said_of_others_is_passed_over(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("b")
        bench.synthesize("b")
        bench.end("b")
        bench.handle(Connected("MQTT 5"))
        assert bench.kinds() == ["accepted"]
        bench.start("a")
        assert bench.kinds() == ["accepted", "started"]

    def test_a_tick_begins_nothing_by_itself(self, bench: Bench) -> None:
        bench.handle(Tick())
        assert not bench.begun

    def test_what_is_wrong_with_the_audio_is_remembered(self, bench: Bench) -> None:
        bench.handle(AudioState("no card"))
        assert bench.speaker.condition.audio_problem == "no card"
        bench.handle(AudioState())
        assert bench.speaker.condition.audio_problem == ""

    def test_a_command_that_comes_after_the_stop_is_told_so(self) -> None:
        bench = Bench()
        bench.handle(Stop())
        bench.speak("late")
        assert [(event.event, getattr(event, "code", "")) for event in bench.events] == [("rejected", "stopped")]

    def test_a_stop_fails_who_speaks_and_who_waits(self, bench: Bench) -> None:
        bench.speak("a")
        bench.start("a")
        bench.speak("b")
        bench.speak("c")
        bench.handle(Stop())
        assert {event.id: event.code for event in bench.events if isinstance(event, Failed)} == dict.fromkeys(
            "abc", "stopped"
        )
        bench.end("a")
        assert Counter(bench.kinds()) == {"accepted": 3, "started": 1, "failed": 3}
        assert bench.began == ["a"]

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from daemon.config import AlertsConfig, TelemetryConfig
from daemon.events import Event, Failed, Finished, Rejected, Resumed, Started
from daemon.figures import Figures, Vitals
from daemon.inbox import (
    AudioState,
    Inbox,
    ModeChanged,
    PlaybackEnded,
    PlaybackStarted,
    ReadingTaken,
    RenderEnded,
    SynthesisEnded,
)
from daemon.journal import Journal
from daemon.stages import Stages
from daemon.telemetry import Desk, begin_run, end_run
from daemon.telemetry_backlog import Backlog
from daemon.telemetry_messages import Alert, Telemetry
from device.errors import SinkError
from power.mode import Decision, Mode
from power.reading import Clock, Rail, Reading


class Room:
    """A desk, what it has published, and a clock that stands still until it is told."""

    def __init__(self, *, interval_s: int = 15) -> None:
        self.now = 1000.0
        self.published: list[tuple[float, Telemetry]] = []
        self.alerts: list[Alert] = []
        self.vitals = Vitals()
        self.figures = Figures("alsa", started_at=self.now)
        self.desk = Desk(
            TelemetryConfig(interval_s=interval_s),
            AlertsConfig(),
            self.figures,
            probe=lambda: self.vitals,
            publish=self._publish,
            alert=self.alerts.append,
        )
        self.desk.tend(self.now)

    def _publish(self, figures: Telemetry) -> int:
        self.published.append((self.now, figures))
        return len(figures.to_json())

    def take(self, *messages: Inbox) -> None:
        for message in messages:
            self.desk.take(message, self.now)
            self.desk.tend(self.now)

    def hear(self, *events: Event) -> None:
        for event in events:
            self.desk.hear(event, self.now)

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while (at := self.desk.next_at) <= end:
            self.now = max(self.now, at)
            self.desk.tend(self.now)
        self.now = end

    @property
    def last(self) -> Telemetry:
        return self.published[-1][1]

    def utterance(
        self, number: int, *, queue_s: float = 0.0, cached: bool = False, mark_s: float | None = None
    ) -> None:
        """Say something: 1 ms of text, 20 of acoustic part, 10 for the first window, 2 until the sink has it."""
        name, at = f"u{number}", self.now
        begun, first = at + queue_s, at + queue_s + (0.001 if cached else 0.031)
        stages = Stages(begun, first) if cached else Stages(begun, first, 0.001, 0.020, 0.010)
        self.take(PlaybackStarted(name, first + 0.002, mark_s is not None))
        self.hear(Started(id=name, ttfa_ms=(first + 0.002 - at) * 1000, output="alsa"))
        self.take(
            SynthesisEnded(
                id=name,
                audio_s=2.0,
                compute_s=0.0 if cached else 0.2,
                first_s=0.03,
                cached=cached,
                voice="v",
                backend="b",
                precision="fp32",
                stages=stages,
                mark_s=mark_s,
            )
        )
        self.take(PlaybackEnded(name, first + 2.002, 2.0))
        self.hear(Finished(id=name, audio_s=2.0, total_ms=2000))


def near(value: float | None, wanted: float) -> bool:
    return value is not None and abs(value - wanted) <= 0.16 * wanted


class TestFigures:
    def test_where_the_time_went(self) -> None:
        room = Room()
        for number in range(50):
            room.utterance(number, queue_s=0.5)
        room.wait(20)
        found = room.last.ttfa_ms
        for stage, wanted in {
            "whole": 533,
            "response": 33,
            "queue": 500,
            "text": 1,
            "acoustic": 20,
            "window": 10,
            "sink": 2,
        }.items():
            percentiles = getattr(found, stage)
            assert near(percentiles.p50, wanted), stage
            assert near(percentiles.p99, wanted), stage
        assert room.last.rtf == 0.1
        assert room.last.utterances == 50
        assert not room.alerts  # the queue is nobody's fault

    def test_kept_phrases_have_no_stages_of_their_own(self) -> None:
        room = Room()
        room.utterance(1)
        room.utterance(2, cached=True)
        room.wait(20)
        assert (room.last.cache_hits, room.last.cache_share, room.last.rtf) == (1, 0.5, 0.1)
        assert room.figures.durations["text"].count(room.now) == 1
        assert room.figures.durations["response"].count(room.now) == 2

    def test_what_is_marked_and_what_it_takes(self) -> None:
        room = Room()
        room.utterance(1)
        room.wait(20)
        assert (room.last.watermarked, room.last.watermark_rtf) == (0, None)
        room.utterance(2, mark_s=0.05)
        room.utterance(3, cached=True, mark_s=0.0)
        room.take(RenderEnded("r", room.now, 3.0, 0.3, mark_s=0.05))
        room.take(RenderEnded("x", room.now, 3.0, 0.3, SinkError("x", "is full"), mark_s=0.05))
        room.wait(20)
        assert (room.last.watermarked, room.last.watermark_rtf) == (3, 0.02)

    def test_what_is_marked_and_interrupted_counts_once(self) -> None:
        room = Room()
        room.take(PlaybackStarted("a", room.now, watermarked=True))
        room.hear(Started(id="a", ttfa_ms=30, output="alsa"))
        room.take(PlaybackEnded("a", room.now + 1, 1.0, cut_at=40_000))
        room.wait(20)
        assert room.last.watermarked == 1
        room.take(PlaybackStarted("a", room.now, watermarked=True))
        room.hear(Resumed(id="a", at_s=0.8))
        room.utterance(1, mark_s=0.05)
        room.wait(20)
        assert room.last.watermarked == 2

    def test_what_is_rendered_is_no_time_to_first_audio(self) -> None:
        room = Room()
        room.hear(Started(id="r", ttfa_ms=900, output="renders/r.wav"))
        room.wait(20)
        assert room.last.ttfa_ms.whole is None

    def test_ends_are_counted(self) -> None:
        room = Room()
        room.hear(Failed(id="a", code="audio", reason="no card"), Rejected(id=None, code="json", reason="no JSON"))
        room.wait(20)
        assert (room.last.failed, room.last.rejected) == (1, 1)

    def test_energy_is_what_was_taken_while_it_spoke(self) -> None:
        room = Room()
        room.take(ReadingTaken(Reading(room.now, total_power_mw=5000)))
        room.take(PlaybackStarted("a", room.now + 1))
        room.take(PlaybackEnded("a", room.now + 3, 2.0))
        room.now += 10
        room.take(ReadingTaken(Reading(room.now, total_power_mw=7000)))
        room.wait(20)
        assert room.last.energy_mj_per_s == 6000

    def test_no_rail_no_energy(self) -> None:
        room = Room()
        room.take(ReadingTaken(Reading(room.now)))
        room.utterance(1)
        room.now += 10
        room.take(ReadingTaken(Reading(room.now)))
        room.wait(20)
        assert room.last.energy_mj_per_s is None

    def test_messages_that_never_come_do_not_pile_up(self) -> None:
        room = Room()
        for number in range(10_000):
            room.take(PlaybackStarted(f"u{number}", room.now))
        assert len(room.figures._under_way) < 100

    @given(
        st.lists(
            st.sampled_from(["start", "heard", "synthesized", "end", "finished"]).flatmap(
                lambda kind: st.tuples(st.just(kind), st.sampled_from("ab"), st.floats(-5, 5))
            ),
            max_size=40,
        )
    )
    def test_whatever_comes_in_whatever_order_figures_are_numbers(self, course: list[tuple[str, str, float]]) -> None:
        room = Room()
        for kind, name, shift in course:
            at = room.now + shift
            match kind:
                case "start":
                    room.take(PlaybackStarted(name, at))
                case "heard":
                    room.hear(Started(id=name, ttfa_ms=abs(shift), output="alsa"))
                case "synthesized":
                    stages = Stages(at, at, 0.0, -0.1, 0.1)
                    room.take(SynthesisEnded(name, 0.0, 0.1, None, False, "v", "b", "p", stages=stages))  # noqa: FBT003
                case "end":
                    room.take(PlaybackEnded(name, at))
                case _:
                    room.hear(Finished(id=name, audio_s=0, total_ms=0))
        room.wait(20)
        assert Telemetry.model_validate_json(room.last.to_json()) == room.last


BOARD = Reading(
    1000.0,
    temperatures={"cpu-thermal": 51_234, "gpu-thermal": 49_900},
    rails=(Rail("VDD_IN", power_mw=6120), Rail("VDD_SOC")),
    clocks={"gpu": Clock(624_750_000), "cpu0": Clock(1_500_000_000), "cpu1": Clock(729_600_000)},
    loads={"gpu": 0.25},
    memory_available=2**31,
    power_mode="15W",
    degraded={"jtop": "does not answer for 5 s; it is tried again in 60 s"},
)


class TestDesk:
    def test_it_publishes_at_its_interval_and_no_more(self) -> None:
        room = Room()
        room.wait(150)
        assert len(room.published) == 11
        assert all(b - a == 15 for (a, _), (b, _) in zip(room.published, room.published[1:], strict=False))

    def test_what_the_sensors_say_and_why_they_do_not(self) -> None:
        room = Room()
        room.wait(10)
        room.take(ReadingTaken(BOARD))
        told = room.last  # a change is told at once
        assert told.degraded == BOARD.degraded
        assert told.temperatures_c == {"cpu-thermal": 51.2, "gpu-thermal": 49.9}
        assert told.rails_mw == {"VDD_IN": 6120}
        assert told.clocks_mhz == {"gpu": 625, "cpu": 1500}
        assert (told.gpu_load, told.cpu_load, told.power_mode) == (0.25, None, "15W")
        assert told.memory_mb.available == 2048

    def test_the_mode_and_why(self) -> None:
        room = Room()
        room.wait(10)
        room.take(ModeChanged(Decision(Mode.PROTECT, "82 °C and rising")))
        assert (room.last.mode, room.last.reason) == ("protect", "82 °C and rising")

    def test_changes_without_end_stay_within_the_budget(self) -> None:
        room = Room()
        began = room.now
        while room.now < began + 600:
            for mode in (Mode.LATENCY, Mode.EFFICIENCY):
                room.take(ModeChanged(Decision(mode, "back and forth")))
                room.wait(0.25)
        sent = sum(len(figures.to_json()) for _, figures in room.published)
        assert sent / 600 < 200
        assert room.published[-1][0] > room.now - 15

    def test_a_lost_card_is_an_alert_with_raise_and_clear(self) -> None:
        room = Room()
        room.take(AudioState("alsa default: cannot be opened"))
        room.wait(12)
        room.take(AudioState())
        room.wait(12)
        assert [(a.alert, a.state) for a in room.alerts] == [("card_lost", "raised"), ("card_lost", "cleared")]
        assert "cannot be opened" in room.alerts[0].reason
        assert any(figures.alerts == ("card_lost",) for _, figures in room.published)
        room.wait(15)
        assert not room.last.alerts

    def test_slow_speech_is_an_alert_though_figures_are_published_once_an_hour(self) -> None:
        room = Room(interval_s=3600)
        for number in range(20):
            room.hear(Started(id=f"u{number}", ttfa_ms=400, output="alsa"))
            room.take(PlaybackStarted(f"u{number}", room.now + 0.4))
            ended = SynthesisEnded(f"u{number}", 1, 1, 0.4, False, "v", "b", "p", stages=Stages(room.now, room.now))  # noqa: FBT003
            room.take(ended)
        room.wait(10)
        (alert,) = room.alerts
        assert (alert.alert, alert.threshold) == ("ttfa_p95", 250)
        assert near(alert.value, 400)
        room.wait(2 * 3600)
        assert [a.state for a in room.alerts] == ["raised", "cleared"]

    def test_drops_of_the_last_hour_count_not_those_of_last_week(self) -> None:
        room = Room()
        room.vitals = Vitals(encoder_packets=1000, encoder_drops=20)
        room.wait(10)
        assert [a.alert for a in room.alerts] == ["encoder_drops"]
        room.vitals = Vitals(encoder_packets=2000, encoder_drops=20)
        room.wait(5000)
        assert [a.state for a in room.alerts] == ["raised", "cleared"]


class TestBacklog:
    def test_while_the_broker_is_away_the_oldest_are_given_up(self) -> None:
        sent: list[str] = []
        away = True

        def send(payload: str) -> int | None:
            if away:
                return None
            sent.append(payload)
            return len(payload)

        room = Room()
        backlog = Backlog(send)
        for seconds in range(100):
            backlog.publish(room.last.model_copy(update={"uptime_s": seconds}))
        assert backlog.lost == 60
        backlog.flush()
        assert not sent
        away = False
        backlog.flush()
        assert [Telemetry.model_validate_json(one).uptime_s for one in sent] == list(range(60, 100))
        backlog.flush()
        assert len(sent) == 40


def test_restarts_are_those_without_a_clean_end(tmp_path: Path) -> None:
    def run(then: Callable[[Journal, int], None]) -> int:
        journal = Journal(tmp_path / "journal.db")
        restarts = begin_run(journal)
        then(journal, restarts)
        journal.close()
        return restarts

    def crash(_journal: Journal, _restarts: int) -> None:
        pass

    assert [run(end_run), run(crash), run(crash), run(end_run), run(end_run)] == [0, 0, 1, 2, 2]

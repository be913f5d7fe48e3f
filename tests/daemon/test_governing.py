"""The governor in the daemon: a real speaker and journal, a copied board, and what reads and changes a real one."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from simulators import boards
from simulators.power_helper import HelperProcess
from simulators.waiting import wait_until

from daemon.clock import PLAUSIBLE_WALL, Clock
from daemon.commands import Speak
from daemon.config_power import PowerConfig
from daemon.governing import Governing, thresholds_of
from daemon.inbox import Inbox, ModeApplied, ModeChanged, ReadingTaken, SpeakReceived
from daemon.job import Job
from daemon.journal import Journal
from daemon.lexica import Lexica
from daemon.power_watch import BoardHand, SensorWatch
from daemon.queue import Waiting
from daemon.speaker import Bounds, Hands, Speaker
from power.actor import Actor
from power.governor import Policy
from power.heat import Thresholds
from power.helper_client import HelperClient
from power.limits import Limits, TripPoint, read_limits
from power.mode import Decision, Mode
from power.modes import Applied, Modes
from power.reading import Reading
from power.sensors import Sensors

TIMEOUT_S = 60
BOUNDS = Bounds(queue=10, queue_bytes=1000, rate_per_s=1000, burst=1000, renders=2, speak_after_restart_s=60)


class Rig:
    """A governor whose threads were never started, so that all is in order."""

    def __init__(self, journal: Journal | None = None) -> None:
        self.done: list[str | Decision] = []
        self.posted: list[Inbox] = []
        self.journal = journal or Journal(None)
        hands = Hands(
            publish=lambda event, origin: None,
            begin=self.begin,
            cut=lambda job, at_once: None,
            drop=lambda _: False,
            render=lambda waiting: (Job(waiting.id), ""),
            apply=lambda settings: None,
            voices=list,
            lexica=Lexica(Path("/no/lexicon.d"), self.journal),
        )
        self.speaker = Speaker(BOUNDS, self.journal, "null", hands)
        self.governing = Governing(
            Policy(Thresholds(elsewhere=70_000)),
            self.speaker,
            self.journal,
            SensorWatch(Sensors, self.posted.append, interval_s=1),
            BoardHand(lambda: (Modes(Nobody()), lambda: None), self.posted.append),  # type: ignore[arg-type]
            obey=self.done.append,
            post=self.posted.append,
        )
        self.now = Clock.now().monotonic
        self.wall = PLAUSIBLE_WALL + 40 * 3600

    def begin(self, waiting: Waiting) -> Job:
        self.done.append(f"begin {waiting.id}")
        return Job(waiting.id)

    def handle(self, message: Inbox, after_s: float = 1.0) -> None:
        self.now += after_s
        self.wall += after_s
        at = Clock("boot", self.now, self.wall)
        self.governing.before(message, at)
        self.speaker.handle(message, at)
        self.governing.after(message, at)

    def read(self, celsius: float, after_s: float = 1.0) -> None:
        self.handle(ReadingTaken(Reading(self.now + after_s, {"cpu": round(celsius * 1000)})), after_s)

    def speak(self, command_id: str, after_s: float = 1.0) -> None:
        self.handle(SpeakReceived(Speak(id=command_id, text="a"), self.now + after_s), after_s)

    @property
    def decisions(self) -> list[Decision]:
        return [done for done in self.done if isinstance(done, Decision)]


class Nobody:
    """Changes nothing, for it is never asked."""


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_voice_is_quick_before_the_engine_has_the_command(rig: Rig) -> None:
    rig.read(40)
    rig.read(40, after_s=600)
    assert rig.decisions[-1].mode is Mode.EFFICIENCY
    rig.done.clear()
    rig.speak("a")
    decision, begun = rig.done
    assert isinstance(decision, Decision)
    assert (decision.mode, decision.large_windows) == (Mode.LATENCY, False)
    assert begun == "begin a"


def test_everybody_is_told_once_of_what_changes(rig: Rig) -> None:
    for _ in range(5):
        rig.read(40)
    assert [type(message) for message in rig.posted] == [ModeChanged]
    for _ in range(5):
        rig.read(80)
    changed = [message.decision for message in rig.posted if isinstance(message, ModeChanged)]
    assert changed == rig.decisions
    assert changed[-1].mode is Mode.PROTECT


def test_clocks_go_down_between_utterances_once_a_raise_is_known_to_be_quick(rig: Rig) -> None:
    rig.read(40)
    rig.speak("a")
    assert not rig.decisions[-1].clocks_capped
    rig.handle(ModeApplied(Applied(changed=("limits gpu 1 2",), took_s=0.004), raised=True))
    rig.handle(ModeApplied(Applied(changed=("power-mode 2",), took_s=3.0)))
    rig.speaker._playback.queue.take(lambda _: True)
    rig.speaker._playback._current = None  # it has been said
    rig.read(40)
    rig.read(40, after_s=3)
    assert rig.decisions[-1].clocks_capped
    rig.speak("b")
    assert not rig.decisions[-1].clocks_capped


def test_busy_hours_are_learned_over_restarts(rig: Rig) -> None:
    for number in range(10):
        rig.speak(str(number))
    rig.governing._hand.start()  # so that it can be joined
    rig.governing.stop()
    again = Rig(rig.journal)
    again.wall = rig.wall + 86_400
    again.read(40)
    again.read(40, after_s=600)
    assert again.decisions[-1].mode is Mode.LATENCY
    again.wall += 6 * 3600
    again.read(40)
    assert again.decisions[-1].mode is Mode.EFFICIENCY


def test_a_clock_that_was_never_set_teaches_nothing(rig: Rig) -> None:
    rig.wall = 1000.0
    for number in range(10):
        rig.speak(str(number))
    assert not any(rig.governing._hours.today)


def test_what_is_no_record_of_busy_hours_is_learned_anew() -> None:
    journal = Journal(None)
    journal.remember("busy hours", "[broken")
    assert not any(Rig(journal).governing._hours.average)


class TestThresholds:
    def test_they_lie_below_what_the_board_tells(self) -> None:
        limits = Limits(
            {
                "cpu": (TripPoint("active", 74_000), TripPoint("passive", 99_000), TripPoint("critical", 104_500)),
                "tj": (TripPoint("critical", 104_500),),
                "skin": (TripPoint("passive", 45_000),),
            }
        )
        assert thresholds_of(PowerConfig(), limits).zones == {"cpu": 89_000, "tj": 89_500}

    @pytest.mark.parametrize("name", boards.JETSONS)
    def test_each_board_has_some(self, name: str, tmp_path: Path) -> None:
        tree = boards.make(name, tmp_path)
        limits = read_limits(tree.root)
        zones = thresholds_of(PowerConfig(), limits).zones
        assert zones
        assert limits.throttle_at is not None
        assert max(zones.values()) < limits.throttle_at + 10_000
        assert all(at >= 60_000 for at in zones.values())

    def test_the_owner_knows_better(self) -> None:
        limits = Limits({"cpu": (TripPoint("passive", 99_000),)})
        thresholds = thresholds_of(PowerConfig(protect_c=70, hysteresis_c=8), limits)
        assert (thresholds.of("cpu"), thresholds.of("gpu"), thresholds.hysteresis_mc) == (70_000, 70_000, 8_000)


class TestThreads:
    @pytest.fixture
    def posted(self) -> queue.SimpleQueue[Inbox]:
        return queue.SimpleQueue()

    @pytest.fixture(params=boards.JETSONS)
    def tree(self, request: Any, tmp_path: Path) -> Iterator[boards.BoardTree]:  # noqa: ANN401
        return boards.make(request.param, tmp_path / "board")

    def test_the_hand_raises_lowers_and_puts_back(
        self, tree: boards.BoardTree, posted: queue.SimpleQueue[Inbox], tmp_path: Path
    ) -> None:
        found = tree.caps()
        hand = BoardHand(lambda: (Modes(Actor(tree.root, tmp_path / "state.json")), lambda: None), posted.put)
        hand.start()

        def applied() -> ModeApplied:
            message = posted.get(timeout=TIMEOUT_S)
            assert isinstance(message, ModeApplied), message
            return message

        assert not applied().raised
        assert all(high < found[clock][1] for clock, (_, high) in tree.caps().items())
        hand.apply(Decision(Mode.LATENCY, ""))
        assert applied().raised
        assert all(low == high == found[clock][1] for clock, (low, high) in tree.caps().items())
        hand.apply(Decision(Mode.LATENCY, "", clocks_capped=True))
        assert not applied().raised
        hand.stop()
        hand.join(TIMEOUT_S)
        assert tree.caps() == found

    def test_a_board_that_a_restarted_helper_has_put_back_follows_again(
        self, posted: queue.SimpleQueue[Inbox], tmp_path: Path
    ) -> None:
        """In the small hours, say, when no new decision comes."""
        tree = boards.make("orin-nano-super", tmp_path / "board")
        found = tree.caps()
        with HelperProcess(tree) as helper:
            client = HelperClient(helper.socket, tree.root)
            hand = BoardHand(lambda: (Modes(client), client.close), posted.put, again_s=0.1)
            hand.start()

            def applied() -> Applied:
                message = posted.get(timeout=TIMEOUT_S)
                assert isinstance(message, ModeApplied), message
                return message.applied

            try:
                hand.apply(Decision(Mode.EFFICIENCY, "", clocks_capped=True))
                capped = f"limits gpu {306 * 10**6} {612 * 10**6}"
                assert capped in applied().changed
                helper.kill()
                helper.start()
                told = 1
                while capped not in applied().changed:
                    told += 1
                assert told < 6, "what is so still is not told again and again"
            finally:
                hand.stop()
                hand.join(TIMEOUT_S)
            wait_until(lambda: not helper.state.exists(), "it is not put back")
        assert tree.caps() == found

    def test_sensors_are_read_at_the_interval_and_soon_after_a_command(
        self, tree: boards.BoardTree, posted: queue.SimpleQueue[Inbox]
    ) -> None:
        watch = SensorWatch(lambda: Sensors(tree.root, jtop=False), posted.put, interval_s=1000)
        watch.start()
        first = posted.get(timeout=TIMEOUT_S)
        assert isinstance(first, ReadingTaken)
        assert first.reading.temperatures
        watch.look_soon()
        second = posted.get(timeout=TIMEOUT_S)
        assert isinstance(second, ReadingTaken)
        assert second.reading.at_s > first.reading.at_s
        watch.stop()
        watch.join(TIMEOUT_S)
        assert not watch.is_alive()

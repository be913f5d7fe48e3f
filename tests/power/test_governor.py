from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import median

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from power.governor import Demand, Policy, State, decide
from power.heat import Thresholds
from power.mode import Decision, Mode
from power.reading import Battery, Reading

PROTECT_MC = 70_000
POLICY = Policy(Thresholds(elsewhere=PROTECT_MC))
INTERVAL_S = 2.0


class Board:
    """A governor's history: each step is a reading, a demand and what was decided."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.policy = policy
        self.now = 0.0
        self.state = State()
        self.modes: list[Mode] = []

    def step(self, celsius: float | None = 40.0, *, after_s: float = INTERVAL_S, **demand: object) -> Decision:
        temperatures = {} if celsius is None else {"cpu": round(celsius * 1000)}
        return self.take(Reading(self.now + after_s, temperatures), after_s=after_s, **demand)

    def take(self, reading: Reading | None, *, after_s: float = INTERVAL_S, **demand: object) -> Decision:
        self.now += after_s
        decision, self.state = decide(reading, Demand(self.now, **demand), self.state, self.policy)  # type: ignore[arg-type]
        self.modes.append(decision.mode)
        return decision

    def steps(self, seconds: float, celsius: float | None = 40.0, **demand: object) -> Decision:
        for _ in range(round(seconds / INTERVAL_S)):
            decision = self.step(celsius, **demand)
        return decision

    @property
    def switches(self) -> int:
        return sum(one is not other for one, other in zip(self.modes, self.modes[1:], strict=False))


@pytest.fixture
def board() -> Board:
    return Board()


class TestModes:
    def test_who_waits_is_served_at_once(self, board: Board) -> None:
        assert board.steps(300).mode is Mode.EFFICIENCY
        decision = board.step(waiting=1, idle_s=0)
        assert (decision.mode, decision.clocks_capped, decision.large_windows) == (Mode.LATENCY, False, False)
        assert decision.engines_warm

    def test_a_command_need_not_wait_for_a_reading(self, board: Board) -> None:
        board.steps(300)
        assert board.take(None, after_s=0.001, waiting=1, idle_s=0).mode is Mode.LATENCY

    def test_nobody_there_engines_are_let_go_after_a_while(self, board: Board) -> None:
        board.step(waiting=1, idle_s=0)
        assert board.step(idle_s=119).mode is Mode.LATENCY
        decision = board.step(idle_s=121)
        assert (decision.mode, decision.engines_warm, decision.clocks_capped) == (Mode.EFFICIENCY, False, True)

    def test_where_commands_are_usual_engines_stay_warm(self, board: Board) -> None:
        assert board.step(idle_s=10_000, usual=True).engines_warm

    @pytest.mark.parametrize(("switch_s", "capped"), [(None, False), (0.005, True), (0.5, False)])
    def test_clocks_go_down_after_an_utterance_if_raising_them_is_quick(
        self, board: Board, switch_s: float | None, *, capped: bool
    ) -> None:
        assert not board.step(waiting=1, idle_s=0, switch_s=switch_s).clocks_capped
        assert not board.step(idle_s=0.5, switch_s=switch_s).clocks_capped
        decision = board.step(idle_s=2.5, switch_s=switch_s)
        assert (decision.mode, decision.clocks_capped) == (Mode.LATENCY, capped)

    def test_a_low_battery_prefers_efficiency_until_it_is_charged(self, board: Board) -> None:
        def mode(percent: int, *, charging: bool = False) -> Mode:
            reading = Reading(board.now + 2, {"cpu": 40_000}, battery=Battery(percent, charging))
            return board.take(reading, waiting=1, idle_s=0).mode

        def later(percent: int, *, charging: bool = False) -> Mode:
            for _ in range(30):
                mode(percent, charging=charging)
            return mode(percent, charging=charging)

        assert mode(21) is Mode.LATENCY
        assert later(20) is Mode.EFFICIENCY
        assert later(24) is Mode.EFFICIENCY
        assert later(26) is Mode.LATENCY
        assert later(10) is Mode.EFFICIENCY
        assert later(10, charging=True) is Mode.LATENCY

    def test_a_gauge_that_errs_once_is_no_low_battery(self, board: Board) -> None:
        for percent in [80, 0, 80, 80, 0, 80] * 20:
            board.take(Reading(board.now + 2, battery=Battery(percent)), waiting=1, idle_s=0)
        assert set(board.modes) == {Mode.LATENCY}

    @pytest.mark.parametrize("other", [None, Battery(15, charging=True), Battery(40), Battery()])
    def test_a_loose_contact_of_the_charger_changes_nothing(self, board: Board, other: Battery | None) -> None:
        low = Battery(15, charging=False)
        for battery in [low, low, *[low, other, other, low, low, other] * 30]:
            board.take(Reading(board.now + 2, battery=battery), waiting=1, idle_s=0)
        assert board.modes[-1] is Mode.EFFICIENCY
        assert board.switches <= 1

    @pytest.mark.parametrize("wanted", list(Mode))
    def test_what_was_asked_for_counts_while_it_is_cool(self, board: Board, wanted: Mode) -> None:
        decision = board.steps(60, waiting=1, idle_s=0, wanted=wanted)
        assert (decision.mode, decision.reason) == (wanted, "asked for")
        assert board.step(waiting=1, idle_s=0).mode is Mode.LATENCY

    def test_a_pc_without_sensors_is_no_hot_board(self, board: Board) -> None:
        assert board.step(None, waiting=1, idle_s=0).mode is Mode.LATENCY

    def test_a_decision_that_changes_nothing_stays_the_same(self, board: Board) -> None:
        first = board.step(waiting=1, idle_s=0)
        assert board.step(41, waiting=1, idle_s=0) == first
        assert board.step(43, waiting=0, idle_s=1, usual=True) == first


class TestProtect:
    def test_above_the_threshold_speech_is_all_that_goes_on(self, board: Board) -> None:
        board.steps(60, waiting=1, idle_s=0)
        decision = board.steps(6, 72, waiting=1, idle_s=0)
        assert (decision.mode, decision.rendering_paused, decision.clocks_capped) == (Mode.PROTECT, True, True)
        assert 0 < decision.rest_s <= 3
        assert "cpu is 2.0 °C above" in decision.reason

    @pytest.mark.parametrize("outlier", [125, -40])
    def test_one_outlier_changes_nothing(self, board: Board, outlier: float) -> None:
        for celsius in [45, 45, outlier, 45, 45, 45, outlier, 45, 45] * 30:
            board.step(celsius, waiting=1, idle_s=0)
        assert set(board.modes) == {Mode.LATENCY}

    def test_nor_does_one_in_each_of_two_zones(self, board: Board) -> None:
        for hot in ({}, {"cpu": 99_000}, {"gpu": 99_000}, {}):
            temperatures = {"cpu": 45_000, "gpu": 45_000} | hot
            assert board.take(Reading(board.now + 2, temperatures), waiting=1, idle_s=0).mode is Mode.LATENCY

    def test_nor_does_one_of_a_zone_that_seldom_speaks(self, board: Board) -> None:
        """As those of a Jetson whose part is switched off most of the time."""
        for number in range(90):
            temperatures = {"cpu": 45_000} | ({"cv0": 120_000} if number % 40 == 30 else {})
            board.take(Reading(board.now + 2, temperatures), waiting=1, idle_s=0)
        assert set(board.modes) == {Mode.LATENCY}

    def test_a_part_that_is_switched_off_is_as_warm_when_it_comes_back(self, board: Board) -> None:
        """A GPU at 76 °C that is gated between two utterances, at no regular moments."""
        for number in range(1800):
            temperatures = {"cpu": 60_000} | ({"gpu": 76_000} if number * 7 % 11 < 5 else {})
            board.take(Reading(board.now + 2, temperatures), waiting=1, idle_s=0)
        assert board.modes[-1] is Mode.PROTECT
        assert board.switches <= 2

    def test_the_slope_acts_before_the_threshold(self, board: Board) -> None:
        celsius = 50.0
        while board.step(celsius, waiting=1, idle_s=0).mode is Mode.LATENCY:
            celsius += 0.2  # in two seconds: 3 °C in the half minute that counts
        assert 66 < celsius < 68.5
        assert "rising" in board.step(celsius).reason

    def test_a_step_that_is_over_soon_is_no_slope(self, board: Board) -> None:
        board.steps(10, 66, waiting=1, idle_s=0)
        board.steps(14, 68.5, waiting=1, idle_s=0)
        assert set(board.modes) == {Mode.LATENCY}

    def test_it_ends_only_well_below(self, board: Board) -> None:
        board.steps(60, 72, waiting=1, idle_s=0)
        assert board.steps(600, 66, waiting=1, idle_s=0).mode is Mode.PROTECT
        assert board.steps(6, 64.9, waiting=1, idle_s=0).mode is Mode.LATENCY

    def test_and_not_at_once_where_nobody_waits(self, board: Board) -> None:
        board.steps(6, 72)
        assert board.steps(100, 40).mode is Mode.PROTECT
        assert board.steps(30, 40).mode is Mode.EFFICIENCY

    def test_the_kernel_knows_better(self, board: Board) -> None:
        board.step(waiting=1, idle_s=0)
        reading = Reading(board.now + 2, {"cpu": 40_000}, throttling=("gpu-throttle-alert",))
        decision = board.take(reading, waiting=1, idle_s=0)
        assert decision.mode is Mode.PROTECT
        assert "gpu-throttle-alert" in decision.reason
        assert board.steps(50, waiting=1, idle_s=0).mode is Mode.PROTECT
        assert board.steps(20, waiting=1, idle_s=0).mode is Mode.LATENCY

    @pytest.mark.parametrize("every", [40, 100])
    def test_a_supply_that_gives_in_whenever_clocks_are_up_has_them_up_ever_more_rarely(
        self, board: Board, every: int
    ) -> None:
        events = 0
        for _ in range(1800):
            events += board.state.mode is not Mode.PROTECT and board.now % every < 2
            reading = Reading(board.now + 2, {"cpu": 40_000}, over_current_events={"oc3": events})
            board.take(reading, waiting=1, idle_s=0)
        assert events > 3
        assert board.switches <= 15
        assert board.steps(3600, waiting=1, idle_s=0).mode is Mode.LATENCY

    def test_a_supply_that_gives_in_counts_when_it_does(self, board: Board) -> None:
        def mode(events: int) -> Mode:
            reading = Reading(board.now + 2, {"cpu": 40_000}, over_current_events={"oc3": events})
            return board.take(reading, waiting=1, idle_s=0).mode

        assert mode(7) is Mode.LATENCY  # since boot: before us
        assert mode(7) is Mode.LATENCY
        assert mode(8) is Mode.PROTECT

    def test_sensors_that_fall_silent_are_no_cooling(self, board: Board) -> None:
        board.steps(60, 72)
        assert board.steps(50, None, waiting=1, idle_s=0).mode is Mode.PROTECT
        assert board.steps(20, None, waiting=1, idle_s=0).mode is Mode.LATENCY  # too old to say anything


def saw_tooth(period_s: float, skew: float) -> Callable[[float], float]:
    """Swing between 69 and 71 °C, rising for a share `skew` of the period."""

    def at(now_s: float) -> float:
        phase = now_s / period_s % 1
        return 69 + 2 * (phase / skew if phase < skew else (1 - phase) / (1 - skew))

    return at


TIMES = st.floats(0.3, 15)
TEMPERATURES = st.one_of(st.floats(-40, 125), st.floats(60, 80))


@settings(max_examples=40)  # an hour each
@given(
    period_s=st.floats(4, 3600),
    skew=st.floats(0.05, 0.95),
    protect_c=st.floats(64, 77),
    interval_s=st.floats(1, 15),
    commands_s=st.floats(1, 2000),
    usual=st.booleans(),
)
@example(period_s=600, skew=0.5, protect_c=70, interval_s=2, commands_s=130, usual=False)
def test_a_saw_tooth_makes_at_most_six_switches_an_hour(
    *, period_s: float, skew: float, protect_c: float, interval_s: float, commands_s: float, usual: bool
) -> None:
    board = Board(Policy(Thresholds(elsewhere=round(protect_c * 1000))))
    celsius = saw_tooth(period_s, skew)
    while board.now < 3600:
        idle_s = max(0, board.now % commands_s - 3)
        board.step(
            celsius(board.now),
            after_s=interval_s,
            waiting=int(idle_s == 0),
            idle_s=idle_s,
            usual=usual,
            switch_s=0.001,
        )
    assert board.switches <= 6


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[float, Reading | None, dict[str, object]]]:
    """Draw anything that sensors and people may do."""

    def reading() -> Reading | None:
        if draw(st.integers(0, 9)) == 0:
            return None
        zones = draw(st.dictionaries(st.sampled_from(["cpu", "gpu", "tj"]), TEMPERATURES, max_size=3))
        alert = draw(st.integers(0, 30)) == 0
        charge = draw(st.none() | st.integers(0, 100))
        return Reading(
            0,
            {zone: round(value * 1000) for zone, value in zones.items()},
            throttling=("cpu-throttle-alert",) if alert else (),
            over_current_events={"oc1": draw(st.integers(0, 1))} if draw(st.booleans()) else {},
            battery=None if charge is None else Battery(charge, draw(st.none() | st.booleans())),
        )

    def demand() -> dict[str, object]:
        waiting = draw(st.integers(0, 3))
        return {
            "waiting": waiting,
            "idle_s": 0.0 if waiting else draw(st.sampled_from([0.5, 2.0, 100.0, 1e4, math.inf])),
            "usual": draw(st.booleans()),
            "wanted": draw(st.sampled_from([None, None, None, *Mode])),
            "switch_s": draw(st.sampled_from([None, 0.001, 1.0])),
        }

    return [(draw(TIMES), reading(), demand()) for _ in range(draw(st.integers(1, 40)))]


def histories(
    sequence: list[tuple[float, Reading | None, dict[str, object]]],
) -> Iterator[tuple[Board, Decision, dict[str, list[int]], bool, dict[str, object]]]:
    """Give after each step: the board, the decision, the last three temperatures of each zone, an alert, the demand."""
    board = Board()
    taken: dict[str, list[tuple[float, int]]] = {}
    for after_s, reading, demand in sequence:
        now = board.now + after_s
        if reading is not None:
            reading = Reading(  # noqa: PLW2901  what was drawn gets its time
                now,
                reading.temperatures,
                throttling=reading.throttling,
                over_current_events=reading.over_current_events,
                battery=reading.battery,
            )
            for zone, value in reading.temperatures.items():
                taken[zone] = [*taken.get(zone, []), (now, value)][-3:]
        decision = board.take(reading, after_s=after_s, **demand)
        zones = {zone: [value for at, value in values if now - at <= 60] for zone, values in taken.items()}
        yield board, decision, zones, now < board.state.alert_until_s, demand


@given(steps())
def test_a_decision_is_always_one_of_ours(sequence: list[tuple[float, Reading | None, dict[str, object]]]) -> None:
    for _, decision, _, _, _ in histories(sequence):
        assert decision.mode in Mode
        assert decision.reason
        assert decision.rendering_paused == (decision.mode is Mode.PROTECT) == (decision.rest_s > 0)
        assert decision.rest_s <= 3
        assert decision.clocks_capped or decision.mode is Mode.LATENCY
        assert decision.engines_warm or decision.mode is Mode.EFFICIENCY
        assert decision.encoder_complexity is None or 0 <= decision.encoder_complexity <= 10


@given(steps())
def test_latency_is_never_chosen_above_the_threshold(
    sequence: list[tuple[float, Reading | None, dict[str, object]]],
) -> None:
    for _, decision, zones, _, _ in histories(sequence):
        if any(len(values) == 3 and median(values) >= PROTECT_MC for values in zones.values()):
            assert decision.mode is not Mode.LATENCY


@given(steps())
def test_who_comes_while_it_is_cool_is_served_at_once(
    sequence: list[tuple[float, Reading | None, dict[str, object]]],
) -> None:
    for board, _, zones, alert, demand in histories(sequence):
        readings = [value for values in zones.values() for value in values]
        cool = all(value <= PROTECT_MC - 5000 - 5000 for value in readings)  # the hysteresis, and what a slope may add
        if cool and not alert and not board.state.battery_low and demand["wanted"] is None:
            decision = board.take(None, after_s=0, waiting=1, idle_s=0)
            assert decision.mode is Mode.LATENCY
            assert not decision.clocks_capped

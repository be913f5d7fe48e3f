from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulators.figures import figures

from daemon.alerts import Alerts, Facts, Hysteresis, rules
from daemon.config import AlertsConfig
from daemon.telemetry_messages import Alert, Disk, Latency, Memory, Percentiles, SelfCheck

VALUES = st.none() | st.floats(0, 200)


class TestHysteresis:
    @given(st.lists(st.tuples(VALUES, st.floats(0.1, 30)), max_size=100))
    def test_every_change_has_lasted_and_was_clear(self, course: list[tuple[float | None, float]]) -> None:
        state = Hysteresis(100, clear_at=90, raise_after_s=10, clear_after_s=60)
        now, history = 0.0, list[tuple[float, float | None]]()
        last_change = -1e9
        for value, step in course:
            now += step
            history.append((now, value))
            if not state.judge(value, now):
                continue
            lasted = 10 if state.raised else 60
            recent = [v for at, v in history if at >= now - lasted and at > last_change]
            if state.raised:
                assert all(v is not None and v > 100 for v in recent)
            else:
                assert all(v is None or v <= 90 for v in recent)
            assert now - last_change >= lasted
            last_change = now

    @given(st.lists(st.floats(90.001, 100), max_size=100), st.booleans())
    def test_between_the_two_levels_nothing_changes(self, values: list[float], raised: bool) -> None:  # noqa: FBT001
        state = Hysteresis(100, clear_at=90, raise_after_s=0, clear_after_s=0)
        if raised:
            assert state.judge(101, 0.0)
        assert not any(state.judge(value, 1.0 + i) for i, value in enumerate(values))
        assert state.raised == raised

    @given(st.lists(VALUES, max_size=50), st.integers(1, 100))
    def test_what_lasts_is_noticed(self, before: list[float | None], threshold: int) -> None:
        state = Hysteresis(threshold, clear_at=threshold * 0.9, raise_after_s=10, clear_after_s=60)
        for i, value in enumerate(before):
            state.judge(value, float(i))
        now = float(len(before))
        for wanted, value in ((True, threshold + 1.0), (False, 0.0), (True, threshold + 1.0), (False, None)):
            for _ in range(70):
                now += 1
                state.judge(value, now)
            assert state.raised is wanted

    def test_a_saw_tooth_raises_nothing_and_clears_nothing(self) -> None:
        state = Hysteresis(70, clear_at=63, raise_after_s=10, clear_after_s=60)
        assert not any(state.judge(71 if i % 2 else 69, i * 5.0) for i in range(1000))


def judged(facts: Facts, config: AlertsConfig | None = None, *, for_s: int = 70) -> list[Alert]:
    alerts = Alerts(rules(config or AlertsConfig()))
    return [change for now in range(for_s) for change in alerts.judge(facts, float(now))]


def latency(p95: float, p99: float) -> Latency:
    return Latency(response=Percentiles(p50=20, p95=p95, p99=p99))


class TestRules:
    @pytest.mark.parametrize(
        ("name", "facts", "value", "threshold", "severity"),
        [
            ("ttfa_p95", Facts(figures(ttfa_ms=latency(251, 300)), 20), 251, 250, "warning"),
            ("ttfa_p99", Facts(figures(ttfa_ms=latency(20, 501)), 100), 501, 500, "critical"),
            ("gpu_memory", Facts(figures(memory_mb=Memory(gpu_used=86, gpu=100))), 86, 85, "warning"),
            ("pool", Facts(figures(memory_mb=Memory(pool_used=91, pool=100))), 91, 90, "warning"),
            ("encoder_drops", Facts(figures(), drop_percent=1.5), 1.5, 1, "warning"),
            ("disk_full", Facts(figures(disk=Disk(free_mb=99))), 99, 100, "warning"),
            ("disk_written", Facts(figures(disk=Disk(written_day_mb=1001))), 1001, 1000, "warning"),
            ("disk_wear", Facts(figures(disk=Disk(wear_percent=100))), 100, 90, "warning"),
            ("disk_refuses", Facts(figures(disk=Disk(refusal="it is full"))), 1, None, "critical"),
            ("throttling", Facts(figures(throttling=("cpu-throttle-alert",))), 1, None, "critical"),
            ("card_lost", Facts(figures(), audio_problem="no such device"), 1, None, "critical"),
        ],
    )
    def test_each_has_its_limit(
        self, name: str, facts: Facts, value: float, threshold: float | None, severity: str
    ) -> None:
        (alert,) = judged(facts)
        assert (alert.alert, alert.value, alert.threshold, alert.severity) == (name, value, threshold, severity)
        assert alert.state == "raised"
        assert alert.reason

    @pytest.mark.parametrize(
        "facts",
        [
            Facts(figures()),
            Facts(figures(ttfa_ms=latency(250, 500)), 1000),
            Facts(figures(ttfa_ms=latency(900, 900)), 19),
            Facts(figures(memory_mb=Memory(gpu_used=85, gpu=100, pool_used=90, pool=100))),
            Facts(figures(), drop_percent=1.0),
            Facts(figures(disk=Disk(free_mb=100, written_day_mb=1000, written_per_day_mb=9999, wear_percent=90))),
            Facts(figures(memory_mb=Memory(gpu=0, gpu_used=0))),
        ],
    )
    def test_within_it_there_is_none(self, facts: Facts) -> None:
        assert not judged(facts)

    def test_a_full_pool_is_told_of_after_a_minute_and_a_lost_card_after_seconds(self) -> None:
        full = Facts(figures(memory_mb=Memory(pool_used=100, pool=100)))
        assert not judged(full, for_s=59)
        assert not judged(Facts(figures(), audio_problem="gone"), for_s=4)
        assert judged(Facts(figures(), audio_problem="gone"), for_s=7)

    def test_a_card_that_is_busy_with_itself_for_a_moment_is_no_alert(self) -> None:
        silent = Facts(figures(disk=Disk(refusal="it does not answer")))
        assert not judged(silent, for_s=2)
        assert judged(silent, for_s=5)

    def test_a_disk_with_room_again_clears_its_alert_once_that_is_clear(self) -> None:
        alerts, now = Alerts(rules(AlertsConfig())), 0.0

        def told(free_mb: float) -> list[str]:
            nonlocal now
            found = []
            for _ in range(70):
                now += 1
                facts = Facts(figures(disk=Disk(free_mb=free_mb)))
                found += [f"{change.alert} {change.state}" for change in alerts.judge(facts, now)]
            return found

        assert told(5000) == []
        assert told(0) == ["disk_full raised"]
        assert told(105) == []
        assert told(112) == ["disk_full cleared"]

    def test_a_bad_voice_says_what_is_wrong_and_a_good_one_clears_it(self) -> None:
        alerts = Alerts(rules(AlertsConfig()))
        time = "2026-11-30T12:00:00Z"
        bad = SelfCheck.model_validate({"state": "failed", "time": time, "voice": "joe", "reason": "6 dB too quiet"})
        good = bad.model_copy(update={"state": "passed", "reason": ""})
        (raised,) = alerts.judge(Facts(figures(self_check=bad)), 0.0)
        assert raised.reason == "joe: 6 dB too quiet"
        assert alerts.raised == ("self_check",)
        (cleared,) = alerts.judge(Facts(figures(self_check=good)), 1.0)
        assert (cleared.alert, cleared.state) == ("self_check", "cleared")

    def test_a_figure_that_is_gone_is_not_said_to_be_within_bounds(self) -> None:
        alerts = Alerts(rules(AlertsConfig()))
        alerts.judge(Facts(figures(memory_mb=Memory(gpu_used=99, gpu=100))), 0.0)
        assert alerts.raised == ("gpu_memory",)
        cleared = [change for now in range(100) for change in alerts.judge(Facts(figures()), float(now))]
        assert [(change.value, change.reason) for change in cleared] == [(None, "there is no such figure any more")]

    def test_what_is_switched_off_is_not_judged(self) -> None:
        config = AlertsConfig(throttling=False, card_lost=False, self_check=False, disk_refuses=False)
        assert not judged(Facts(figures(throttling=("x",), disk=Disk(refusal="full")), audio_problem="gone"), config)

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from daemon import cli
from power.simulated_board import BOARDS, SimulatedBoard
from power.simulation import Command, simulate, traffic

ORIN = BOARDS["orin-nano-super"]


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """Simulate the hot day as somebody would, once."""
    folder = tmp_path_factory.mktemp("simulated")
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", printed.append)
        assert cli.main(["simulate", "governor", "--json", "--png", str(folder / "day.png")]) == 0
    assert (folder / "day.png").read_bytes().startswith(b"\x89PNG")
    found: dict[str, dict[str, float]] = json.loads(printed[0])
    return found


class TestHotDay:
    def test_the_governor_is_never_throttled_where_always_max_is(self, figures: dict[str, dict[str, float]]) -> None:
        assert figures["governor"]["throttle_events"] == 0
        assert figures["always_max"]["throttle_events"] > 0

    def test_speech_begins_as_soon(self, figures: dict[str, dict[str, float]]) -> None:
        assert figures["governor"]["first_sound_p95_ms"] <= 1.1 * figures["always_max"]["first_sound_p95_ms"]
        assert figures["governor"]["first_sound_p50_ms"] <= 1.1 * figures["always_max"]["first_sound_p50_ms"]

    def test_it_takes_little_more_energy_than_always_low(self, figures: dict[str, dict[str, float]]) -> None:
        assert figures["governor"]["energy_j"] <= 0.65 * figures["always_max"]["energy_j"]
        assert figures["always_low"]["energy_j"] <= figures["governor"]["energy_j"]

    def test_and_stays_calm(self, figures: dict[str, dict[str, float]]) -> None:
        assert figures["governor"]["switches"] <= 24


def test_on_a_mild_day_speech_begins_as_soon_as_where_nothing_throttles() -> None:
    governor, always_max = (simulate(ORIN, strategy, sun_c=0) for strategy in ("governor", "always_max"))
    assert always_max.throttle_events == 0
    assert governor.first_sound_ms(95) <= 1.1 * always_max.first_sound_ms(95)


def test_a_day_is_the_same_for_the_same_seed() -> None:
    assert traffic(1) == traffic(1) != traffic(2)
    assert all(isinstance(command, Command) and command.audio_s > 0 for command in traffic(1))
    assert simulate(ORIN, "always_low", seed=3).figures() == simulate(ORIN, "always_low", seed=3).figures()


class TestBoard:
    def test_in_the_long_run_it_is_as_warm_as_its_power_makes_it(self) -> None:
        board = SimulatedBoard(ORIN, air_c=20, capped=True)
        for _ in range(7200):
            board.advance(2, busy=False)
        assert board.die_c == pytest.approx(20 + 5.2 * (3.0 + 0.6), abs=0.1)
        assert board.energy_j == pytest.approx(5.2 * 2 * 7200, rel=0.01)

    def test_the_kernel_throttles_once_each_time(self) -> None:
        board = SimulatedBoard(ORIN, air_c=64)
        speeds = []
        for _ in range(3600):
            board.advance(2, busy=False)
            speeds.append(board.speed)
        falls = sum(one > other for one, other in itertools.pairwise(speeds))
        assert board.throttle_events == falls > 1
        assert ORIN.throttle_c <= board.hottest_c < ORIN.critical_c

    def test_slower_clocks_draw_less(self) -> None:
        board = SimulatedBoard(ORIN, air_c=20)
        full = board.power_w(busy=True), board.power_w(busy=False)
        board.capped = True
        assert full > (board.power_w(busy=True), board.power_w(busy=False))


def test_without_matplotlib_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert cli.main(["simulate", "governor", "--png", str(tmp_path / "x.png")]) == 1
    assert "pip install" in capsys.readouterr().err


@pytest.mark.parametrize("sun", ["nan", "inf", "-1", "much"])
def test_a_sun_that_is_none_is_told(sun: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["simulate", "governor", f"--sun={sun}"])
    assert f"{sun} is not from 0" in capsys.readouterr().err

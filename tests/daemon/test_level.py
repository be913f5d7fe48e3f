"""How loud it is: the curve, the night, the card's own control."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import alsaaudio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulators.player_bench import TIMEOUT_S, Bench, Heard, ends, play_ones
from simulators.pulse import PulseServer
from simulators.waiting import wait_until

import device.alsa_library
from daemon.audio_wishes import level_of
from daemon.config import Config
from daemon.inbox import PlaybackStarted
from daemon.job import Job
from daemon.level import Level, Night, gain_of
from device.alsa_library import Trial
from device.errors import MixerError
from device.format import RATE
from device.mixer import Mixer

VOLUMES = st.floats(0, 2)


class TestCurve:
    def test_has_exact_ends_and_the_voice_in_the_middle(self) -> None:
        assert [gain_of(volume) for volume in (0, 1, 2)] == [0, 1, 2]

    def test_half_the_volume_is_half_as_loud(self) -> None:
        for volume in (1.0, 0.5, 0.2):
            assert 20 * math.log10(gain_of(volume / 2) / gain_of(volume)) == pytest.approx(-10)

    def test_above_the_voice_each_step_adds_as_much(self) -> None:
        steps = [20 * math.log10(gain_of(1 + step / 10)) for step in range(11)]
        added = [later - earlier for earlier, later in itertools.pairwise(steps)]
        assert added == pytest.approx([0.602] * 10, abs=0.001)

    @given(VOLUMES, VOLUMES)
    def test_more_is_never_quieter(self, one: float, other: float) -> None:
        less, more = sorted([one, other])
        assert 0 <= gain_of(less) <= gain_of(more) <= 2


def at(hour: int, minute: int = 0) -> time.struct_time:
    return time.struct_time((2026, 3, 29, hour, minute, 0, 6, 88, -1))


class TestNight:
    @pytest.mark.parametrize(
        ("hour", "minute", "limit"),
        [
            (21, 59, math.inf),
            (22, 0, 0.4),
            (23, 59, 0.4),
            (0, 0, 0.4),
            (6, 59, 0.4),
            (7, 0, math.inf),
            (12, 0, math.inf),
        ],
    )
    def test_may_go_over_midnight(self, hour: int, minute: int, limit: float) -> None:
        assert Night(22 * 60, 7 * 60, 0.4).limit(at(hour, minute)) == limit

    @given(st.integers(0, 1439), st.integers(0, 1439), st.integers(0, 1439))
    def test_lasts_as_long_as_it_says_from_where_it_says(self, start: int, end: int, now: int) -> None:
        night = Night(start, end, 0.4).limit(at(now // 60, now % 60)) == 0.4
        assert night == ((now - start) % 1440 < (end - start) % 1440)

    def test_limits_what_is_set_and_lets_go_in_the_morning(self) -> None:
        clock = [at(23)]
        level = Level(night=Night(22 * 60, 7 * 60, 0.4), localtime=lambda: clock[0])
        level.set(1.5)
        level.settle()
        assert level.gain == gain_of(0.4)
        level.set(0.2)
        level.settle()
        assert level.gain == gain_of(0.2), "what is quieter stays"
        level.set(1.5)
        clock[0] = at(7)
        level.settle()
        assert level.gain == gain_of(1.5)

    def test_a_clock_that_is_set_is_followed_with_the_next_words(self) -> None:
        clock = [at(3)]
        level = Level(night=Night(22 * 60, 7 * 60, 0), localtime=lambda: clock[0])
        level.settle()
        assert level.gain == 0
        clock[0] = at(12)  # the network has told the time
        level.settle()
        assert level.gain == 1
        clock[0] = at(22, 30)
        level.settle()
        assert level.gain == 0

    def test_is_made_of_the_configuration(self) -> None:
        for night, gain in (("11:00-13:00", gain_of(0.25)), ("", 1.0)):
            level = level_of(Config.model_validate({"audio": {"night": night, "night_volume": 0.25}}))
            level._localtime = lambda: at(12)
            level.settle()
            assert level.gain == gain


class Control:
    """`alsaaudio.Mixer` of a card with dB, which needs a card."""

    def __init__(self, card: Any, control: str, device: str) -> None:  # noqa: ANN401
        self.card = card
        card.asked.append((control, device))
        if control not in card.found:
            raise alsaaudio.ALSAAudioError(f"Unable to find mixer control {control},0 [{device}]")

    def volumecap(self) -> list[str]:
        return ["Playback Volume"]

    def switchcap(self) -> list[str]:
        return ["Playback Mute"]

    def getrange(self, _kind: int, _units: int) -> list[int]:
        return list(self.card.range)

    def setmute(self, mute: int) -> None:
        self.card.mute = mute

    def setvolume(self, value: int, _channel: int, _kind: int, units: int) -> None:
        self.card.value = (value, units)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    card = SimpleNamespace(range=[-6400, 0], asked=[], mute=None, value=None, found=["Speaker", "Mic"])
    names = ("ALSAAudioError", "PCM_PLAYBACK", "MIXER_CHANNEL_ALL", "VOLUME_UNITS_DB", "VOLUME_UNITS_PERCENTAGE")
    binding = SimpleNamespace(
        **{name: getattr(alsaaudio, name) for name in names},
        mixers=lambda device: card.found,
        Mixer=lambda control, device: Control(card, control, device),
        cards=lambda: ["PCH", "Device"],
        card_indexes=lambda: [0, 3],
    )
    monkeypatch.setitem(sys.modules, "alsaaudio", binding)
    monkeypatch.setattr(Trial, "open", lambda trial, name: 0)
    return card


class TestMixer:
    def test_takes_what_it_can_and_leaves_the_rest_to_us(self, card: SimpleNamespace) -> None:
        level = Level(Mixer("Speaker", "plughw:CARD=Device"))
        for volume, gain, decibel in ((1.0, 1.0, 0), (0.5, 1.0, -1000), (2.0, 2.0, 0), (0.0, 0.0, -6400)):
            level.set(volume)
            level.settle()
            assert (level.gain, card.value) == (gain, (decibel, alsaaudio.VOLUME_UNITS_DB))
            assert card.mute == (volume == 0)
        assert set(card.asked) == {("Speaker", "hw:CARD=Device")}

    def test_muted_is_silent_in_both(self, card: SimpleNamespace) -> None:
        level = Level(Mixer("Speaker", "default"))
        level.set(1.0, muted=True)
        level.settle()
        assert (level.gain, card.mute) == (0, 1)
        assert card.asked == [("Speaker", "default")]

    @pytest.mark.parametrize("gibberish", [[-367864208, -367995216], [0, 0], [5, 140655516109056]])
    def test_a_control_that_knows_no_decibel_is_set_in_its_own_steps(
        self, card: SimpleNamespace, gibberish: list[int]
    ) -> None:
        card.range = gibberish
        Mixer("Speaker", "hw:3").set(0.5, gain_of(0.5))
        assert card.value == (50, alsaaudio.VOLUME_UNITS_PERCENTAGE)
        assert card.asked == [("Speaker", "hw:CARD=Device")], "found by the card's id"

    def test_one_above_0_db_stays_at_0_db(self, card: SimpleNamespace) -> None:
        card.range = [-6400, 1200]
        Mixer("Speaker", "default").set(1.0, 1.0)
        assert card.value[0] == 0

    def test_a_control_that_is_not_there_is_told_once_with_those_there_are(
        self, card: SimpleNamespace, caplog: pytest.LogCaptureFixture
    ) -> None:
        level = Level(Mixer("Master", "default"))
        for volume in (0.5, 0.6, 1.7):
            level.set(volume)
            level.settle()
            assert level.gain == gain_of(volume), "in software then"
        (message,) = caplog.messages
        assert "mixer Master: the card has no such control (audio.mixer may be Mic, Speaker)" in message
        card.found = ["Master"]
        level.settle()
        assert level.gain == gain_of(1.7)
        assert card.value[0] == 0

    @pytest.fixture
    def server(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[PulseServer]:
        with PulseServer() as server:
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            yield server

    def test_a_real_one_does_as_it_is_told(self, server: PulseServer) -> None:
        def told(what: str) -> str:
            command = [server.find("pactl"), what, server.SINK]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, env={**os.environ, **server.environment}
            )
            return done.stdout

        mixer = Mixer("Master", "default")
        mixer.set(0.3, gain_of(0.3))
        assert "30%" in told("get-sink-volume")
        assert "no" in told("get-sink-mute")
        mixer.set(0.0, 0.0)
        assert "yes" in told("get-sink-mute")
        mixer.set(1.0, 1.0)
        assert "100%" in told("get-sink-volume")
        assert "no" in told("get-sink-mute")
        with pytest.raises(MixerError, match=r"may be Capture, Master"):
            Mixer("Speaker", "default").set(1.0, 1.0)

    @pytest.mark.parametrize("name", ["hw:CARD=Gone", "plughw:31"])
    def test_a_card_that_is_not_there_has_no_control(self, name: str) -> None:
        with pytest.raises(MixerError, match=r"mixer Master: hw:CARD=.* cannot be opened: No such"):
            Mixer("Master", name).set(1.0, 1.0)

    def test_a_server_that_hangs_stops_nobody(self, server: PulseServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(device.alsa_library, "TRIAL_S", 0.5)
        mixer = Mixer("Master", "default")
        level = Level(mixer)
        level.set(0.5)
        assert server._process is not None
        # Another process, as this one does nothing any more where the interpreter's lock is held until an answer comes.
        thaw = f"import os, time; time.sleep(20); os.kill({server._process.pid}, {signal.SIGCONT.value})"
        late = subprocess.Popen([sys.executable, "-c", thaw])
        server.freeze()
        level.settle()
        assert late.poll() is None, "it waited for the server"
        assert level.gain == gain_of(0.5), "in software then"
        late.kill()
        late.wait()
        server.thaw()
        wait_until(lambda: mixer._trial.open("default") == 0, "the server stays silent")
        level.settle()
        assert level.gain == 1


class SlowCard:
    """A `Mixer` whose card is as slow as it is told."""

    def __init__(self) -> None:
        self.volumes: list[float] = []
        self.asked = threading.Event()
        self.answers = threading.Event()

    def set(self, volume: float, gain: float) -> None:
        self.volumes.append(volume)
        if len(self.volumes) > 1:
            self.asked.set()
            assert self.answers.wait(TIMEOUT_S)


def test_a_step_in_the_middle_of_speech_waits_for_no_card() -> None:
    card, heard = SlowCard(), Heard(paced=False)
    bench = Bench(heard, level=Level(card))  # type: ignore[arg-type]
    bench.player.start()
    chunk = bench.chunk(RATE // 2)
    chunk.samples[:] = 0.25
    bench.player.play(Job("a"), chunk)
    while not isinstance(bench.posted.get(timeout=TIMEOUT_S), PlaybackStarted):
        pass
    bench.player.set_volume(0.5)  # comes in mid-speech, while more of it is awaited
    assert card.asked.wait(TIMEOUT_S)
    bench.player.set_volume(0.7)
    play_ones(bench, Job("a"), RATE // 2)
    assert ends(bench.until_end()).audio_s == 1, "it was said to its end"
    card.answers.set()
    wait_until(lambda: card.volumes[-1] == 0.7, "the last one is lost")
    bench.stop()
    assert (heard.body[:RATE] == 1).all(), "the card has the volume, not the samples"

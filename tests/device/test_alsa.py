"""What `device.alsa` makes of the binding's answers, and of devices that are not as they should be.

The stand-in answers what a sound card cannot be made to answer. That sound really comes out is in
tests/contract/test_sink.py.
"""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import alsaaudio
import numpy as np
import pytest
from numpy.typing import NDArray
from simulators.pulse import PulseServer

import device.alsa
import device.alsa_library
from device.alsa import HALF_PERIOD, NO_PROGRESS_LIMIT, PERIODS, AlsaSink
from device.alsa_layout import Layout
from device.alsa_library import Trial
from device.alsa_names import by_id, card_of, place_of
from device.errors import SinkError
from device.format import PERIOD, RATE

CONSTANTS = (
    "PCM_PLAYBACK",
    "PCM_NORMAL",
    "PCM_FORMAT_FLOAT_LE",
    "PCM_FORMAT_S32_LE",
    "PCM_FORMAT_S16_LE",
    "PCM_STATE_XRUN",
    "PCM_STATE_RUNNING",
    "PCM_STATE_DISCONNECTED",
)
FORMS = {"FLOAT_LE": "<f4", "S32_LE": "<i4", "S16_LE": "<i2"}
EPIPE = -errno.EPIPE


class RecordingPCM:
    """`alsaaudio.PCM` with answers prepared beforehand. Without one, `write` takes everything."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        self.settings = settings
        self.answers: list[Any] = []
        self.default: Any = None
        self.states: list[int] = []
        self.drain_errors: list[Exception] = []
        self.addresses: list[int] = []
        self.offered: list[int] = []
        self.taken: list[NDArray[Any]] = []
        self.calls: list[str] = []
        self.hang: threading.Event | None = None
        self.room = settings["periodsize"] * settings["periods"]
        self.form = next(form for form in FORMS if getattr(alsaaudio, f"PCM_FORMAT_{form}") == settings["format"])
        self.dtype = np.dtype(FORMS[self.form])
        self.takes: dict[str, Any] = {}
        self.accepted: dict[str, Any] = {
            "rate": settings["rate"],
            "channels": settings["channels"],
            "format_name": self.form,
            "period_size": settings["periodsize"],
            "buffer_size": settings["periodsize"] * settings["periods"],
        }

    def info(self) -> dict[str, Any]:
        return self.accepted

    def state(self) -> int:
        state: int = self.states.pop(0) if self.states else alsaaudio.PCM_STATE_RUNNING
        return state

    def write(self, data: memoryview) -> Any:  # noqa: ANN401
        self.calls.append("write")
        frames = np.frombuffer(data, self.dtype)
        if self.settings["channels"] > 1:
            frames = frames.reshape(-1, self.settings["channels"])
        self.addresses.append(frames.ctypes.data)
        self.offered.append(len(frames))
        answer = self.answers.pop(0) if self.answers else self.default
        if answer is None:
            answer = len(frames)
        if isinstance(answer, Exception):
            raise answer
        if answer == "none":
            return None
        if answer > 0:
            self.taken.append(frames[:answer].copy())
        return answer

    def getformats(self) -> dict[str, int]:
        return dict.fromkeys(self.takes["forms"], 0)

    def getratebounds(self) -> tuple[int, int]:
        rates: list[int] = self.takes["rates"]
        return min(rates), max(rates)

    def avail(self) -> int:
        return self.room

    def drain(self) -> None:
        self.calls.append("drain")
        if self.hang is not None:
            self.hang.wait(30)
        if self.drain_errors:
            raise self.drain_errors.pop(0)

    def drop(self) -> int:
        self.calls.append("drop")
        return 0

    def close(self) -> None:
        self.calls.append("close")


class Binding(SimpleNamespace):
    """The module `alsaaudio` with the stand-in for PCM. `pcms` are the devices opened; `accepts` overrides info."""

    def __init__(self) -> None:
        super().__init__(
            ALSAAudioError=alsaaudio.ALSAAudioError, **{name: getattr(alsaaudio, name) for name in CONSTANTS}
        )
        self.pcms: list[RecordingPCM] = []
        self.accepts: dict[str, Any] = {}
        self.takes: dict[str, Any] = {"forms": ["FLOAT_LE", "S8"], "channels": [1], "rates": [48_000]}
        self.names: dict[int, str] = {}

    def PCM(self, **settings: Any) -> RecordingPCM:  # noqa: ANN401, N802
        pcm = RecordingPCM(**settings)
        pcm.takes = self.takes
        if not self._takes(pcm):
            pcm.accepted |= {"rate": 8000, "channels": 1, "format_name": "S8"}
        pcm.accepted |= self.accepts
        self.pcms.append(pcm)
        return pcm

    def cards(self) -> list[str]:
        return list(self.names.values())

    def card_indexes(self) -> list[int]:
        return list(self.names)

    def _takes(self, pcm: RecordingPCM) -> bool:
        fits = pcm.settings["rate"] in self.takes["rates"], pcm.settings["channels"] in self.takes["channels"]
        return all(fits) and pcm.form in self.takes["forms"]


@pytest.fixture
def binding(monkeypatch: pytest.MonkeyPatch) -> Binding:
    binding = Binding()
    monkeypatch.setitem(sys.modules, "alsaaudio", binding)
    monkeypatch.setattr(Trial, "open", lambda trial, name: 0)
    return binding


@pytest.fixture
def sink(binding: Binding) -> AlsaSink:
    sink = AlsaSink("default")
    sink.open()
    assert len(binding.pcms) == 1
    return sink


@pytest.fixture
def pcm(binding: Binding, sink: AlsaSink) -> RecordingPCM:
    assert sink.description
    return binding.pcms[0]


def played(sink: AlsaSink, samples: NDArray[np.float32], agreed: str) -> None:
    """Play it in uneven pieces, and see what the device agreed to."""
    sink.open()
    assert agreed in sink.description
    for piece in np.split(samples, [1, 700, 961]):
        sink.write(piece)
    sink.drain()
    sink.close()


def noise(frames: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).uniform(-1, 1, frames).astype(np.float32)


class TestStandIn:
    def test_has_no_method_that_the_binding_lacks(self) -> None:
        ours = {name for name in vars(RecordingPCM) if not name.startswith("_")}
        assert ours <= set(dir(alsaaudio.PCM))

    def test_is_opened_as_the_binding_can_be_and_is_told_the_same(self, pcm: RecordingPCM) -> None:
        assert hasattr(alsaaudio, "cards")
        assert hasattr(alsaaudio, "card_indexes")
        real = alsaaudio.PCM(**(pcm.settings | {"device": "null"}))
        assert pcm.accepted.items() <= real.info().items()
        assert isinstance(real.state(), int)
        assert real.write(noise(100).data) == 100
        real.close()


class TestWrite:
    @pytest.mark.parametrize(
        ("answers", "underruns"),
        [
            ([], 0),
            ([1, 959, 40], 0),
            ([0, 0], 0),
            (["none"], 0),
            ([EPIPE], 1),
            ([EPIPE, EPIPE], 1),
            ([500, EPIPE, 100, EPIPE], 2),
            ([0, 300, "none", EPIPE, 0, 1], 1),
        ],
    )
    def test_every_frame_is_taken_once_and_in_order(
        self, sink: AlsaSink, pcm: RecordingPCM, answers: list[Any], underruns: int
    ) -> None:
        samples = noise(2000)
        pcm.answers = answers
        sink.write(samples)
        np.testing.assert_array_equal(np.concatenate(pcm.taken), samples)
        assert sink.underruns == underruns
        assert not pcm.answers

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (-errno.ENODEV, "No such device"),
            (alsaaudio.ALSAAudioError("No such device [default]"), "No such device"),
            (SystemError("returned NULL without setting an exception"), "NULL"),
        ],
    )
    def test_a_device_that_is_gone_is_an_error(
        self, sink: AlsaSink, pcm: RecordingPCM, answer: object, reason: str
    ) -> None:
        pcm.answers = [100, answer]
        with pytest.raises(SinkError, match=f"alsa default.*{reason}"):
            sink.write(noise(2000))
        assert len(pcm.calls) == 2

    @pytest.mark.parametrize("answer", [0, EPIPE, "none"])
    def test_a_device_that_never_takes_anything_is_an_error(
        self, sink: AlsaSink, pcm: RecordingPCM, answer: object
    ) -> None:
        pcm.default = answer
        began = time.monotonic()
        with pytest.raises(SinkError, match="took no frames"):
            sink.write(noise(2000))
        assert time.monotonic() - began < 30
        assert len(pcm.calls) == NO_PROGRESS_LIMIT + 1

    def test_slow_progress_is_no_error(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        pcm.answers = [EPIPE, 1] * (2 * NO_PROGRESS_LIMIT)
        sink.write(noise(2000))
        assert len(np.concatenate(pcm.taken)) == 2000

    def test_the_device_reads_the_given_memory(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        samples = noise(2000)[40:]
        pcm.answers = [700, EPIPE, 60]
        sink.write(samples)
        start = samples.ctypes.data
        assert pcm.addresses == [start, start + 4 * 700, start + 4 * 700, start + 4 * 760]
        assert pcm.offered == [1960, 1260, 1260, 1200]

    @pytest.mark.parametrize("samples", [noise(20)[::2], noise(20).astype(np.float64), noise(20).reshape(10, 2)])
    def test_memory_that_the_device_would_misread_is_refused(
        self,
        sink: AlsaSink,
        pcm: RecordingPCM,
        samples: Any,  # noqa: ANN401
    ) -> None:
        with pytest.raises(SinkError, match="mono float32"):
            sink.write(samples)
        assert not pcm.calls


class TestPending:
    def test_is_what_the_buffer_holds(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        assert sink.pending == 0
        pcm.room -= 700
        assert sink.pending == 700

    @pytest.mark.parametrize("room", [EPIPE, -errno.ENODEV, 10**6])
    def test_is_nothing_where_the_device_does_not_say(self, sink: AlsaSink, pcm: RecordingPCM, room: int) -> None:
        pcm.room = room
        assert sink.pending == 0


class TestDrain:
    def test_fills_the_last_period_with_silence(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        sink.write(noise(1000))
        sink.write(noise(30))
        sink.drain()
        assert pcm.offered == [1000, 30, 3 * HALF_PERIOD - 1030]
        assert not pcm.taken[-1].any()
        assert pcm.calls[-1] == "drain"

    def test_leaves_whole_periods_alone(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        sink.write(noise(3 * PERIOD))
        sink.drain()
        assert pcm.calls == ["write", "drain"]

    def test_running_dry_before_the_drain_is_no_underrun(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        sink.write(noise(PERIOD))
        pcm.states = [alsaaudio.PCM_STATE_XRUN]
        pcm.answers = [EPIPE]
        sink.drain()
        assert sink.underruns == 0
        assert pcm.offered == [PERIOD, HALF_PERIOD, HALF_PERIOD]
        assert pcm.calls == ["write", "write", "write", "drain"]

    def test_running_dry_during_the_drain_is_recovered_from(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        sink.write(noise(PERIOD))
        pcm.states = [alsaaudio.PCM_STATE_RUNNING, alsaaudio.PCM_STATE_XRUN, alsaaudio.PCM_STATE_XRUN]
        pcm.drain_errors = [alsaaudio.ALSAAudioError("Broken pipe [default]")]
        sink.drain()
        assert pcm.calls == ["write", "drain", "write", "drain"]

    def test_a_device_that_fails_is_an_error(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        sink.write(noise(PERIOD))
        pcm.drain_errors = [alsaaudio.ALSAAudioError("No such device [default]")]
        with pytest.raises(SinkError, match="cannot finish playing: No such device"):
            sink.drain()

    @pytest.mark.parametrize("how", ["drain", "close"])
    def test_a_device_that_never_finishes_is_given_up(
        self, binding: Binding, sink: AlsaSink, pcm: RecordingPCM, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        monkeypatch.setattr(device.alsa, "DRAIN_MARGIN_S", 0.2)
        monkeypatch.setattr(pcm, "close", pcm.drain)  # the binding's close drains too
        pcm.hang = threading.Event()
        sink.write(noise(PERIOD))
        began = time.monotonic()
        if how == "drain":
            with pytest.raises(SinkError, match=r"did not finish playing within 0\.3 s"):
                sink.drain()
            with pytest.raises(SinkError, match="not open"):
                sink.write(noise(1))
        sink.close()
        assert time.monotonic() - began < 20
        sink.open()
        sink.write(noise(1))
        assert len(binding.pcms) == 2
        pcm.hang.set()

    def test_drop_is_for_drop_alone(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        sink.write(noise(100))
        sink.drain()
        sink.close()
        assert "drop" not in pcm.calls


class TestOpen:
    @pytest.mark.parametrize(
        "takes",
        [
            {"forms": ["S8", "DSD_U8"], "channels": [1], "rates": [48_000]},
            {"forms": ["FLOAT_LE"], "channels": [16], "rates": [48_000]},
            {"forms": ["FLOAT_LE"], "channels": [1], "rates": [5_512]},
        ],
    )
    def test_a_device_that_agrees_to_nothing_that_we_can_make_is_refused(
        self, binding: Binding, takes: dict[str, Any]
    ) -> None:
        binding.takes = takes
        sink = AlsaSink("hw:CARD=Device")
        with pytest.raises(SinkError) as caught:
            sink.open()
        for part in ("hw:CARD=Device", "insists on 8000 Hz, S8", "plughw:CARD=...", "default"):
            assert part in str(caught.value)
        assert binding.pcms
        assert all(pcm.calls == ["close"] for pcm in binding.pcms), "each is closed again"
        with pytest.raises(SinkError, match="not open"):
            sink.write(noise(1))

    def test_other_periods_than_asked_for_are_fine(self, binding: Binding) -> None:
        binding.accepts = {"period_size": 1024, "buffer_size": 4096}
        sink = AlsaSink()
        sink.open()
        assert sink.description == "alsa default (48000 Hz, float32, mono, 4096 frames in periods of 1024)"
        sink.write(noise(1000))
        sink.drain()
        assert binding.pcms[0].offered == [1000, 24]

    def test_asks_for_what_the_house_speaks(self, pcm: RecordingPCM) -> None:
        assert pcm.settings == {
            "type": alsaaudio.PCM_PLAYBACK,
            "mode": alsaaudio.PCM_NORMAL,
            "device": "default",
            "rate": RATE,
            "channels": 1,
            "format": alsaaudio.PCM_FORMAT_FLOAT_LE,
            "periodsize": HALF_PERIOD,
            "periods": PERIODS,
        }

    def test_needs_no_binding_until_opened(self) -> None:
        code = (
            "import sys; sys.modules['alsaaudio'] = None\n"
            "import device.alsa\n"
            "try: device.alsa.AlsaSink().open()\n"
            "except device.alsa.SinkError as error: print(error)"
        )
        root = Path(device.alsa.__file__).parents[1]
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root, timeout=30
        )
        assert "install pyalsaaudio" in done.stdout


class TestLayouts:
    @pytest.mark.parametrize(
        ("takes", "agreed"),
        [
            ({"forms": ["S16_LE", "S32_LE"], "channels": [2], "rates": [44_100, 48_000]}, Layout(48_000, 2, "S32_LE")),
            ({"forms": ["S16_LE"], "channels": [2, 6, 8], "rates": [44_100]}, Layout(44_100, 2, "S16_LE")),
            ({"forms": ["FLOAT_LE"], "channels": [1, 2], "rates": [8_000, 22_050]}, Layout(22_050, 1, "FLOAT_LE")),
            ({"forms": ["S16_LE", "S8"], "channels": [8], "rates": [96_000]}, Layout(96_000, 8, "S16_LE")),
        ],
    )
    def test_a_card_gets_what_it_takes_and_plays_the_same_sound(
        self, binding: Binding, takes: dict[str, Any], agreed: Layout
    ) -> None:
        binding.takes = takes
        tone = (0.5 * np.sin(2 * np.pi * 1000 * np.arange(RATE // 2) / RATE)).astype(np.float32)
        sink = AlsaSink("hw:CARD=Device")
        played(sink, tone, str(agreed))
        pcm = binding.pcms[-1]
        assert pcm.settings["periodsize"] == agreed.rate // 100
        heard = np.concatenate(pcm.taken).reshape(-1, agreed.channels)
        assert len(heard) % pcm.settings["periodsize"] == 0, "the last period is whole"
        for channel in heard.T[1:]:
            np.testing.assert_array_equal(channel, heard.T[0])
        values = heard[:, 0] / (1 if agreed.form == "FLOAT_LE" else float(np.iinfo(heard.dtype).max) + 1)
        time_s = np.arange(agreed.rate // 2) / agreed.rate
        edge = agreed.rate // 100  # where a filter sees silence beside the tone
        wanted = 0.5 * np.sin(2 * np.pi * 1000 * time_s)
        np.testing.assert_allclose(values[: len(wanted)][edge:-edge], wanted[edge:-edge], rtol=0, atol=1e-3)
        assert np.abs(values[len(wanted) + edge :]).max(initial=0) < 1e-3

    @pytest.mark.parametrize("frames", [1, 10, 480])
    def test_the_shortest_sound_comes_out_at_another_rate(self, binding: Binding, frames: int) -> None:
        binding.takes = {"forms": ["S16_LE"], "channels": [2], "rates": [44_100]}
        sink = AlsaSink("hw:CARD=Device")
        sink.open()
        for _ in range(2):
            sink.write(np.full(frames, 0.5, np.float32))
            sink.drain()
            heard = np.concatenate(binding.pcms[-1].taken)[:, 0]
            assert np.abs(heard).max() > 0.2 * 2**15
            assert abs(heard.sum() / 2**14 - frames * 44_100 / RATE) < 1.5, "no more and no less of it"
            binding.pcms[-1].taken.clear()

    def test_full_scale_does_not_turn_over(self, binding: Binding) -> None:
        binding.takes = {"forms": ["S32_LE"], "channels": [1], "rates": [48_000]}
        sink = AlsaSink("hw:CARD=Device")
        sink.open()
        sink.write(np.array([1, 2, -1, -2, np.nan, 0.5], np.float32))
        taken = binding.pcms[-1].taken[0]
        np.testing.assert_array_equal(taken[[0, 1]], [2**31 - 128] * 2)
        np.testing.assert_array_equal(taken[2:], [-(2**31)] * 2 + [0, 2**30])

    def test_what_is_ahead_is_told_in_our_frames(self, binding: Binding) -> None:
        binding.takes = {"forms": ["S16_LE"], "channels": [2], "rates": [96_000]}
        sink = AlsaSink("hw:CARD=Device")
        sink.open()
        binding.pcms[-1].room -= 960
        assert sink.pending == 480
        assert sink.period == HALF_PERIOD

    def test_no_memory_is_allocated_per_piece(self, binding: Binding) -> None:
        binding.takes = {"forms": ["S16_LE"], "channels": [2], "rates": [48_000]}
        sink = AlsaSink("hw:CARD=Device")
        sink.open()
        for _ in range(3):
            sink.write(noise(2000))
        assert len(set(binding.pcms[-1].addresses)) == 1


class TestNames:
    def test_a_place_becomes_the_card_that_has_it_and_follows_it(
        self, binding: Binding, caplog: pytest.LogCaptureFixture
    ) -> None:
        binding.names = {0: "PCH", 1: "Device"}
        sink = AlsaSink("plughw:1,0")
        sink.open()
        sink.close()
        binding.names = {0: "PCH", 3: "Device", 1: "HDMI"}
        sink.open()
        assert [pcm.settings["device"] for pcm in binding.pcms] == ["plughw:CARD=Device,DEV=0"] * 2
        assert len([m for m in caplog.messages if 'write "plughw:CARD=Device,DEV=0"' in m]) == 1

    def test_a_place_without_a_card_waits_for_one(self, binding: Binding, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Trial, "open", lambda trial, name: 0 if "CARD" in name else -errno.ENODEV)
        sink = AlsaSink("hw:2")
        with pytest.raises(SinkError, match=r"No such device.*ALSA knows no card now"):
            sink.open()
        binding.names = {2: "Device"}
        sink.open()
        assert binding.pcms[0].settings["device"] == "hw:CARD=Device"

    def test_a_card_that_is_not_found_is_answered_with_those_there_are(
        self, binding: Binding, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Trial, "open", lambda trial, name: -errno.ENODEV)
        binding.names = {0: "PCH", 1: "Device"}
        with pytest.raises(SinkError, match='may be "plughw:CARD=PCH", "plughw:CARD=Device" or'):
            AlsaSink("plughw:CARD=Gone").open()

    def test_a_card_in_use_is_not_waited_for(self, binding: Binding, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Trial, "open", lambda trial, name: -errno.EBUSY)
        with pytest.raises(SinkError, match=r"it is in use.*default"):
            AlsaSink("hw:CARD=PCH").open()
        assert not binding.pcms

    @pytest.mark.parametrize(
        ("device", "place", "card"),
        [
            ("hw:1", 1, "hw:CARD=X"),
            ("plughw:0,3", 0, "plughw:CARD=X,DEV=3"),
            ("hw:2,1,0", 2, "hw:CARD=X,DEV=1,SUBDEV=0"),
            ("sysdefault:CARD=1", 1, "sysdefault:CARD=X"),
            ("plughw:CARD=1,DEV=0", 1, "plughw:CARD=X,DEV=0"),
            ("hw:CARD=PCH", None, "hw:CARD=PCH"),
            ("hw:PCH,0", None, "hw:PCH,0"),
            ("default", None, "default"),
        ],
    )
    def test_places_in_names(self, device: str, place: int | None, card: str) -> None:
        assert place_of(device) == place
        assert by_id(device, "X") == card

    @pytest.mark.parametrize(
        ("device", "card"),
        [("hw:CARD=PCH,DEV=0", "PCH"), ("plughw:1,0", "1"), ("hw:DEV=0,CARD=PCH", "PCH"), ("hw:PCH", "PCH")],
    )
    def test_cards_in_names(self, device: str, card: str) -> None:
        assert card_of(device) == card
        assert card_of("default") is None
        assert card_of("hw:DEV=0") is None


class TestCheck:
    def test_tells_of_a_card_that_was_unplugged(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        sink.check()
        pcm.states = [alsaaudio.PCM_STATE_DISCONNECTED]
        with pytest.raises(SinkError, match="unplugged"):
            sink.check()


class TestRealLibrary:
    """alsa-lib itself, with devices that its configuration makes up."""

    @pytest.fixture(autouse=True)
    def configuration(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "asound.conf").write_text(
            "</usr/share/alsa/alsa.conf>\n"
            f'pcm.tofile {{ type file slave.pcm null file "{tmp_path}/heard.raw" format raw }}\n'
            "pcm.integers { type linear slave { pcm tofile format S16_LE } }\n"
            "pcm.stereo { type multi slaves.a { pcm tofile channels 2 }\n"
            "  bindings.0 { slave a channel 0 } bindings.1 { slave a channel 1 } }\n"
            "pcm.three { type multi slaves.a { pcm tofile channels 3 }\n"
            "  bindings.0 { slave a channel 0 } bindings.1 { slave a channel 1 } bindings.2 { slave a channel 2 } }\n"
        )
        monkeypatch.setenv("ALSA_CONFIG_PATH", str(tmp_path / "asound.conf"))

    def test_a_device_of_integers_gets_integers(self, tmp_path: Path) -> None:
        samples = noise(3000)
        played(AlsaSink("integers"), samples, "S32_LE, mono")
        heard = np.fromfile(tmp_path / "heard.raw", "<i2")
        assert len(heard) == 3360, "padded to whole periods"
        np.testing.assert_allclose(heard[:3000] / 2**15, samples, rtol=0, atol=1 / 2**15)
        assert not heard[3000:].any()

    def test_a_device_of_two_channels_speaks_from_both(self, tmp_path: Path) -> None:
        samples = noise(3000)
        played(AlsaSink("stereo"), samples, "float32, 2 channels")
        heard = np.fromfile(tmp_path / "heard.raw", "<f4").reshape(-1, 2)
        np.testing.assert_array_equal(heard[:3000], np.stack([samples, samples], axis=1))
        assert not heard[3000:].any()

    def test_a_device_of_three_channels_speaks_from_all(self, tmp_path: Path) -> None:
        samples = noise(3000)
        played(AlsaSink("three"), samples, "float32, 3 channels")
        heard = np.fromfile(tmp_path / "heard.raw", "<f4").reshape(-1, 3)
        np.testing.assert_array_equal(heard[:3000], np.stack([samples] * 3, axis=1))

    @pytest.mark.parametrize("form", ["S24_3LE", "S24_LE"])
    def test_a_device_of_24_bits_gets_them(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
        wanted = Layout(48_000, 2, form)
        monkeypatch.setattr(device.alsa, "_is", lambda info, layout: layout == wanted and info["format_name"] == form)
        samples = noise(3000)
        samples[:4] = [1, -1, 2, -2]
        played(AlsaSink("tofile"), samples, f"{form}, 2 channels")
        raw = np.fromfile(tmp_path / "heard.raw", np.uint8).reshape(-1, 2, 3 if form == "S24_3LE" else 4)[..., :3]
        heard = (np.pad(raw, [(0, 0), (0, 0), (1, 0)]).view("<i4") >> 8)[..., 0]
        assert len(heard) == 3360, "padded to whole periods"
        np.testing.assert_array_equal(heard[:, 0], heard[:, 1])
        np.testing.assert_allclose(heard[:3000, 0], np.clip(samples, -1, 1) * 2.0**23, rtol=0, atol=1)
        assert not heard[3000:].any()

    def test_a_name_is_not_told_on_stderr_and_once_in_the_log(
        self, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        for _ in range(3):
            with pytest.raises(SinkError):
                AlsaSink("no_such_name").open()
        assert capfd.readouterr().err == ""
        assert [m for m in caplog.messages if "alsa-lib" in m and "no_such_name" in m] == [
            "alsa-lib: snd_pcm_open_noupdate: Unknown PCM no_such_name"
        ]

    @pytest.mark.parametrize("name", ["hw:31", "plughw:CARD=Gone", "nonsense"])
    def test_a_card_that_is_not_there_is_named_with_a_way_out(self, name: str) -> None:
        with pytest.raises(SinkError, match=rf"alsa {name}: .*--output file\.wav"):
            AlsaSink(name).open()


class TestRealServer:
    @pytest.fixture
    def server(self, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
        with PulseServer() as server:
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            yield server

    def test_running_dry_is_counted_and_nothing_is_lost(self, server: PulseServer) -> None:
        sink = AlsaSink()
        samples = noise(9600)
        with server.record() as recording:
            sink.open()
            sink.write(samples)
            threading.Event().wait(0.6)
            assert sink.underruns == 0
            sink.write(samples)
            sink.drain()
            sink.close()
        assert sink.underruns == 1
        heard = recording.samples
        for part in (samples[:2400], samples[-2400:]):
            matches = np.correlate(heard, part, "valid")
            assert (matches > 0.999 * float(part @ part)).sum() == 2

    def test_what_is_dropped_falls_silent_at_once(self, server: PulseServer) -> None:
        sink = AlsaSink()
        samples = noise(RATE // 10)
        with server.record() as recording:
            sink.open()
            sink.write(samples)
            sink.drop()
            sink.close()
        assert np.count_nonzero(recording.samples) < len(samples)

    def test_a_server_that_dies_is_an_error_and_its_successor_plays(self, server: PulseServer) -> None:
        sink = AlsaSink()
        sink.open()
        sink.write(noise(9600))
        server.stop()
        began = time.monotonic()
        with pytest.raises(SinkError, match="stopped taking frames"):
            sink.write(noise(RATE))
        sink.close()
        with pytest.raises(SinkError, match="cannot be opened"):
            sink.open()
        assert time.monotonic() - began < 30
        server.start()
        with server.record() as recording:
            sink.open()
            sink.write(noise(4800))
            sink.drain()
            sink.close()
        assert np.count_nonzero(recording.samples) == 4800

    def test_a_server_that_hangs_holds_nobody_for_ever(
        self, server: PulseServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(device.alsa, "DRAIN_MARGIN_S", 0.2)
        sink = AlsaSink()
        sink.open()
        sink.write(noise(960))
        server.freeze()
        began = time.monotonic()
        with pytest.raises(SinkError, match="did not finish playing"):
            sink.drain()
        sink.close()
        assert time.monotonic() - began < 20
        server.thaw()

    def test_a_server_that_hangs_lets_everybody_else_go_on_while_it_is_opened(
        self, server: PulseServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(device.alsa_library, "TRIAL_S", 0.5)
        sink = AlsaSink()
        server.freeze()
        ticks: list[float] = []
        done = threading.Event()

        def tick() -> None:
            while not done.wait(0.01):
                ticks.append(time.monotonic())

        others = threading.Thread(target=tick)
        others.start()
        began = time.monotonic()
        for _ in range(2):  # the second attempt waits for the first one's answer and asks nothing more
            with pytest.raises(SinkError, match="does not answer"):
                sink.open()
        took = time.monotonic() - began
        done.set()
        others.join()
        assert took < 20
        # Held, it would have been for as long as the server hangs: until somebody thaws it.
        assert max(np.diff(ticks)) < took / 2, "the interpreter was never held"
        server.thaw()
        sink.open()
        sink.write(noise(100))
        sink.close()

    def test_a_card_of_another_rate_and_two_channels_is_heard(
        self, server: PulseServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wanted = Layout(44_100, 2, "S16_LE")
        monkeypatch.setattr(device.alsa, "candidates", lambda *_: [wanted])
        monkeypatch.setattr(device.alsa, "_is", lambda info, layout: layout == wanted and info["rate"] == 44_100)
        tone = (0.3 * np.sin(2 * np.pi * 500 * np.arange(RATE // 2) / RATE)).astype(np.float32)
        with server.record() as recording:
            played(AlsaSink(), tone, "44100 Hz, S16_LE, 2 channels")
        sounding = np.flatnonzero(np.abs(recording.samples) > 0.05)
        assert sounding[-1] - sounding[0] == pytest.approx(len(tone), abs=RATE // 100), "as long as it was"
        heard = recording.samples[sounding[0] : sounding[-1]]
        crossings = np.count_nonzero(np.diff(np.signbit(heard)))
        assert crossings == pytest.approx(500, abs=4), "and as high"

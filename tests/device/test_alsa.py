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
from device.alsa import HALF_PERIOD, NO_PROGRESS_LIMIT, PERIODS, AlsaSink
from device.errors import SinkError
from device.format import PERIOD, RATE

CONSTANTS = ("PCM_PLAYBACK", "PCM_NORMAL", "PCM_FORMAT_FLOAT_LE", "PCM_STATE_XRUN", "PCM_STATE_RUNNING")
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
        self.taken: list[NDArray[np.float32]] = []
        self.calls: list[str] = []
        self.hang: threading.Event | None = None
        self.room = settings["periodsize"] * settings["periods"]
        self.accepted: dict[str, Any] = {
            "rate": settings["rate"],
            "channels": settings["channels"],
            "format_name": "FLOAT_LE",
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
        frames = np.frombuffer(data, np.float32)
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

    def PCM(self, **settings: Any) -> RecordingPCM:  # noqa: ANN401, N802
        pcm = RecordingPCM(**settings)
        pcm.accepted |= self.accepts
        self.pcms.append(pcm)
        return pcm


@pytest.fixture
def binding(monkeypatch: pytest.MonkeyPatch) -> Binding:
    binding = Binding()
    monkeypatch.setitem(sys.modules, "alsaaudio", binding)
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


def noise(frames: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).uniform(-1, 1, frames).astype(np.float32)


class TestStandIn:
    def test_has_no_method_that_the_binding_lacks(self) -> None:
        ours = {name for name in vars(RecordingPCM) if not name.startswith("_")}
        assert ours <= set(dir(alsaaudio.PCM))

    def test_is_opened_as_the_binding_can_be_and_is_told_the_same(self, pcm: RecordingPCM) -> None:
        real = alsaaudio.PCM(**(pcm.settings | {"device": "null"}))
        assert pcm.accepted.items() <= real.info().items()
        assert isinstance(real.state(), int)
        assert real.write(noise(100).data) == 100
        real.close()


class TestWrite:
    @pytest.mark.parametrize(
        ("answers", "xruns"),
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
        self, sink: AlsaSink, pcm: RecordingPCM, answers: list[Any], xruns: int
    ) -> None:
        samples = noise(2000)
        pcm.answers = answers
        sink.write(samples)
        np.testing.assert_array_equal(np.concatenate(pcm.taken), samples)
        assert sink.xruns == xruns
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
        assert time.monotonic() - began < 5
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

    def test_running_dry_before_the_drain_is_no_xrun(self, sink: AlsaSink, pcm: RecordingPCM) -> None:
        sink.write(noise(PERIOD))
        pcm.states = [alsaaudio.PCM_STATE_XRUN]
        pcm.answers = [EPIPE]
        sink.drain()
        assert sink.xruns == 0
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
        assert time.monotonic() - began < 2
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
    @pytest.mark.parametrize("accepted", [{"rate": 44_100}, {"channels": 2}, {"format_name": "S16_LE"}])
    def test_a_device_that_agreed_to_something_else_is_refused(
        self, binding: Binding, accepted: dict[str, Any]
    ) -> None:
        binding.accepts = accepted
        sink = AlsaSink("hw:CARD=Device")
        with pytest.raises(SinkError) as caught:
            sink.open()
        for part in ("hw:CARD=Device", str(*accepted.values()), "plughw:CARD=...", "default"):
            assert part in str(caught.value)
        assert binding.pcms[0].calls == ["close"]
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


class TestRealLibrary:
    """alsa-lib itself, with devices that its configuration makes up."""

    @pytest.fixture(autouse=True)
    def configuration(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "asound.conf").write_text(
            "</usr/share/alsa/alsa.conf>\n"
            "pcm.integers { type linear slave { pcm null format S16_LE } }\n"
            "pcm.stereo { type multi slaves.a { pcm null channels 2 }\n"
            "  bindings.0 { slave a channel 0 } bindings.1 { slave a channel 1 } }\n"
        )
        monkeypatch.setenv("ALSA_CONFIG_PATH", str(tmp_path / "asound.conf"))

    @pytest.mark.parametrize(("name", "differs"), [("integers", "format S8"), ("stereo", "channels 2")])
    def test_a_device_that_is_silently_something_else_is_refused(self, name: str, differs: str) -> None:
        with pytest.raises(SinkError, match=f"alsa {name}: .*{differs} instead of .*plughw"):
            AlsaSink(name).open()

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
            assert sink.xruns == 0
            sink.write(samples)
            sink.drain()
            sink.close()
        assert sink.xruns == 1
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
        assert time.monotonic() - began < 10
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
        assert time.monotonic() - began < 2
        server.thaw()

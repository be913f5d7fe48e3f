from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import opuslib_next.api
import opuslib_next.api.decoder
import pytest
from numpy.typing import NDArray

import device.opus
from device.errors import EncoderError, NoEncoderError, SinkError
from device.format import PERIOD, RATE, Samples
from device.opus import FRAME_MS, EncoderPool, OpusEncoder, OpusSettings
from device.opus_packets import Dial
from device.opus_sink import OpusSink

LENGTHS = [0, 1, RATE * 51 // 100, RATE * 33 // 10, 60 * RATE]


def tone(frames: int, hertz: float = 1000, level: float = 0.5) -> Samples:
    return (level * np.sin(2 * np.pi * hertz * np.arange(frames) / RATE)).astype(np.float32)


def run(*command: str | Path) -> str:
    program = shutil.which(str(command[0]))
    assert program is not None, f"{command[0]} is not installed: apt-get install opus-tools"
    arguments = [program, *map(str, command[1:])]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout + done.stderr


def decode(path: Path) -> NDArray[np.float32]:
    raw = path.with_suffix(".raw")
    said = run("opusdec", "--quiet", "--float", "--rate", str(RATE), path, raw)
    assert "WARN" not in said.upper()
    return np.fromfile(raw, np.float32)


def last_granule(path: Path) -> int:
    """Frames in all pages that are in the file, the pre-skip included."""
    content = path.read_bytes()
    granule: int = struct.unpack_from("<q", content, content.rindex(b"OggS") + 6)[0]
    return granule


class Decoder:
    """libopus itself, packet by packet."""

    def __init__(self) -> None:
        self._state = opuslib_next.api.decoder.create_state(RATE, 1)

    def decode(self, packet: bytes, frames: int, *, lost: bool = False) -> NDArray[np.float32]:
        pcm = opuslib_next.api.decoder.decode_float(self._state, packet, len(packet), frames, lost, 1)
        return np.frombuffer(pcm, np.float32)

    def close(self) -> None:
        opuslib_next.api.decoder.destroy(self._state)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "speech.opus"


class TestEncoder:
    @pytest.mark.parametrize("frame_ms", FRAME_MS)
    def test_a_tone_keeps_its_pitch_level_and_place(self, frame_ms: int) -> None:
        encoder, decoder = OpusEncoder(OpusSettings(frame_ms=frame_ms)), Decoder()
        assert encoder.frame == RATE * frame_ms // 1000
        samples = tone(RATE * 6 // 5)
        samples[: RATE // 5] = 0
        frames = range(0, len(samples), encoder.frame)
        packets = [bytes(encoder.encode(samples[start : start + encoder.frame])) for start in frames]
        heard = np.concatenate([decoder.decode(packet, encoder.frame) for packet in packets])[encoder.lookahead :]
        encoder.close()
        decoder.close()

        middle = heard[RATE // 2 : RATE]
        spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
        assert np.argmax(spectrum) * RATE / len(middle) == pytest.approx(1000, abs=2)
        assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.05)
        onset = int(np.flatnonzero(np.abs(heard) > 0.25)[0])
        assert onset == pytest.approx(RATE // 5, abs=RATE // 200)

    def test_libopus_reads_the_memory_that_was_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        encoder = OpusEncoder()
        library = encoder._library  # the last place before the C function
        real: Any = library.encode_float
        addresses: list[int] = []

        def recording(state: int, address: int, *rest: int) -> int:
            addresses.append(address)
            size: int = real(state, address, *rest)
            return size

        monkeypatch.setattr(library, "encode_float", recording)
        samples = tone(3 * PERIOD)
        before = samples.copy()
        encoder.encode(samples[PERIOD : 2 * PERIOD])
        assert addresses == [samples.ctypes.data + 4 * PERIOD]
        np.testing.assert_array_equal(samples, before)
        encoder.close()

    def test_the_packet_memory_is_always_the_same(self) -> None:
        encoder = OpusEncoder()

        def address(packet: memoryview) -> int:
            return ctypes.addressof(ctypes.c_char.from_buffer(packet))

        assert address(encoder.encode(tone(PERIOD))) == address(encoder.encode(tone(PERIOD, 300)))
        encoder.close()

    def test_keeps_to_the_bit_rate(self) -> None:
        rng = np.random.default_rng(2)
        for bitrate in (16_000, 64_000):
            encoder = OpusEncoder(OpusSettings(bitrate=bitrate))
            sizes = [len(encoder.encode(rng.normal(0, 0.1, PERIOD).astype(np.float32))) for _ in range(100)]
            encoder.close()
            assert sum(sizes) * 8 / 2 == pytest.approx(bitrate, rel=0.2)

    def test_silence_is_packets_too(self) -> None:
        encoder = OpusEncoder()
        sizes = [len(encoder.encode(np.zeros(PERIOD, np.float32))) for _ in range(100)]
        encoder.close()
        assert min(sizes) > 2  # DTX would give packets of one or two bytes

    @pytest.mark.parametrize("frames", [0, 320, 959, 961, 96_000])
    def test_other_lengths_are_refused_in_plain_words(self, frames: int) -> None:
        encoder = OpusEncoder()
        with pytest.raises(EncoderError, match=f"takes 960 frames at a time, not {frames}"):
            encoder.encode(tone(frames))
        encoder.close()

    @pytest.mark.parametrize("samples", [tone(1920)[::2], np.zeros(960), np.zeros((1, 960), np.float32)])
    def test_memory_that_libopus_would_misread_is_refused(self, samples: Any) -> None:  # noqa: ANN401
        encoder = OpusEncoder()
        with pytest.raises(EncoderError, match="mono float32"):
            encoder.encode(samples)
        encoder.close()

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"frame_ms": 30}, "packets of 30 ms"),
            ({"frame_ms": 5}, "packets of 5 ms"),
            ({"bitrate": 100}, "100 bit/s is out of range"),
            ({"bitrate": 600_000}, "600000 bit/s is out of range"),
            ({"complexity": 11}, "complexity 11"),
            ({"complexity": -1}, "complexity -1"),
            ({"rate": 22_050}, "22050 Hz"),
            ({"loss_percent": 101}, "101 %"),
        ],
    )
    def test_impossible_settings_are_refused(self, settings: dict[str, int], reason: str) -> None:
        with pytest.raises(EncoderError, match=reason):
            OpusSettings(**settings)

    def test_libopus_speaks_when_it_refuses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(device.opus, "COMPLEXITY", range(100))
        with pytest.raises(EncoderError, match="invalid argument"):
            OpusEncoder(OpusSettings(complexity=50))

    def test_closes_twice_and_refuses_use_then(self) -> None:
        encoder = OpusEncoder()
        encoder.close()
        encoder.close()
        with pytest.raises(EncoderError, match="closed"):
            encoder.encode(tone(960))

    def test_needs_no_library_until_made(self) -> None:
        code = (
            "import sys; sys.modules['opuslib_next'] = None\n"
            "import device.opus\n"
            "try: device.opus.OpusEncoder()\n"
            "except device.opus.EncoderError as error: print(error)"
        )
        root = Path(device.opus.__file__).parents[1]
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root, timeout=30
        )
        assert "install opuslib-next" in done.stdout

    def test_leaves_opuslibs_own_functions_as_they_are(self) -> None:
        shared = opuslib_next.api.libopus.opus_encode_float
        before = shared.argtypes
        OpusEncoder().close()
        assert shared.argtypes is before


class TestSink:
    @pytest.mark.parametrize("frame_ms", FRAME_MS)
    @pytest.mark.parametrize("frames", LENGTHS)
    def test_decodes_to_the_length_written_to_the_sample(self, path: Path, frames: int, frame_ms: int) -> None:
        sink = OpusSink(path, OpusSettings(frame_ms=frame_ms, complexity=0))
        sink.open()
        rng = np.random.default_rng(frame_ms)
        samples = tone(frames)
        written = 0
        while written < frames:
            end = written + int(rng.integers(1, RATE // 4))
            sink.write(samples[written:end])
            if rng.random() < 0.2:
                sink.drain()
            written = end
        sink.close()
        assert len(decode(path)) == frames
        report = run("opusinfo", path)
        assert "WARNING" not in report
        assert "EOS" not in report
        minutes, seconds = report.split("Playback length: ")[1].split("s\n")[0].split("m:")
        assert 60 * int(minutes) + float(seconds) == pytest.approx(frames / RATE, abs=0.0011)  # it cuts digits off

    def test_whole_packets_are_encoded_where_they_lie(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        addresses: list[int] = []
        real = OpusEncoder.encode

        def recording(self: OpusEncoder, samples: Samples) -> memoryview:
            addresses.append(samples.ctypes.data)
            return real(self, samples)

        monkeypatch.setattr(OpusEncoder, "encode", recording)
        sink = OpusSink(path)
        sink.open()
        samples = tone(4 * PERIOD + 100)
        sink.write(samples)
        start = samples.ctypes.data
        assert addresses == [start + 4 * PERIOD * number for number in range(4)]
        addresses.clear()
        sink.write(samples)  # 100 frames are carried: one packet through the carry, then in place again
        assert addresses[1:] == [start + 4 * (PERIOD - 100 + PERIOD * number) for number in range(3)]
        assert not start <= addresses[0] < start + samples.nbytes
        sink.close()

    def test_silence_that_is_hardly_encoded_keeps_its_time(self, path: Path) -> None:
        sink = OpusSink(path, OpusSettings(dtx=True))
        sink.open()
        samples = np.concatenate([tone(RATE), np.zeros(3 * RATE, np.float32), tone(RATE)])
        sink.write(samples)
        sink.close()
        assert len(decode(path)) == samples.size
        assert "WARNING" not in run("opusinfo", path)
        always = path.with_name("always.opus")
        other = OpusSink(always)
        other.open()
        other.write(samples)
        other.close()
        assert path.stat().st_size < 0.8 * always.stat().st_size, "silence was encoded all the same"
        heard = decode(path)
        assert np.abs(heard[int(4.1 * RATE) : int(4.9 * RATE)]).max() > 0.1, "the second tone is not in its place"
        assert np.abs(heard[int(1.2 * RATE) : int(3.9 * RATE)]).max() < 0.01

    def test_who_reads_the_growing_file_is_less_than_a_second_behind(self, path: Path) -> None:
        sink = OpusSink(path)
        sink.open()
        for number in range(1, 200):
            sink.write(tone(PERIOD))
            assert number * PERIOD - last_granule(path) < RATE * 0.6
        sink.drain()
        assert last_granule(path) == 199 * PERIOD
        assert 199 * PERIOD - PERIOD <= len(decode(path)) <= 199 * PERIOD
        sink.close()

    def test_the_last_packet_is_padded_with_silence(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        packets: list[Samples] = []
        real = OpusEncoder.encode

        def recording(self: OpusEncoder, samples: Samples) -> memoryview:
            packets.append(samples.copy())
            return real(self, samples)

        monkeypatch.setattr(OpusEncoder, "encode", recording)
        sink = OpusSink(path)
        sink.open()
        loud = np.ones(900, np.float32)
        sink.write(loud)
        sink.write(loud)  # the carry was full once, and now holds 840 frames
        sink.close()
        assert [np.count_nonzero(packet) for packet in packets] == [960, 840, 0]
        assert len(decode(path)) == 1800

    def test_a_drop_forgets_what_fills_no_packet_yet(self, path: Path) -> None:
        sink = OpusSink(path)
        sink.open()
        sink.write(tone(PERIOD + 500))
        sink.drop()
        sink.write(tone(300))
        sink.close()
        assert len(decode(path)) == PERIOD + 300

    def test_a_file_that_cannot_be_is_refused_with_advice(self, tmp_path: Path) -> None:
        with pytest.raises(SinkError, match="mkdir -p"):
            OpusSink(tmp_path / "missing" / "speech.opus").open()

    def test_a_full_disk_is_an_error_and_can_be_closed(self) -> None:
        sink = OpusSink("/dev/full")
        for _ in range(2):
            with pytest.raises(SinkError, match="No space left"):
                sink.open()
        sink.close()

    def test_without_an_encoder_nothing_is_touched(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "opuslib_next.api", None)
        with pytest.raises(NoEncoderError, match="install opuslib-next"):
            OpusSink(path).open()
        assert not path.exists()

    def test_for_a_listener_at_24_khz_nothing_above_12_khz_is_sent(self, path: Path) -> None:
        noise = np.random.default_rng(1).normal(0, 0.1, RATE).astype(np.float32)
        above = {}
        for rate in (24_000, 48_000):
            sink = OpusSink(path, OpusSettings(rate=rate, bitrate=128_000))
            sink.open()
            sink.write(noise)
            sink.close()
            assert re.search(rf"sample rate: {rate} ?Hz", run("opusinfo", path))
            heard = decode(path)
            assert len(heard) == RATE
            spectrum = np.abs(np.fft.rfft(heard)) ** 2
            above[rate] = spectrum[13_000:].sum() / spectrum.sum()
        assert above[24_000] < 0.01 < above[48_000]

    def test_what_the_dial_says_is_done_from_the_next_packet_on(self, path: Path) -> None:
        dial = Dial(OpusSettings(bitrate=64_000, frame_ms=20))
        sink = OpusSink(path, dial)
        sink.open()
        samples = np.random.default_rng(1).normal(0, 0.1, 4 * RATE + 77).astype(np.float32)
        sink.write(samples[: 2 * RATE + 10])
        sink.drain()
        before = path.stat().st_size
        dial.settings = OpusSettings(bitrate=16_000, frame_ms=60)
        sink.write(samples[2 * RATE + 10 :])
        sink.close()
        assert (path.stat().st_size - before) < before / 2
        assert len(decode(path)) == samples.size
        assert "WARNING" not in run("opusinfo", path)


class TestPool:
    def test_one_encoder_serves_a_thousand_streams(self, tmp_path: Path) -> None:
        pool = EncoderPool()
        for number in range(1000):
            sink = OpusSink(tmp_path / "x.opus", OpusSettings(complexity=0), encoders=pool)
            sink.open()
            sink.write(tone(1 + number * 37 % 2000))
            sink.close()
        assert pool.made == 1
        pool.close()

    def test_what_is_used_again_encodes_as_if_it_were_new(self) -> None:
        pool, settings = EncoderPool(), OpusSettings(bitrate=16_000, complexity=7)
        noise = np.random.default_rng(1).normal(0, 0.1, (20, PERIOD)).astype(np.float32)
        used = pool.take(OpusSettings(bitrate=64_000, loss_percent=20, frame_ms=60))
        used.encode(tone(3 * PERIOD))
        pool.give_back(used)
        again = pool.take(settings)
        assert again is used
        fresh = OpusEncoder(settings)
        for frame in noise:
            assert bytes(again.encode(frame)) == bytes(fresh.encode(frame))
        fresh.close()
        pool.give_back(again)
        pool.close()
        with pytest.raises(EncoderError, match="closed"):
            again.encode(noise[0])


def test_a_lost_packet_is_in_the_next_one_where_loss_is_expected() -> None:
    """A decoder that is asked for it makes of a packet what was in the one before it (in-band FEC)."""
    time = np.arange(40 * PERIOD) / RATE
    sweep = 0.3 * np.sign(np.sin(2 * np.pi * (120 + 40 * time) * time)) * np.sin(2 * np.pi * 3 * time) ** 2
    frames = sweep.astype(np.float32).reshape(-1, PERIOD)
    likeness = {}
    for loss in (0, 30):
        encoder, decoder, whole = OpusEncoder(OpusSettings(loss_percent=loss)), Decoder(), Decoder()
        packets = [bytes(encoder.encode(frame)) for frame in frames]
        heard = [whole.decode(packet, PERIOD) for packet in packets]
        for packet in packets[:22]:
            decoder.decode(packet, PERIOD)
        rescued = decoder.decode(packets[23], PERIOD, lost=True)
        likeness[loss] = float(np.corrcoef(rescued, heard[22])[0, 1])
        encoder.close()
        decoder.close()
        whole.close()
    assert likeness[30] > 0.9
    assert likeness[30] > likeness[0]

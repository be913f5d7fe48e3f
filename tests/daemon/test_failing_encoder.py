"""An encoder that fails: what becomes of the command, in each output, and what is told of it."""

from __future__ import annotations

import wave
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from simulators.output_bench import Receiver, Rig, opusinfo, tone

from daemon.commands import StreamQuality
from device.errors import EncoderError, SinkError
from device.format import PERIOD, RATE, Samples
from device.opus import OpusEncoder


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    with closing(rig.outputs):
        yield rig


@pytest.fixture
def fail_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have each encoder refuse all that comes after so many packets."""
    real = OpusEncoder.encode
    made: Counter[OpusEncoder] = Counter()

    def fail_after(packets: int) -> None:
        def encode(self: OpusEncoder, samples: Samples) -> memoryview:
            made[self] += 1
            if made[self] > packets:
                raise EncoderError("internal error")
            return real(self, samples)

        monkeypatch.setattr(OpusEncoder, "encode", encode)

    return fail_after


@pytest.mark.parametrize("frames", [1, PERIOD - 1, PERIOD + 7, RATE])
def test_an_encoder_that_fails_at_its_first_packet_makes_a_whole_wav_file(
    rig: Rig, tmp_path: Path, fail_after: Callable[[int], None], frames: int
) -> None:
    fail_after(0)
    take = rig.begin(id="a", output="file")
    for piece in np.array_split(tone(frames), 3):
        take(piece)
    ended = rig.end("a")
    assert (ended.error, ended.location) == (None, "a.wav")
    assert ended.fallback == "opus: internal error"
    with wave.open(str(tmp_path / "a.wav")) as file:
        heard = np.frombuffer(file.readframes(frames + 1), np.int16) / 32_768
    assert heard == pytest.approx(tone(frames), abs=2e-5)
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]


def test_an_encoder_that_fails_at_its_first_packet_makes_a_whole_wav_stream(
    rig: Rig, fail_after: Callable[[int], None]
) -> None:
    fail_after(0)
    take = rig.begin(id="a", output="stream")
    take(tone(12_345))
    assert rig.outputs.set_quality(StreamQuality(all=True, bitrate=8000)) == [], "nothing is encoded any more"
    ended = rig.end("a")
    assert (ended.error, ended.fallback) == (None, "opus: internal error")
    assert {page.content_type for page in rig.pages} == {"audio/wav"}
    assert len(b"".join(page.page for page in rig.pages)) == 44 + 2 * 12_345


def test_an_encoder_that_fails_later_ends_a_stream_truthfully_after_what_can_be_played(
    rig: Rig, tmp_path: Path, fail_after: Callable[[int], None]
) -> None:
    fail_after(70)
    take = rig.begin(id="a", output="stream")
    with pytest.raises(SinkError, match="internal error") as failure:
        take(tone(2 * RATE))
    assert rig.end("a", failure.value).error is failure.value
    sent = tmp_path / "sent.opus"
    sent.write_bytes(b"".join(page.page for page in rig.pages))
    assert "Playback length: 0m:01.3" in opusinfo(sent)  # 70 packets are 1.4 s, less what only the next would end


def test_an_encoder_that_fails_later_leaves_no_file_and_says_so(
    rig: Rig, tmp_path: Path, fail_after: Callable[[int], None]
) -> None:
    fail_after(70)
    take = rig.begin(id="a", output="file")
    take(tone(70 * PERIOD))
    assert isinstance(rig.end("a").error, SinkError)  # at the packets that bring out the last frames
    assert not list(tmp_path.iterdir())


def test_an_encoder_that_fails_is_not_used_again(rig: Rig, fail_after: Callable[[int], None]) -> None:
    fail_after(70)
    for name, frames in (("a", 60 * PERIOD), ("b", 10 * PERIOD - 1), ("c", 60 * PERIOD)):
        rig.begin(id=name, output="stream")(tone(frames))
        assert (rig.end(name).error is None) == (name != "b")  # 61 packets, then 10: the last is one too many
    assert rig.outputs.encoders.made == 2


@pytest.mark.parametrize("packets", [0, 12])
def test_an_encoder_that_fails_lets_rtp_go_on_as_raw_pcm(
    tmp_path: Path, fail_after: Callable[[int], None], packets: int
) -> None:
    fail_after(packets)
    with closing(Receiver()) as receiver:
        rig = Rig(tmp_path, (receiver.target,))
        with closing(rig.outputs):
            take = rig.begin(id="a", output="rtp")
            for piece in np.array_split(tone(20 * PERIOD), 7):
                take(piece)
            ended = rig.end("a")
            raw = 2 * (20 - packets)
            told = [packet for _, packet in receiver.receive(packets + raw)]
    assert (ended.error, ended.fallback) == (None, "opus: internal error")
    assert [packet[1] & 0x7F for packet in told] == [111] * packets + [112] * raw
    assert len({packet[8:12] for packet in told}) == 1, "one source"
    heard = np.frombuffer(b"".join(packet[12:] for packet in told[packets:]), ">i2") / 32767
    np.testing.assert_allclose(heard, tone(20 * PERIOD)[packets * PERIOD :], atol=1e-4)

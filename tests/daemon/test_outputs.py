"""Destinations of commands, without a voice: what they get is made here."""

from __future__ import annotations

import itertools
import struct
import subprocess
import sys
import threading
import time
import wave
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from simulators.output_bench import TIMEOUT_S, Receiver, Rig, opusinfo, tone
from simulators.waiting import wait_until

from daemon.commands import Speak, StreamQuality
from daemon.errors import PayloadError
from daemon.inbox import AudioPage, RenderEnded
from daemon.rtp_sender import RtpUtterance
from device.errors import SinkError
from device.format import PERIOD, RATE
from device.rtp import RtpPacket


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    with closing(rig.outputs):
        yield rig


def test_pages_of_several_streams_can_be_joined_and_played(rig: Rig, tmp_path: Path) -> None:
    for name in ("a", "b"):
        take = rig.begin(id=name, output="stream")
        take(tone(RATE + 7))
        assert rig.end(name).error is None
    joined = tmp_path / "joined.opus"
    joined.write_bytes(b"".join(page.page for page in rig.pages))
    assert opusinfo(joined).count("Playback length: 0m:01.000s") == 2
    raw = tmp_path / "joined.raw"
    subprocess.run(["opusdec", "--quiet", "--float", "--rate", "48000", joined, raw], check=True)  # noqa: S607
    assert raw.stat().st_size == 4 * 2 * (RATE + 7)


class TestWithoutEncoder:
    @pytest.fixture(autouse=True)
    def no_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "opuslib_next.api", None)

    def test_a_file_is_wav_and_says_so(self, rig: Rig, tmp_path: Path) -> None:
        take = rig.begin(id="a", output="file")
        take(tone(1234))
        ended = rig.end("a")
        assert (ended.error, ended.location) == (None, "a.wav")
        assert "install opuslib-next" in ended.fallback
        assert rig.started[0].fallback == ended.fallback
        with wave.open(str(tmp_path / "a.wav")) as file:
            assert file.getnframes() == 1234
        assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]

    def test_a_stream_is_wav_and_says_so(self, rig: Rig) -> None:
        take = rig.begin(id="a", output="stream")
        take(tone(12_345))
        assert rig.end("a").fallback
        assert {page.content_type for page in rig.pages} == {"audio/wav"}
        content = b"".join(page.page for page in rig.pages)
        assert content[:4] == b"RIFF"
        assert len(content) == 44 + 2 * 12_345


def test_one_encoder_serves_a_thousand_commands(rig: Rig) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(1000):
        take = rig.begin(id=f"{number}", output="stream" if number % 2 else "file")
        take(tone(100 + number))
        assert rig.end(f"{number}").error is None
    assert rig.outputs.encoders.made == 1
    assert len(list(Path("/proc/self/fd").iterdir())) <= before  # fewer where what other tests left was collected
    assert rig.outputs.counts.packets > 1000
    assert rig.outputs.counts.dropped == 0
    assert not rig.outputs._open


def test_a_hot_board_makes_encoders_work_less(rig: Rig) -> None:
    take = rig.begin(id="a", output="stream")
    take(tone(PERIOD))
    destination = rig.outputs._open["a"]
    rig.outputs.set_complexity_cap(2)
    take(tone(PERIOD))
    assert destination.writer._packets._encoder.settings.complexity == 2  # type: ignore[attr-defined]
    rig.outputs.set_complexity_cap(9)
    take(tone(PERIOD))
    assert destination.writer._packets._encoder.settings.complexity == 5  # type: ignore[attr-defined]
    rig.outputs.set_complexity_cap(None)
    rig.end("a")


class TestQuality:
    def size(self, rig: Rig, name: str, quality: StreamQuality | None) -> int:
        noise = np.random.default_rng(1).normal(0, 0.1, 2 * RATE).astype(np.float32)
        take = rig.begin(id=name, output="stream")
        take(noise[:PERIOD])
        if quality is not None:
            assert rig.outputs.set_quality(quality) == [name]
        take(noise[PERIOD:])
        rig.pages.clear()
        rig.end(name)
        return sum(len(page.page) for page in rig.pages)

    def test_of_one_stream_is_adapted_while_it_runs(self, rig: Rig) -> None:
        usual = self.size(rig, "a", None)
        assert self.size(rig, "b", StreamQuality(id="b", bitrate=8000)) < usual / 2
        assert self.size(rig, "c", None) == pytest.approx(usual, rel=0.05)

    def test_of_all_is_that_of_those_to_come_too(self, rig: Rig) -> None:
        usual = self.size(rig, "a", None)
        assert self.size(rig, "b", StreamQuality(all=True, bitrate=8000, frame_ms=60)) < usual / 2
        assert self.size(rig, "c", None) < usual / 2

    def test_of_what_is_not_encoded_is_nobodys(self, rig: Rig) -> None:
        assert rig.outputs.set_quality(StreamQuality(id="x", bitrate=8000)) == []


def test_lost_pages_are_counted_and_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(tmp_path, drop_warn=0.1)
    take = rig.begin(id="a", output="stream")
    take(tone(3 * RATE))
    pages = []
    while not rig.posted.empty():
        message = rig.posted.get()
        if isinstance(message, AudioPage):
            pages.append(message)
    rig.outputs.lose(pages[0])
    assert rig.outputs._open["a"].dropped == 0, "a header's page holds no packets"
    rig.outputs.lose(pages[3])
    ended = rig.end("a")
    assert ended.error is not None
    assert rig.outputs.counts.dropped == 25
    assert rig.outputs.counts.packets > 140
    assert "25 of" in caplog.text
    rig.outputs.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with closing(receiver.socket):
        yield receiver


class TestRtp:
    def test_packets_come_in_real_time_and_the_end_after_the_last(self, receiver: Receiver, tmp_path: Path) -> None:
        rig = Rig(tmp_path, (receiver.target,))
        with closing(rig.outputs):
            begun = time.monotonic()
            take = rig.begin(id="a", output="rtp")
            take(tone(RATE))
            ended = rig.end("a")
            took = time.monotonic() - begun
            assert (ended.error, ended.location) == (None, f"rtp://{receiver.target}")
            assert 1.0 <= took < 5, "as long as it is, and no longer"
            packets = [packet for _, packet in receiver.receive(51)]
            heads = [struct.unpack_from("!BBHII", packet) for packet in packets]
            assert [head[1] for head in heads] == [0x80 | 111] + [111] * 50
            assert {(b[2] - a[2]) % 2**16 for a, b in itertools.pairwise(heads)} == {1}
            assert {(b[3] - a[3]) % 2**32 for a, b in itertools.pairwise(heads)} == {960}
            assert len({head[4] for head in heads}) == 1
            assert rig.outputs.counts.packets == 51

    def test_the_next_command_goes_on_in_the_same_stream(self, receiver: Receiver, tmp_path: Path) -> None:
        rig = Rig(tmp_path, (receiver.target,))
        with closing(rig.outputs):
            ends = []
            for name in "ab":
                rig.begin(id=name, output="rtp")(tone(PERIOD))
                rig.end(name)
                ends.append(struct.unpack_from("!BBHII", receiver.receive(2)[-1][1]))
            (_, _, first, early, source), (_, _, second, late, same) = ends
            assert (second - first) % 2**16 == 2
            assert (late - early) % 2**32 >= 2 * PERIOD
            assert source == same
            assert len(rig.outputs._senders) == 1

    def test_a_cancelled_one_ends_at_once(self, receiver: Receiver, tmp_path: Path) -> None:
        rig = Rig(tmp_path, (receiver.target,))
        with closing(rig.outputs):
            take = rig.begin(id="a", output="rtp")
            take(tone(30 * RATE))
            threading.Timer(0.3, rig.stopped.set).start()
            begun = time.monotonic()
            rig.end("a")
            assert time.monotonic() - begun < 15, "half of what it would take"

    def test_a_cancelled_one_that_waits_for_another_ends_before_it(self, receiver: Receiver, tmp_path: Path) -> None:
        rig = Rig(tmp_path, (receiver.target,))
        with closing(rig.outputs):
            rig.begin(id="speaks", output="rtp")(tone(10 * RATE))
            rig.outputs.end(RenderEnded("speaks", time.monotonic(), 10.0))
            for name in ("waits", "is cancelled"):
                rig.begin(id=name, output="rtp")(tone(PERIOD))
            rig.stopped.set()
            assert rig.end("is cancelled").id == "is cancelled"
            assert {"speaks", "waits"} == set(rig.outputs._open)

    def test_only_what_the_owner_allows_is_sent_to(self, tmp_path: Path) -> None:
        rig = Rig(tmp_path, ("239.255.0.1:5004", "[ff15::1]:5004"))
        rig.outputs.check(Speak(text="", output="rtp"))
        rig.outputs.check(Speak(text="", output="rtp", target="[FF15:0::1]:5004"))
        for target in ("10.0.0.1:5004", "239.255.0.1:5005", "nonsense"):
            with pytest.raises(PayloadError) as refused:
                rig.outputs.check(Speak(id="x", text="", output="rtp", target=target))
            assert (refused.value.code, refused.value.command_id) == ("target", "x")
        with pytest.raises(PayloadError, match="allows none"):
            Rig(tmp_path).outputs.check(Speak(text="", output="rtp"))
        with pytest.raises(PayloadError, match='only output "rtp"'):
            rig.outputs.check(Speak(text="", output="file", target="239.255.0.1:5004"))

    def test_the_longest_usual_text_holds_no_render_thread_up_and_no_text_takes_all_memory(self) -> None:
        stopped = threading.Event()
        utterance = RtpUtterance(stopped)
        longest = threading.Event()

        def render() -> None:
            for _ in range(260 * 50):  # 4,000 characters at 24 kbit/s
                utterance.put(RtpPacket(bytes(60), PERIOD))
            longest.set()
            for _ in range(5000):
                utterance.put(RtpPacket(bytes(960), PERIOD // 2, raw=True))

        rendering = threading.Thread(target=render)
        rendering.start()
        assert longest.wait(TIMEOUT_S), "it waits, though nobody takes it yet"
        wait_until(lambda: utterance._bytes >= 2**22, "it waits too soon")
        for _ in range(100):
            utterance.take(0)
        wait_until(lambda: utterance._bytes >= 2**22, "it does not go on")
        assert utterance._bytes < 2**22 + 2000
        stopped.set()
        rendering.join(TIMEOUT_S)
        assert not rendering.is_alive()

    def test_without_an_encoder_it_is_linear_pcm(
        self, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "opuslib_next.api", None)
        rig = Rig(tmp_path, (receiver.target,))
        with closing(rig.outputs):
            rig.begin(id="a", output="rtp")(tone(PERIOD))
            assert rig.end("a").fallback
            packets = [packet for _, packet in receiver.receive(2)]
        assert [packet[1] & 0x7F for packet in packets] == [112, 112]
        heard = np.frombuffer(b"".join(packet[12:] for packet in packets), ">i2") / 32767
        np.testing.assert_allclose(heard, tone(PERIOD), atol=1e-4)


class TestAFolderThatDoesNotAnswer:
    """As on a disk of the network whose server is gone."""

    def test_it_holds_up_nobody_but_its_file(self, rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        go, replace = threading.Event(), Path.replace

        def hang(path: Path, target: Path) -> Path:
            assert go.wait(TIMEOUT_S)
            return replace(path, target)

        monkeypatch.setattr(Path, "replace", hang)
        rig.begin(id="file", output="file")(tone(PERIOD))
        assert rig.outputs.end(RenderEnded("file", time.monotonic(), 1.0)) is None
        rig.begin(id="stream", output="stream")(tone(PERIOD))
        stream = rig.outputs.end(RenderEnded("stream", time.monotonic(), 1.0))
        assert stream is not None
        assert stream.error is None
        assert not list(tmp_path.glob("*.opus"))
        go.set()
        told = rig.until_told("file")
        assert (told.error, told.location) == (None, "file.opus")
        assert [path.name for path in tmp_path.iterdir()] == ["file.opus"]

    def test_a_file_fails_that_cannot_be_begun_in_time(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        go, mkdir = threading.Event(), Path.mkdir

        def hang(path: Path, *rest: object, **more: object) -> None:
            assert go.wait(TIMEOUT_S)
            mkdir(path, *rest, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(Path, "mkdir", hang)
        for name in ("first", "second"):
            with pytest.raises(SinkError, match="does not answer") as caught:
                rig.begin(id=name, output="file")(tone(PERIOD))
            assert rig.end(name, caught.value).error is caught.value
        go.set()


@pytest.mark.parametrize("begun", [False, True])
def test_what_was_cancelled_is_no_file(tmp_path: Path, *, begun: bool) -> None:
    rig = Rig(tmp_path)
    take = rig.begin(id="a", output="file")
    if begun:
        take(tone(RATE))
    rig.stopped.set()
    rig.end("a")
    assert list(tmp_path.iterdir()) == []


def test_nor_what_was_cancelled_while_it_got_its_name(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.begin(id="a", output="file")(tone(RATE))
    ended = RenderEnded("a", time.monotonic(), 1.0)
    assert rig.outputs.end(ended) is None
    wait_until(lambda: list(tmp_path.glob("*.opus")) != [], "it never got its name")
    rig.stopped.set()
    rig.until_told("a")
    assert list(tmp_path.iterdir()) == []

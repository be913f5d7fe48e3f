from __future__ import annotations

import contextlib
import socket
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.errors import SinkError
from device.format import PERIOD, RATE
from device.opus import EncoderPool, OpusSettings
from device.opus_packets import Dial
from device.rtp import RawRtpSink, RtpPacket, RtpPacketizer, RtpSink, RtpSocket, Target, sdp


def fields(packet: bytes) -> tuple[int, int, int, int, int]:
    """Version and flags, marker, payload type, sequence number, timestamp."""
    first, second, sequence, timestamp, _ = struct.unpack_from("!BBHII", packet)
    return first, second >> 7, second & 0x7F, sequence, timestamp


class TestTarget:
    @pytest.mark.parametrize("text", ["239.255.0.1:5004", "10.0.0.7:1", "[ff15::1]:65535"])
    def test_is_written_as_it_is_read(self, text: str) -> None:
        assert str(Target.parse(text)) == text

    @pytest.mark.parametrize(
        "text",
        ["", "5004", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:x", "host:5004", "ff15::1:5004",
         "[10.0.0.1]:5004", "0.0.0.0:5004", "255.255.255.255:5004", "[::]:5004", "10.0.0.1:\u0665"],
    )  # fmt: skip
    def test_that_is_none_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"."):
            Target.parse(text)

    @given(st.text(max_size=40))
    def test_nothing_else_is_raised(self, text: str) -> None:
        with contextlib.suppress(ValueError):
            assert Target.parse(str(Target.parse(text))) == Target.parse(text)


class TestHeaders:
    def test_count_packets_and_time(self) -> None:
        packetizer = RtpPacketizer(111)
        heads = [fields(packetizer.packet(b"x", PERIOD)) for _ in range(4)]
        assert [head[:3] for head in heads] == [(0x80, 1, 111)] + [(0x80, 0, 111)] * 3
        assert [(head[3] - heads[0][3]) % 2**16 for head in heads] == [0, 1, 2, 3]
        assert [(head[4] - heads[0][4]) % 2**32 for head in heads] == [0, 960, 1920, 2880]

    def test_after_a_pause_the_clock_has_gone_on_and_the_mark_is_set(self) -> None:
        packetizer = RtpPacketizer(111)
        before = fields(packetizer.packet(b"x", PERIOD))
        packetizer.pause(RATE)
        after = fields(packetizer.packet(b"x", PERIOD))
        assert after[1] == 1
        assert (after[3] - before[3]) % 2**16 == 1
        assert (after[4] - before[4]) % 2**32 == PERIOD + RATE

    def test_wrap_around(self) -> None:
        packetizer = RtpPacketizer(96)
        packetizer._sequence, packetizer._timestamp = 0xFFFF, 0xFFFFFFFF
        packetizer.packet(b"x", 1)
        assert fields(packetizer.packet(b"x", 1))[3:] == (0, 0)

    def test_each_source_begins_elsewhere(self) -> None:
        assert len({RtpPacketizer(111).packet(b"", 0) for _ in range(5)}) == 5


class TestSinks:
    def test_all_samples_are_in_packets(self) -> None:
        pool, packets = EncoderPool(), list[RtpPacket]()
        sink = RtpSink(packets.append, Dial(OpusSettings(frame_ms=40)), pool)
        sink.open()
        sink.write(np.zeros(PERIOD * 7 + 5, np.float32))
        sink.drain()
        sink.close()
        assert {packet.frames for packet in packets} == {1920}
        assert sum(packet.frames for packet in packets) >= PERIOD * 7 + 5 + 312
        assert sink.packets == len(packets)
        pool.close()

    @given(st.lists(st.integers(1, 2000), min_size=1, max_size=5))
    def test_raw_pcm_is_sample_exact(self, sizes: list[int]) -> None:
        packets: list[RtpPacket] = []
        sink = RawRtpSink(packets.append)
        samples = np.random.default_rng(1).uniform(-1.2, 1.2, sum(sizes)).astype(np.float32)
        start = 0
        for size in sizes:
            sink.write(samples[start : start + size])
            start += size
        sink.drain()
        heard = np.frombuffer(b"".join(packet.payload for packet in packets), ">i2")
        np.testing.assert_allclose(heard, np.clip(samples, -1, 1) * 32767.0, rtol=0, atol=0.51, err_msg="rounded")
        assert all(packet.raw and len(packet.payload) <= 960 for packet in packets)


def test_a_target_that_cannot_be_reached_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> socket.socket:
        raise OSError(97, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(SinkError, match="Address family"):
        RtpSocket(Target.parse("[ff15::1]:5004"), 1)


def test_a_description_names_address_port_and_both_payloads() -> None:
    text = sdp(Target.parse("239.1.2.3:5004"), name="lobby", payload_type=111, frame_ms=20, rate=48_000, ttl=3)
    assert text.startswith("v=0\r\n")
    assert "c=IN IP4 239.1.2.3/3\r\n" in text
    assert "m=audio 5004 RTP/AVP 111 112\r\n" in text
    assert "a=rtpmap:111 opus/48000/2\r\n" in text
    assert "a=rtpmap:112 L16/48000/1\r\n" in text
    assert "a=recvonly\r\n" in text, "a receiver is told to receive"
    assert "c=IN IP6 ff15::1\r\n" in sdp(
        Target.parse("[ff15::1]:5004"), name="x", payload_type=96, frame_ms=20, rate=48_000, ttl=1
    )

from __future__ import annotations

import io
import struct
from typing import NamedTuple

import pytest

from device.ogg import LAST_PAGE, PAGE_FRAMES, OggOpusWriter, checksum, packets_on_page

FRAME = 960


class Page(NamedTuple):
    flags: int
    granule: int
    serial: int
    number: int
    packets: list[bytes]


def slow_checksum(data: bytes) -> int:
    """RFC 3533, appendix: bit by bit, highest bit first."""
    register = 0
    for byte in data:
        register ^= byte << 24
        for _ in range(8):
            register = (register << 1) ^ (0x104C11DB7 if register & 0x80000000 else 0)
    return register


def parse(content: bytes) -> list[Page]:
    """Read pages as RFC 3533 lays them out, and check each one's checksum."""
    pages = []
    while content:
        magic, version, flags, granule, serial, number, crc, segments = struct.unpack_from("<4sBBqIIIB", content)
        assert (magic, version) == (b"OggS", 0)
        lacing = content[27 : 27 + segments]
        end = 27 + segments + sum(lacing)
        assert crc == slow_checksum(content[:22] + bytes(4) + content[26:end])
        body, packets, packet = content[27 + segments : end], [], 0
        for value in lacing:
            packet += value
            if value < 255:
                packets.append(body[:packet])
                body, packet = body[packet:], 0
        assert packet == 0, "no packet goes on to the next page"
        pages.append(Page(flags, granule, serial, number, packets))
        content = content[end:]
    return pages


@pytest.fixture
def file() -> io.BytesIO:
    return io.BytesIO()


@pytest.fixture
def writer(file: io.BytesIO) -> OggOpusWriter:
    return OggOpusWriter(file, pre_skip=312, vendor="libopus 1.3.1")


@pytest.mark.parametrize("data", [b"", b"\0", b"\x80", b"OggS", bytes(range(256)) * 9])
def test_the_checksum_is_that_of_the_standard(data: bytes) -> None:
    assert checksum(data) == slow_checksum(data)


def test_the_headers_come_first_each_on_its_page(file: io.BytesIO, writer: OggOpusWriter) -> None:
    assert writer
    head, tags = parse(file.getvalue())
    assert (head.flags, head.granule, head.number) == (2, 0, 0)
    assert head.packets == [b"OpusHead" + bytes([1, 1]) + struct.pack("<HIhB", 312, 48_000, 0, 0)]
    assert (tags.flags, tags.granule, tags.number) == (0, 0, 1)
    vendor = b"OpusTags" + struct.pack("<I", 13) + b"libopus 1.3.1"
    assert tags.packets == [vendor + struct.pack("<II", 1, 14) + b"ENCODER=speakd"]


@pytest.mark.parametrize("size", [0, 1, 254, 255, 256, 510, 3832])
def test_packets_of_any_size_come_back(file: io.BytesIO, writer: OggOpusWriter, size: int) -> None:
    packets = [bytes([number]) * size for number in range(40)]
    for packet in packets:
        writer.packet(memoryview(packet), FRAME)
    writer.finish(40 * FRAME - 500)
    pages = parse(file.getvalue())[2:]
    assert [packet for page in pages for packet in page.packets] == packets
    done = 0
    for page in pages[:-1]:
        done += len(page.packets)
        assert (page.flags, page.granule) == (0, done * FRAME)
    assert (pages[-1].flags, pages[-1].granule) == (LAST_PAGE, 40 * FRAME - 500 + 312)
    assert pages[-1].packets


def test_pages_are_of_one_stream_and_counted(file: io.BytesIO, writer: OggOpusWriter) -> None:
    for _ in range(200):
        writer.packet(b"x", FRAME)
    writer.finish(200 * FRAME - 312)
    pages = parse(file.getvalue())
    assert [page.number for page in pages] == list(range(len(pages)))
    assert len({page.serial for page in pages}) == 1
    assert max(len(page.packets) for page in pages) * FRAME == PAGE_FRAMES


def test_two_streams_have_different_serials() -> None:
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        OggOpusWriter(file, pre_skip=0, vendor="")
    assert parse(files[0].getvalue())[0].serial != parse(files[1].getvalue())[0].serial


def test_a_flush_writes_what_is_there_once(file: io.BytesIO, writer: OggOpusWriter) -> None:
    writer.packet(b"one", FRAME)
    assert len(parse(file.getvalue())) == 2
    writer.flush()
    writer.flush()
    *_, page = parse(file.getvalue())
    assert (len(parse(file.getvalue())), page.packets, page.granule) == (3, [b"one"], FRAME)


def test_granules_go_beyond_32_bits(file: io.BytesIO, writer: OggOpusWriter) -> None:
    for _ in range(3):
        writer.packet(b"x", 2**32)
    writer.finish(3 * 2**32)
    assert parse(file.getvalue())[-1].granule == 3 * 2**32 + 312


def test_packets_are_counted_where_they_end() -> None:
    file = io.BytesIO()
    writer = OggOpusWriter(file, pre_skip=312, vendor="libopus 1.4")
    writer.packet(b"x" * 600, 960)
    writer.packet(b"y", 960)
    writer.flush()
    pages = [b"OggS" + page for page in file.getvalue().split(b"OggS")[1:]]
    assert [packets_on_page(page) for page in pages] == [0, 0, 2]
    assert packets_on_page(b"OggS") == packets_on_page(b"RIFF") == 0

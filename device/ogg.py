"""Ogg pages (RFC 3533) with one mono Opus stream on them (RFC 7845)."""

from __future__ import annotations

import io
import secrets
import struct
import zlib
from typing import BinaryIO, Final

from device.format import CHANNELS, RATE

PAGE_FRAMES: Final = RATE // 2
"""A page is written once it holds half a second: whoever listens while we write is at most that far behind, and the
28 bytes of page header cost less than 2 % at 24 kbit/s."""

FIRST_PAGE: Final = 0x02
LAST_PAGE: Final = 0x04

MOST_SEGMENTS: Final = 255
SEGMENT: Final = 255
"""Bytes. A packet is laced as that many full segments and a shorter, possibly empty, last one."""

_REVERSED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def checksum(page: bytes | bytearray) -> int:
    """Give the CRC-32 of a page whose checksum field is zero: polynomial 0x04C11DB7, unreflected, no inversion.

    zlib computes the reflected and inverted CRC of the same polynomial in C; undoing both is far quicker than a loop.
    """
    reflected = zlib.crc32(page.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int.from_bytes(reflected.to_bytes(4, "little").translate(_REVERSED), "big")


class OggOpusWriter:
    """Writes the pages of one Opus stream to `file`, which need not be seekable. OSError is the file's.

    The headers are written at once. A page goes out when the packet after it arrives, on `flush`, and on `finish`,
    so that the very last packet is still here to be marked as such. One thread at a time.
    """

    def __init__(self, file: BinaryIO | io.RawIOBase, *, pre_skip: int, vendor: str, rate: int = RATE) -> None:
        """Begin a stream. `pre_skip`: frames the decoder throws away first. `vendor`: the encoder and its version.

        `rate`: what a decoder may take for the sound's own; all else counts at 48 kHz.
        """
        self._file = file
        self._serial = secrets.randbits(32)
        self._pages = 0
        self._pre_skip = pre_skip
        self._granule = 0  # frames in all packets so far, the pre-skip included
        self._written_granule = 0
        self._lacing = bytearray()
        self._body = bytearray()
        self._packet(_head(pre_skip, rate))
        self._write_page(0, FIRST_PAGE)
        self._packet(_tags(vendor))
        self.flush()

    def packet(self, data: bytes | memoryview, frames: int) -> None:
        """Add one packet that decodes to `frames` frames at 48 kHz. The memory is copied."""
        full = self._granule - self._written_granule >= PAGE_FRAMES
        if full or len(self._lacing) + len(data) // SEGMENT + 1 > MOST_SEGMENTS:
            self.flush()
        self._packet(data)
        self._granule += frames

    def flush(self) -> None:
        """Write a page of what is here, and see it to the operating system."""
        if self._lacing:
            self._write_page(self._granule, 0)
        self._file.flush()

    def finish(self, frames: int) -> None:
        """Write the last page. `frames`: what a decoder is to give out over all; the rest is padding it cuts off."""
        self._write_page(self._pre_skip + frames, LAST_PAGE)
        self._file.flush()

    def _packet(self, data: bytes | memoryview) -> None:
        full_segments, last = divmod(len(data), SEGMENT)
        self._lacing += bytes([SEGMENT]) * full_segments
        self._lacing.append(last)
        self._body += data

    def _write_page(self, granule: int, flags: int) -> None:
        page = bytearray(
            struct.pack("<4sBBqIIIB", b"OggS", 0, flags, granule, self._serial, self._pages, 0, len(self._lacing))
        )
        page += self._lacing
        page += self._body
        struct.pack_into("<I", page, 22, checksum(page))
        self._file.write(page)
        self._pages += 1
        self._written_granule = granule
        self._lacing.clear()
        self._body.clear()


def packets_on_page(page: bytes) -> int:
    """Count the packets of sound that end on a page; 0 for a header's page, or what is none."""
    lacing_at = 27
    if page[:4] != b"OggS" or len(page) <= lacing_at or page[lacing_at + page[26] :][:4] == b"Opus":
        return 0
    return sum(size < SEGMENT for size in page[lacing_at : lacing_at + page[26]])


def _head(pre_skip: int, rate: int) -> bytes:
    version, gain, mapping_family = 1, 0, 0
    return struct.pack("<8sBBHIhB", b"OpusHead", version, CHANNELS, pre_skip, rate, gain, mapping_family)


def _tags(vendor: str) -> bytes:
    comment = b"ENCODER=speakd"
    name = vendor.encode()
    return struct.pack(f"<8sI{len(name)}sII", b"OpusTags", len(name), name, 1, len(comment)) + comment

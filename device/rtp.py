"""Opus over RTP (RFC 7587 in RFC 3550), and what tells a receiver of it (SDP, RFC 8866)."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.errors import EncoderError, NoEncoderError, SinkError
from device.format import RATE, Samples, is_samples
from device.opus import EncoderPool
from device.opus_packets import Dial, OpusPackets

_VERSION: Final = 2 << 6
_MARKER: Final = 0x80
_HEADER: Final = struct.Struct("!BBHII")

_MREQN: Final = struct.Struct("=8xi")
"""Linux's ip_mreqn with nothing but an interface's index."""

_RAW_FRAMES: Final = RATE // 100
"""Of a packet of raw PCM, 10 ms: 960 bytes, which fit an Ethernet frame."""

_FULL_SCALE: Final = 32_767


@dataclass(frozen=True, slots=True)
class Target:
    """Where packets go: an address, unicast or multicast, and a port. No names: nobody has to be asked for them."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read '239.255.0.1:5004' or '[ff15::1]:5004'. ValueError says what is wrong."""
        host, separator, port = text.rpartition(":")
        if not separator or not port.isascii() or not port.isdecimal() or not 1 <= int(port) <= 65_535:  # noqa: PLR2004
            raise ValueError(f"{text!r} is no address and port such as 239.255.0.1:5004 or [ff15::1]:5004")
        bracketed = host.startswith("[") and host.endswith("]")
        address = ipaddress.ip_address(host[1:-1] if bracketed else host)
        if bracketed != (address.version == 6):  # noqa: PLR2004
            raise ValueError(f"{text!r}: an IPv6 address, and no other, stands in brackets")
        if address.is_unspecified or str(address) == "255.255.255.255":
            raise ValueError(f"{text!r} is nobody's address, or everybody's")
        return cls(address, int(port))

    def __str__(self) -> str:
        """Write it as `parse` reads it."""
        host = f"[{self.address}]" if self.address.version == 6 else str(self.address)  # noqa: PLR2004
        return f"{host}:{self.port}"


class RtpPacketizer:
    """Writes RTP headers of one source. Timestamps count at 48 kHz, whatever the encoder's rate (RFC 7587, 4.1)."""

    def __init__(self, payload_type: int) -> None:
        """Begin at a random sequence number, time and source, as RFC 3550 asks. Raw PCM has the next payload type."""
        self._payload_type = payload_type
        self._ssrc = secrets.randbits(32)
        self._sequence = secrets.randbits(16)
        self._timestamp = secrets.randbits(32)
        self._marker = True

    def packet(self, payload: bytes, frames: int, *, raw: bool = False) -> bytes:
        """Give one packet, whose sound lasts `frames`."""
        kind = self._payload_type + raw | (_MARKER if self._marker else 0)
        header = _HEADER.pack(_VERSION, kind, self._sequence, self._timestamp, self._ssrc)
        self._marker = False
        self._sequence = (self._sequence + 1) & 0xFFFF
        self.pass_time(frames)
        return header + payload

    def pause(self, frames: int) -> None:
        """Leave time out in which nothing is sent: the next packet is marked as the first after silence."""
        self.pass_time(frames)
        self._marker = True

    def pass_time(self, frames: int) -> None:
        """Move the clock."""
        self._timestamp = (self._timestamp + frames) & 0xFFFFFFFF


class RtpSocket:
    """Sends packets to one target; waits for nothing."""

    def __init__(self, target: Target, ttl: int, interface: str = "") -> None:
        """Open it. SinkError where there is no network.

        Of multicast: `ttl` counts the networks that it reaches; `interface` names the one that it leaves by, where that
        is not the usual one.
        """
        self._target = target
        v6 = target.address.version == 6  # noqa: PLR2004
        try:
            self._socket = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.settimeout(0)
            index = socket.if_nametoindex(interface) if interface else 0
            if target.address.is_multicast and v6:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, ttl)
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            elif target.address.is_multicast:
                self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
                self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, _MREQN.pack(index))
        except OSError as error:
            raise SinkError(f"rtp {target}", f"cannot be sent to: {error.strerror or error}") from error

    def send(self, packet: bytes) -> str:
        """Send a packet; gives why it could not be, or nothing."""
        try:
            self._socket.sendto(packet, (str(self._target.address), self._target.port))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def close(self) -> None:
        """Free it. Idempotent."""
        self._socket.close()


@dataclass(frozen=True, slots=True)
class RtpPacket:
    """One packet's content."""

    payload: bytes
    frames: int
    raw: bool = False
    """Whether it is linear PCM of 16 bits (L16, RFC 3551) instead of Opus."""


def sdp(target: Target, *, name: str, payload_type: int, frame_ms: int, rate: int, ttl: int) -> str:
    """Describe what is sent to a target. Both kinds of payload stand in it, so that it holds for raw PCM too."""
    family = f"IN IP{target.address.version}"
    hops = f"/{ttl}" if target.address.is_multicast and target.address.version == 4 else ""  # noqa: PLR2004
    unspecified = "::1" if target.address.version == 6 else "127.0.0.1"  # noqa: PLR2004
    lines = (
        "v=0",
        f"o=- 0 0 {family} {unspecified}",
        f"s={name}",
        f"c={family} {target.address}{hops}",
        "t=0 0",
        f"m=audio {target.port} RTP/AVP {payload_type} {payload_type + 1}",
        f"a=rtpmap:{payload_type} opus/48000/2",  # RFC 7587 has always two channels there
        f"a=fmtp:{payload_type} sprop-stereo=0;sprop-maxcapturerate={rate};useinbandfec=1",
        f"a=rtpmap:{payload_type + 1} L16/48000/1",
        f"a=ptime:{frame_ms}",
        "a=recvonly",  # what whoever reads it shall do, as this is no offer that is answered (RFC 8866, 6.7.1)
    )
    return "\r\n".join(lines) + "\r\n"


Emit = Callable[[RtpPacket], None]


class RtpSink:
    """Makes packets of samples. As a `Sink`, but that nothing is played at its pace. One thread at a time."""

    def __init__(self, emit: Emit, dial: Dial, encoders: EncoderPool) -> None:
        """`emit` takes each packet."""
        self._emit = emit
        self._opus = OpusPackets(encoders, dial, lambda packet, frames: emit(RtpPacket(bytes(packet), frames)))

    @property
    def packets(self) -> int:
        """How many packets were encoded."""
        return self._opus.count

    @property
    def left(self) -> Samples | None:
        """See `OpusPackets.left`."""
        return self._opus.left

    def open(self) -> None:
        """Take an encoder; NoEncoderError where there is none."""
        try:
            self._opus.begin()
        except EncoderError as error:
            raise NoEncoderError("rtp", str(error)) from error

    def write(self, samples: Samples) -> None:
        """Encode samples."""
        try:
            self._opus.write(samples)
        except EncoderError as error:
            raise SinkError("rtp", str(error)) from error

    def drain(self) -> None:
        """Encode the rest."""
        try:
            self._opus.finish()
        except EncoderError as error:
            raise SinkError("rtp", str(error)) from error

    def close(self) -> None:
        """Give the encoder back. Idempotent."""
        self._opus.end()


class RawRtpSink:
    """Makes packets of linear PCM: for whom Opus cannot be had."""

    def __init__(self, emit: Emit) -> None:
        """`emit` takes each packet."""
        self._emit = emit
        self._rest: Samples = np.empty(0, np.float32)
        self.packets = 0

    def open(self) -> None:
        """Do nothing."""

    def write(self, samples: Samples) -> None:
        """Convert samples."""
        if not is_samples(samples):
            raise SinkError("rtp", "takes contiguous mono float32 only")
        waiting = np.concatenate([self._rest, samples])
        whole = waiting.size // _RAW_FRAMES * _RAW_FRAMES
        for start in range(0, whole, _RAW_FRAMES):
            self._send(waiting[start : start + _RAW_FRAMES])
        self._rest = waiting[whole:]

    def drain(self) -> None:
        """Convert the rest."""
        if self._rest.size:
            self._send(self._rest)
        self._rest = self._rest[:0]

    def close(self) -> None:
        """Do nothing."""

    def _send(self, samples: Samples) -> None:
        pcm = np.rint(np.clip(samples, -1, 1) * _FULL_SCALE).astype(">i2")
        self._emit(RtpPacket(pcm.tobytes(), samples.size, raw=True))
        self.packets += 1

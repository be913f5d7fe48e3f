"""The thread that sends one target's packets in real time, one utterance after another."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Final

from daemon.config import RtpConfig
from daemon.errors import StoppedError
from daemon.inbox import Inbox, RenderEnded
from daemon.worker import Worker
from device.errors import SinkError
from device.format import RATE, seconds
from device.rtp import RtpPacket, RtpPacketizer, RtpSocket, Target

_MOST_AHEAD: Final = 2**22
"""Bytes of one utterance that may wait; then its renderer waits, and renders nothing else meanwhile. A text of 4,000
characters, which is the longest as a rule, takes 2 MB at 24 kbit/s; of raw PCM it is 40 s."""

_PACKET_BYTES: Final = 100
"""What a packet takes besides its payload, as the interpreter keeps it."""

_POLL_S: Final = 0.1
"""How long a wait lasts before a stop is looked for."""

_LATE_S: Final = 0.2
"""Later than this a packet is not sent in a burst with those after it: the clock takes a pause instead."""


class RtpUtterance:
    """One command's packets on their way from its renderer to the sender."""

    def __init__(self, stopped: threading.Event) -> None:
        """Begin with none. `stopped`: set by whoever no longer wants it."""
        self.stopped = stopped
        self.ended: RenderEnded | None = None
        self.closing = False
        """Whether what comes now is the last, which never waits."""
        self.dropped = 0
        self._packets: deque[RtpPacket] = deque()
        self._bytes = 0
        self._changed = threading.Condition()

    def put(self, packet: RtpPacket) -> None:
        """Queue a packet; waits while too many do."""
        with self._changed:
            while self._bytes >= _MOST_AHEAD and not self.stopped.is_set() and not self.closing:
                self._changed.wait(_POLL_S)
            self._packets.append(packet)
            self._bytes += len(packet.payload) + _PACKET_BYTES
            self._changed.notify()

    def end(self, message: RenderEnded) -> None:
        """Say that there are no more, and what is to be told once the last one is heard."""
        with self._changed:
            self.ended = message
            self._changed.notify()

    def take(self, wait_s: float) -> RtpPacket | None:
        """Give the next packet; None where there is none yet, or no more: see `over`."""
        with self._changed:
            self._changed.wait_for(lambda: self._packets or self.ended is not None, wait_s)
            packet = self._packets.popleft() if self._packets else None
            if packet is not None:
                self._bytes -= len(packet.payload) + _PACKET_BYTES
            self._changed.notify()
            return packet

    @property
    def over(self) -> bool:
        """Tell whether there is nothing left to send."""
        with self._changed:
            return self.ended is not None and (not self._packets or self.stopped.is_set())


class RtpSender(Worker):
    """Owns the socket, the sequence and the clock of one target."""

    def __init__(self, target: Target, config: RtpConfig, post: Callable[[Inbox], None]) -> None:
        super().__init__(f"rtp {target}", post)
        self._target = target
        self._ttl, self._interface = config.ttl, config.interface
        self._packetizer = RtpPacketizer(config.payload_type)
        self._waiting: deque[RtpUtterance] = deque()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._due = 0.0  # when the next packet is to be sent, in seconds of `time.monotonic`

    def submit(self, utterance: RtpUtterance) -> None:
        """Send an utterance after those that wait. From any thread."""
        with self._changed:
            self._waiting.append(utterance)
            self._changed.notify()

    def stop(self) -> None:
        """End at once. Idempotent; from any thread."""
        self._stopping.set()
        with self._changed:
            self._changed.notify()

    def work(self) -> None:
        """Send what comes until stopped."""
        self._due = time.monotonic()
        while (utterance := self._next()) is not None:
            self._post(self._send(utterance))

    def _next(self) -> RtpUtterance | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping.is_set())
            return None if self._stopping.is_set() else self._waiting.popleft()

    def _send(self, utterance: RtpUtterance) -> RenderEnded:
        """Send an utterance; gives its end, once the last packet's sound is over."""
        sent, problem = 0, ""
        try:
            with closing(RtpSocket(self._target, self._ttl, self._interface)) as way_out:
                self._catch_up(0)
                while not utterance.over and not self._stopping.is_set():
                    self._end_unwanted()
                    packet = utterance.take(_POLL_S)
                    if packet is None or utterance.stopped.is_set():
                        continue
                    self._catch_up(_LATE_S)
                    self._wait(utterance)
                    said = way_out.send(self._packetizer.packet(packet.payload, packet.frames, raw=packet.raw))
                    sent, problem = sent + (not said), said or problem
                    utterance.dropped += bool(said)
                    self._due += seconds(packet.frames)
                self._wait(utterance)
        except SinkError as error:
            return self._ended(utterance, error)
        failed = SinkError(f"rtp {self._target}", f"cannot be sent to: {problem}") if problem and not sent else None
        return self._ended(utterance, failed)

    def _end_unwanted(self) -> None:
        """Tell the end of those that were cancelled while they wait here, not only when it would be their turn."""
        with self._changed:
            unwanted = [other for other in self._waiting if other.stopped.is_set() and other.ended is not None]
            for other in unwanted:
                self._waiting.remove(other)
        for other in unwanted:
            self._post(self._ended(other, None))

    def _ended(self, utterance: RtpUtterance, error: Exception | None) -> RenderEnded:
        while utterance.ended is None and not self._stopping.is_set():  # what failed here is still being rendered
            utterance.take(_POLL_S)
        ended = utterance.ended or RenderEnded("", time.monotonic(), error=StoppedError())
        return replace(ended, at=time.monotonic(), error=ended.error or error)

    def _catch_up(self, patience_s: float) -> None:
        """Where the next packet is overdue by more than this, let the time in between pass as silence."""
        late = time.monotonic() - self._due
        if late > patience_s:
            self._packetizer.pause(round(late * RATE))
            self._due += late

    def _wait(self, utterance: RtpUtterance) -> None:
        """Wait until the next packet is due, or nobody wants it."""
        while (left := self._due - time.monotonic()) > 0 and not self._stopping.is_set():
            if utterance.stopped.wait(min(left, _POLL_S)):
                return

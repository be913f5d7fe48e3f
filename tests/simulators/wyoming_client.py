"""Home Assistant's side of the Wyoming protocol, with the package's own client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

TIMEOUT_S: Final = 60.0


@dataclass
class Spoken:
    """What came for one request."""

    starts: list[AudioStart] = field(default_factory=list)
    pcm: bytes = b""
    stopped: bool = False
    ended: bool = False
    """Whether the stream was ended as it should be."""
    error: Error | None = None
    early: int = 0
    """Bytes that came before all of the text was sent."""

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return len(self.pcm) / 2 / self.starts[0].rate

    def take(self, event: Event) -> bool:
        """Take an event in; gives whether more may come."""
        if AudioStart.is_type(event.type):
            self.starts.append(AudioStart.from_event(event))
        elif AudioChunk.is_type(event.type):
            assert self.starts
            assert not self.stopped
            self.pcm += AudioChunk.from_event(event).audio
        elif AudioStop.is_type(event.type):
            self.stopped = True
        elif SynthesizeStopped.is_type(event.type):
            self.ended = True
            return False
        elif Error.is_type(event.type):
            self.error = Error.from_event(event)
        return True


def describe(port: int) -> Info:
    """Ask what there is."""

    async def ask() -> Info:
        async with AsyncTcpClient("127.0.0.1", port) as client:
            await client.write_event(Describe().event())
            event = await client.read_event()
            assert event is not None
            return Info.from_event(event)

    return asyncio.run(asyncio.wait_for(ask(), TIMEOUT_S))


def synthesize(port: int, text: str, voice: SynthesizeVoice | None = None) -> Spoken:
    """Have a text spoken, as Home Assistant does without streaming."""

    async def ask() -> Spoken:
        spoken = Spoken()
        async with AsyncTcpClient("127.0.0.1", port) as client:
            await client.write_event(Synthesize(text=text, voice=voice).event())
            while not spoken.stopped and (event := await client.read_event()) is not None:
                spoken.take(event)
        return spoken

    return asyncio.run(asyncio.wait_for(ask(), TIMEOUT_S))


def stream(port: int, parts: Iterable[str], voice: SynthesizeVoice | None = None, *, wait_after: int = -1) -> Spoken:
    """Have a text spoken as a language model writes it; after part `wait_after` the next one waits for sound."""

    async def ask() -> Spoken:
        spoken = Spoken()
        heard = asyncio.Event()
        async with AsyncTcpClient("127.0.0.1", port) as client:

            async def write() -> None:
                await client.write_event(SynthesizeStart(voice=voice).event())
                for number, part in enumerate(parts):
                    await client.write_event(SynthesizeChunk(text=part).event())
                    if number == wait_after:
                        await heard.wait()
                        spoken.early = len(spoken.pcm)
                await client.write_event(Synthesize(text="".join(parts)).event())  # for servers of old
                await client.write_event(SynthesizeStop().event())

            writing = asyncio.create_task(write())
            while (event := await client.read_event()) is not None and spoken.take(event):
                if spoken.pcm:
                    heard.set()
            heard.set()
            await writing
        return spoken

    return asyncio.run(asyncio.wait_for(ask(), TIMEOUT_S))

"""One client of the Wyoming server: what it asks and what it is answered. The only module that imports wyoming."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final, TypeVar, cast

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, Eventable, read_event, write_event
from wyoming.info import Attribution, Describe, Info, TtsProgram, TtsVoice, TtsVoiceSpeaker
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

from daemon.commands import Speak
from daemon.errors import PayloadError
from daemon.events import VoiceInfo
from daemon.payloads import parse_command
from device.format import CHANNELS, RATE
from engines.text.sentences import complete

_LOG = logging.getLogger(__name__)

_IDLE_S: Final = 300.0
"""Longest silence of a client: a language model that looks something up first may take minutes for its next word."""

_FAREWELL_S: Final = 2.0
"""For a client that was refused to finish what it says, and go."""

_LARGEST: Final = 2**20
"""Bytes of one event."""

_LEAST_CHARS: Final = 20
"""Of a piece that is spoken before the rest is known. Shorter ones would sound chopped, and split "Dr. Smith"."""

_WIDTH: Final = 2
_ATTRIBUTION: Final = Attribution(name="speakd", url="https://github.com/rhasspy/piper")
"""Wyoming wants one for each voice: they are Piper's."""


E = TypeVar("E")


class RefusedError(Exception):
    """A request is answered with an error, and the connection closed: who waits for sound must not wait for ever."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(reason)


class Conversation:
    """Runs in a thread of its own, which it may block."""

    def __init__(
        self,
        client: socket.socket,
        *,
        sender: str,
        sound: Callable[[Speak], Iterator[bytes]],
        voices: Callable[[], Sequence[VoiceInfo]],
        version: str,
        max_text_chars: int,
    ) -> None:
        """`sound` renders a command, `voices` lists what there is; both may raise RefusedError."""
        client.settimeout(_IDLE_S)
        self._client = client
        self._incoming = client.makefile("rb")
        self._outgoing = client.makefile("wb")
        self._sender = sender
        self._sound = sound
        self._voices = voices
        self._version = version
        self._max_text_chars = max_text_chars
        self._stream: _Stream | None = None

    def run(self) -> None:
        """Answer until the client goes, or asks what is wrong."""
        try:
            while (event := self._next()) is not None:
                self._answer(event)
        except RefusedError as refused:
            _LOG.info("%s is refused: %s", self._sender, refused.reason)
            self._try_to_tell(refused)
        except OSError as error:
            _LOG.info("%s has gone: %s", self._sender, error)
        finally:
            for file in (self._incoming, self._outgoing):
                with contextlib.suppress(OSError):  # what could not be sent is lost
                    file.close()

    def _next(self) -> Event | None:
        try:
            event = read_event(cast("BinaryIO", _Bounded(self._incoming)))
        except (AttributeError, KeyError, RecursionError, TypeError) as error:
            # What read_event raises where JSON is there but no event.
            raise RefusedError("malformed", f"that is no event: {error}") from error
        if event is not None and not isinstance(event.data, dict):
            raise RefusedError("malformed", "data should be an object")
        return event

    def _answer(self, event: Event) -> None:
        """Answer one event; those of other services are passed over, as the protocol has it."""
        if Describe.is_type(event.type):
            self._write(self._info())
        elif Ping.is_type(event.type):
            self._write(Pong(text=_parsed(Ping.from_event, event).text))
        elif SynthesizeStart.is_type(event.type):
            _check_format(event)
            self._stream = _Stream(_parsed(SynthesizeStart.from_event, event).voice)
        elif SynthesizeChunk.is_type(event.type):
            if self._stream is not None:
                self._stream.rest += _text(_parsed(SynthesizeChunk.from_event, event).text)
                ready, self._stream.rest = complete(self._stream.rest, least_chars=_LEAST_CHARS)
                if len(self._stream.rest) > self._max_text_chars:
                    raise RefusedError("too_long", f"there is no sentence in {len(self._stream.rest)} characters")
                self._speak(ready, self._stream)
        elif SynthesizeStop.is_type(event.type):
            if self._stream is not None:
                stream, self._stream = self._stream, None
                self._speak(stream.rest, stream)
                self._end(stream)
                self._write(SynthesizeStopped())
        elif Synthesize.is_type(event.type) and self._stream is None:
            # Within a stream it repeats the whole text, for servers that know of no streams.
            _check_format(event)
            whole = _parsed(Synthesize.from_event, event)
            stream = _Stream(whole.voice)
            self._speak(_text(whole.text), stream)
            self._end(stream)

    def _speak(self, text: str, stream: _Stream) -> None:
        """Send the sound of a text."""
        if not text.strip():
            return
        for pcm in self._sound(self._command(text, stream.voice)):
            self._begin(stream)
            self._write(AudioChunk(RATE, _WIDTH, CHANNELS, pcm))

    def _begin(self, stream: _Stream) -> None:
        if not stream.begun:
            stream.begun = True
            self._write(AudioStart(RATE, _WIDTH, CHANNELS))

    def _end(self, stream: _Stream) -> None:
        self._begin(stream)  # what has nothing to say is an empty sound
        self._write(AudioStop())

    def _command(self, text: str, voice: SynthesizeVoice | None) -> Speak:
        fields: dict[str, object] = {"text": text, "output": "stream", "session": self._sender}
        if voice is not None:
            fields |= {"voice": voice.name or "", "speaker": voice.speaker}
            fields["language"] = None if voice.name or not voice.language else _to_ours(voice.language)
        try:
            return parse_command(Speak, json.dumps(fields).encode(), max_text_chars=self._max_text_chars)
        except PayloadError as error:
            raise RefusedError(error.code, error.reason) from error

    def _info(self) -> Info:
        voices = [
            TtsVoice(
                name=voice.name,
                attribution=_ATTRIBUTION,
                installed=True,
                description=voice.name,
                version=None,
                languages=[_to_theirs(voice.language)],
                speakers=[TtsVoiceSpeaker(name=name) for name in voice.speakers] or None,
            )
            for voice in self._voices()
        ]
        program = TtsProgram(
            name="speakd",
            attribution=_ATTRIBUTION,
            installed=True,
            description="A neural voice on the device",
            version=self._version,
            voices=voices,
            supports_synthesize_streaming=True,
        )
        return Info(tts=[program])

    def _write(self, message: Eventable) -> None:
        write_event(message.event(), self._outgoing)

    def _try_to_tell(self, refused: RefusedError) -> None:
        try:
            self._write(Error(text=refused.reason, code=refused.code))
            # Were it closed with something unread, the client would be told of a reset, and not read the error.
            self._client.shutdown(socket.SHUT_WR)
            self._client.settimeout(_FAREWELL_S)
            deadline = time.monotonic() + _FAREWELL_S
            while time.monotonic() < deadline and self._client.recv(_LARGEST):
                pass
        except OSError as error:
            _LOG.info("%s has gone: %s", self._sender, error)


class _Stream:
    """A request under way."""

    def __init__(self, voice: SynthesizeVoice | None) -> None:
        self.voice = voice
        self.rest = ""
        """Text of which no complete sentence is known yet."""
        self.begun = False
        """Whether the client was told that sound comes."""


class _Bounded:
    """What `read_event` reads from; an event that would take too much memory is refused."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file

    def readline(self) -> bytes:
        """Read a line."""
        line = self._file.readline(_LARGEST)
        if len(line) >= _LARGEST:
            raise RefusedError("too_large", f"the line is longer than {_LARGEST} bytes")
        return line

    def read(self, size: int) -> bytes:
        """Read so many bytes, or what there is to the end."""
        if size > _LARGEST:
            raise RefusedError("too_large", f"{size} bytes are announced, {_LARGEST} are allowed")
        return self._file.read(size)


def _parsed(from_event: Callable[[Event], E], event: Event) -> E:
    try:
        return from_event(event)
    except (AttributeError, KeyError, TypeError) as error:
        # The package takes data as it comes.
        raise RefusedError("malformed", f"that is no {event.type}: {error}") from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise RefusedError("malformed", "text should be a string")
    return value


def _check_format(event: Event) -> None:
    """Refuse SSML, which the package only knows since 1.10."""
    text_format = event.data.get("text_format")
    if text_format is not None and text_format != "text":
        raise RefusedError("ssml", f"text_format {text_format!r} is not spoken: send plain text")


def _to_ours(language: str) -> str:
    """Make `en_US` what espeak-ng calls it."""
    return language.replace("_", "-").lower()


def _to_theirs(language: str) -> str:
    """Make `en-us` what Home Assistant calls it; what has no language is spelt as English letters are."""
    first, _, region = language.partition("-")
    return f"{first}_{region.upper()}" if region else first or "en"

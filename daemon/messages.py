"""What goes in and out: the speak command, the events about it, and what the rooms tell the speaker.

Everything here is frozen. Times inside the process are seconds of `time.monotonic`; times in events are UTC.
"""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from daemon.errors import PayloadError
from engines.errors import excerpt

LARGEST_VOLUME: Final = 2.0
"""Twice the voice's own level. Peaks beyond full scale are clipped."""


class Priority(str, Enum):
    """Who goes first in the queue. Among equals the first to come is the first to speak."""

    CRITICAL = "critical"
    IMPORTANT = "important"
    MESSAGE = "message"
    NOTIFICATION = "notification"
    PROGRESS = "progress"

    @property
    def rank(self) -> int:
        """0 speaks first."""
        return list(Priority).index(self)


_MOST_PROBLEMS: Final = 5
"""With one command that are told."""

_KINDS: Final = {list: "an array", str: "a string", int: "a number", float: "a number", bool: "true or false"}
"""What JSON calls the values that are no objects."""

_Printable = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""Text that comes back in events and the log. The pattern keeps lone surrogates out too: no event could carry them."""


def _new_id() -> str:
    return uuid.uuid4().hex


class Speak(BaseModel):
    """The payload of a speak command."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    id: Annotated[_Printable, Field(min_length=1, max_length=128)] = Field(default_factory=_new_id)
    """The sender's name for this command, in every event about it; made up where it is left out."""
    text: str
    voice: Annotated[_Printable, Field(max_length=100)] = ""
    """A pack's name; empty: the configured default."""
    speaker: Annotated[int, Field(ge=0, le=10_000)] | Annotated[_Printable, Field(max_length=100)] | None = None
    """Of a voice that has several, by number or name."""
    volume: Annotated[float, Field(ge=0, le=LARGEST_VOLUME)] = 1.0
    """Factor; 1 is the voice's own level."""
    # Strict mode would want an enum instance, which JSON has none of.
    priority: Annotated[Priority, Field(strict=False)] = Priority.MESSAGE
    cache: bool = True
    """Whether a kept recording may be used, and this one kept if it is said again."""


def parse_speak(payload: bytes, *, max_text_chars: int) -> Speak:
    """Read a payload: a JSON object as `Speak` has it, or plain UTF-8 text. PayloadError says what is wrong."""
    try:
        text = payload.decode("utf-8-sig")  # some editors and shells put a byte order mark first
    except UnicodeDecodeError as error:
        raise PayloadError("encoding", f"the payload is not UTF-8 (byte {error.start})") from None
    command = _read(text)
    if len(command.text) > max_text_chars:
        raise PayloadError(
            "too_long", f"the text has {len(command.text)} characters, {max_text_chars} are allowed", command.id
        )
    return command


def _read(text: str) -> Speak:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("{"):
            raise PayloadError("json", f"the payload begins like JSON but is none: {error}") from None
        value = {"text": text}
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value), "null")
        raise PayloadError(
            "json", f'the payload is JSON but {kind}, not an object: to have it spoken, send {{"text": …}}'
        )
    return make_speak(value)


def make_speak(fields: dict[str, Any]) -> Speak:
    """Make a command of its fields. PayloadError names those that are wrong."""
    try:
        return Speak.model_validate(fields)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(excerpt(str(part)) for part in detail['loc'][:1])}: {detail['msg']}"
            for detail in error.errors()[:_MOST_PROBLEMS]
        )
        raise PayloadError("field", problems, _id_of(fields)) from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _id_of(value: dict[str, Any]) -> str | None:
    """Give the sender's id, where it is a usable one, so that even a refusal can be matched."""
    try:
        return Speak.model_validate({"id": value.get("id"), "text": ""}).id
    except ValidationError:
        return None


def _now() -> datetime:
    return datetime.now(timezone.utc)


def utc_of(at: float) -> datetime:
    """Give the UTC time of a moment of `time.monotonic` that is not long past."""
    return _now() - timedelta(seconds=time.monotonic() - at)


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    time: datetime = Field(default_factory=_now)
    """When it happened, not when it was told."""

    def to_json(self) -> str:
        """Give the payload of the event topic."""
        return self.model_dump_json(exclude_none=True)


class Accepted(_Event):
    """The command will be spoken, or there will be a `Failed`."""

    event: Literal["accepted"] = "accepted"
    ahead: int
    """Utterances that will be spoken before it, as things stand."""


class Started(_Event):
    """The first frame is being handed to the output."""

    event: Literal["started"] = "started"
    ttfa_ms: float
    """Time to first audio: since the command came in, time in the queue included."""
    output: str


class Synthesized(_Event):
    """All samples exist; some may still be waiting to be played."""

    event: Literal["synthesized"] = "synthesized"
    audio_s: float
    compute_ms: float
    rtf: float | None = None
    """Real-time factor: computing time per time of speech."""
    first_ms: float | None = None
    """Of the computing time, what the first samples took."""
    cached: bool
    """Whether it is a recording that was kept."""
    voice: str
    backend: str
    precision: str


class Finished(_Event):
    """The last frame has been played."""

    event: Literal["finished"] = "finished"
    audio_s: float
    """0 where the text had nothing to pronounce."""
    total_ms: float
    """Since the command came in."""


class Failed(_Event):
    """The accepted command was not, or not wholly, spoken."""

    event: Literal["failed"] = "failed"
    code: str
    reason: str


class Rejected(BaseModel):
    """The command was not accepted."""

    model_config = ConfigDict(frozen=True)

    event: Literal["rejected"] = "rejected"
    id: str | None
    """None where the payload had none that could be read."""
    time: datetime = Field(default_factory=_now)
    code: str
    reason: str

    def to_json(self) -> str:
        """Give the payload of the event topic."""
        return self.model_dump_json()


Event: TypeAlias = Accepted | Started | Synthesized | Finished | Failed | Rejected


class Status(BaseModel):
    """The retained payload of the status topic."""

    model_config = ConfigDict(frozen=True)

    state: Literal["online", "stopped", "offline"]
    """`stopped` after a clean end; `offline` is the broker's word when the connection was lost."""
    version: str
    voice: str | None = None
    backend: str | None = None
    precision: str | None = None
    output: str | None = None
    audio: str | None = None
    """'ok', or why the output takes no sound."""
    commands: str | None = None
    """'ok', or why the broker lets none through to us."""
    realtime: Mapping[str, str] | None = None
    """What was asked of the system so that sound comes in time, and its answer: 'done', or why not."""

    def to_json(self) -> str:
        """Give the payload of the status topic."""
        return self.model_dump_json(exclude_none=True)


@dataclass(frozen=True, slots=True)
class SpeakReceived:
    """A command came in."""

    command: Speak
    at: float


@dataclass(frozen=True, slots=True)
class PayloadRefused:
    """Something came in that is no command."""

    error: PayloadError


@dataclass(frozen=True, slots=True)
class PlaybackStarted:
    """The player hands the first frame of an utterance to the sink."""

    id: str
    at: float


@dataclass(frozen=True, slots=True)
class SynthesisEnded:
    """The engine thread has handed on all samples of an utterance."""

    id: str
    audio_s: float
    compute_s: float
    first_s: float | None
    cached: bool
    voice: str
    backend: str
    precision: str

    @property
    def rtf(self) -> float | None:
        """Computing time per time of speech; None where there was none."""
        return self.compute_s / self.audio_s if self.audio_s else None


@dataclass(frozen=True, slots=True)
class RenderEnded:
    """A render thread is done with an order; there is just one for each."""

    id: str
    at: float
    audio_s: float = 0.0
    """What was handed on."""
    compute_s: float = 0.0
    error: Exception | None = None
    """What ended it before its end; None where it was stopped by its job."""


@dataclass(frozen=True, slots=True)
class PlaybackEnded:
    """The player is done with an utterance."""

    id: str
    at: float
    audio_s: float = 0.0
    """What the sink has taken."""
    error: Exception | None = None
    """What ended it before its end, in synthesis or in the sink."""


@dataclass(frozen=True, slots=True)
class AudioState:
    """The sink was opened, or would not open or play."""

    problem: str = ""


@dataclass(frozen=True, slots=True)
class RealtimeAnswer:
    """What the system said to a request that keeps the sound in time."""

    what: str
    """'garbage', 'heap', 'memory', 'precedence' or 'priority'."""
    answer: str
    """'done', or why it was refused."""


@dataclass(frozen=True, slots=True)
class Connected:
    """The broker has taken us, for the first time or again."""

    protocol: str


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The broker has answered our subscription to commands."""

    problem: str = ""
    """Why it refuses it; empty where it does not."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection to the broker is gone; it is being made anew."""


@dataclass(frozen=True, slots=True)
class ProtocolRefused:
    """The broker does not speak the MQTT version that was tried."""


@dataclass(frozen=True, slots=True)
class ThreadDied:
    """A thread ended by an exception that nobody expected. The process must end too, in order."""

    name: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class Stop:
    """Somebody asked for a clean end."""

    reason: str = field(default="asked to stop")


Inbox: TypeAlias = (
    SpeakReceived
    | PayloadRefused
    | PlaybackStarted
    | SynthesisEnded
    | RenderEnded
    | PlaybackEnded
    | AudioState
    | RealtimeAnswer
    | Connected
    | Disconnected
    | Subscribed
    | ProtocolRefused
    | ThreadDied
    | Stop
)


def milliseconds(duration_s: float) -> float:
    """Give a duration in milliseconds, to a tenth."""
    return round(duration_s * 1000, 1) if math.isfinite(duration_s) else 0.0

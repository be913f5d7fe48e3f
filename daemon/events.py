"""What a device says over MQTT: what becomes of each command, answers, its settings and its status.

All are frozen. Times are UTC.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

FINAL: Final = frozenset({"finished", "cancelled", "expired", "superseded", "failed"})
"""Every accepted command ends in exactly one of these."""


def _now() -> datetime:
    return datetime.now(timezone.utc)


def utc_of(at: float) -> datetime:
    """Give the UTC time of a moment of `time.monotonic` that is not long past."""
    return _now() - timedelta(seconds=time.monotonic() - at)


def milliseconds(duration_s: float) -> float:
    """Give a duration in milliseconds, to a tenth."""
    return round(duration_s * 1000, 1) if math.isfinite(duration_s) else 0.0


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True)

    def to_json(self) -> str:
        """Give the payload."""
        return self.model_dump_json(exclude_none=True)


class _Event(_Payload):
    id: str
    time: datetime = Field(default_factory=_now)
    """When it happened, not when it was told."""


class Accepted(_Event):
    """The command will be spoken, or one of the other final events says why not."""

    event: Literal["accepted"] = "accepted"
    ahead: int
    """Utterances that will be spoken before it, as things stand."""
    starts_in_s: float | None = None
    """Estimated from the lengths of those; left out while paused."""
    sdp: str | None = None
    """Of output `rtp`: what a receiver must know (SDP)."""


class Started(_Event):
    """The first frame is being handed to the output."""

    event: Literal["started"] = "started"
    ttfa_ms: float
    """Time to first audio: since the command came in, time in the queue included."""
    output: str
    fallback: str | None = None
    """Why it is raw PCM instead of Opus; left out where it is as it was asked for."""


class Word(_Event):
    """A word begins to be heard (`marks`)."""

    event: Literal["word"] = "word"
    index: int
    """From 0. Words are what the voice speaks in one piece: '42' may be two."""
    at_s: float
    """Seconds of speech before it."""


class Mark(_Event):
    """A <mark> of the SSML is reached by what is heard."""

    event: Literal["mark"] = "mark"
    name: str
    at_s: float
    """Seconds of speech before it."""


class Synthesized(_Event):
    """All samples exist; some may still be waiting to be played."""

    event: Literal["synthesized"] = "synthesized"
    audio_s: float
    compute_ms: float
    rtf: float | None = None
    """Real-time factor: computing time per time of speech."""
    first_ms: float | None = None
    """Of the computing time, what the first samples took."""
    load_ms: float | None = None
    """What loading voices took, by which its sound came later; left out where all were loaded already."""
    cached: bool
    """Whether it is a recording that was kept."""
    voice: str
    backend: str
    precision: str
    warnings: tuple[str, ...] | None = None
    """What could not be said as it was meant; left out where there is nothing."""


class Interrupted(_Event):
    """It has fallen silent and will go on: a `resumed` follows, or its end."""

    event: Literal["interrupted"] = "interrupted"
    reason: Literal["paused", "preempted", "lost"]
    """lost: the loudspeaker was."""
    by: str | None = None
    """The id of the command that goes first."""
    at_s: float
    """Seconds of speech before the word from which it will go on."""


class Resumed(_Event):
    """It speaks again."""

    event: Literal["resumed"] = "resumed"
    at_s: float


class Finished(_Event):
    """The last frame has been played; or, without a loudspeaker, is in the file or on its way."""

    event: Literal["finished"] = "finished"
    audio_s: float
    """0 where the text had nothing to pronounce."""
    total_ms: float
    """Since the command came in."""
    location: str | None = None
    """The file's name, the stream's topic, or the RTP target."""
    fallback: str | None = None
    """Why it is raw PCM instead of Opus; left out where it is as it was asked for."""
    reason: str | None = None
    """'nothing to say', where the text had nothing to pronounce."""
    warnings: tuple[str, ...] | None = None
    """What could not be said as it was meant; left out where there is nothing."""


class Cancelled(_Event):
    """Somebody ended it."""

    event: Literal["cancelled"] = "cancelled"
    by: str
    """The `request` of the `cancel` or `skip`."""


class Expired(_Event):
    """It was not begun in time."""

    event: Literal["expired"] = "expired"
    waited_s: float


class Superseded(_Event):
    """A newer command took its place."""

    event: Literal["superseded"] = "superseded"
    by: str
    """The newer one's id."""


class Failed(_Event):
    """The accepted command was not, or not wholly, spoken."""

    event: Literal["failed"] = "failed"
    code: str
    """audio, voice, speaker, style, ssml, phonemizer, synthesis, interrupted, stopped, internal."""
    reason: str


class Rejected(_Payload):
    """The command was not accepted."""

    event: Literal["rejected"] = "rejected"
    id: str | None
    """Of a control command its `request`; None where the payload had none that could be read."""
    time: datetime = Field(default_factory=_now)
    code: str
    """encoding, json, field, style, ssml, ssml_unsafe, ssml_limit, too_long, too_large, retained, topic, reply_to,
    output, target, sound, chime, rate, busy, queue_full, stopped, voice."""
    reason: str

    def to_json(self) -> str:
        """Give the payload; the id is there even where it is null."""
        return self.model_dump_json()


class Known(_Event):
    """The answer to an id that has ended already: it is not spoken again."""

    event: Literal["known"] = "known"
    final: Mapping[str, object]
    """The event that ended it, as it was told."""


class _Answer(_Payload):
    request: str
    """Of the control command that it answers."""
    time: datetime = Field(default_factory=_now)


class Done(_Answer):
    """A control command was carried out."""

    event: Literal["done"] = "done"
    command: str
    """Its topic's end, such as `cancel` or `volume/set`."""
    affected: tuple[str, ...] | None = None
    """The ids of the commands that it ends, pauses or resumes."""


class QueuedCommand(BaseModel):
    """One that speaks or waits."""

    model_config = ConfigDict(frozen=True)

    id: str
    state: Literal["speaking", "rendering", "interrupted", "waiting"]
    priority: str
    session: str | None = None
    chars: int
    text: str = ""
    """How it begins, up to 100 characters."""


class QueueState(_Answer):
    """The answer to `queue/get`."""

    event: Literal["queue"] = "queue"
    paused: bool
    commands: tuple[QueuedCommand, ...]
    """What speaks first, then the rest in the order in which they will speak."""


class VoiceInfo(BaseModel):
    """A voice that may be named."""

    model_config = ConfigDict(frozen=True)

    name: str
    language: str
    speakers: tuple[str, ...]
    """Their names; empty for a voice with only one."""
    family: Literal["vits", "kokoro"]
    streaming: bool
    """Whether a sentence is heard before all of it is computed."""
    styles: bool
    """Whether its speakers can be blended, and a `style_vector` can take their place."""


class Voices(_Answer):
    """The answer to `voices/get`."""

    event: Literal["voices"] = "voices"
    voices: tuple[VoiceInfo, ...]


class LexiconState(_Answer):
    """The answer to `lexicon/get`."""

    event: Literal["lexicon"] = "lexicon"
    version: int
    """Of the last `lexicon/set`."""
    entries: tuple[Mapping[str, str], ...]
    """What it set."""
    in_files: int
    """How many more there are in the device's files."""


class Pong(_Answer):
    """The answer to `ping`."""

    event: Literal["pong"] = "pong"


FinalEvent: TypeAlias = Finished | Cancelled | Expired | Superseded | Failed
Answer: TypeAlias = Done | QueueState | Voices | LexiconState | Pong
Event: TypeAlias = (
    Accepted | Started | Word | Mark | Synthesized | Interrupted | Resumed | FinalEvent | Rejected | Known | Answer
)


class Settings(_Payload):
    """The retained payload of the settings topic: what may change while it runs, as it is now."""

    version: int = 0
    """Of the last `config/set`; other commands add one."""
    volume: float = 1.0
    muted: bool = False
    voice: str = ""
    """Of commands that name none; empty: as the configuration says."""
    rate: float = 1.0
    paused: bool = False
    mode: Literal["latency", "efficiency", "protect", "auto"] = "auto"
    """As `mode/set` asked for it; the one that it is in stands in the status."""
    mode_until: datetime | None = None
    """When it will be `auto` again."""


class Status(_Payload):
    """The retained payload of the status topic."""

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
    connection: str | None = None
    """'ok', or why it is lost again and again: somebody else uses our client id, or what the broker says."""
    journal: str | None = None
    """'ok', or why what was accepted would be forgotten in a crash: a full disk."""
    crashes: str | None = None
    """'ok', or what was put aside because it crashed again and again."""
    mode: Literal["latency", "efficiency", "protect"] | None = None
    """How board and voice are run; left out without a governor."""
    mode_reason: str | None = None
    """Why."""
    power: str | None = None
    """'ok', or why the board's clocks do not follow the mode."""
    realtime: Mapping[str, str] | None = None
    """What was asked of the system so that sound comes in time, and its answer: 'done', or why not."""

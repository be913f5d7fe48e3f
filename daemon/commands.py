"""What may be asked of a device over MQTT: one model per command.

All are frozen. `COMMANDS` maps the end of a topic to its model; what a field means stands under it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from daemon.command_fields import Command, Name, Printable, Rate, VoiceName, Volume, new_id
from engines.text.lexicon import Entry
from engines.text.script import Script
from engines.text.ssml import script_of

LONGEST_EXPIRY_S: Final = 7 * 24 * 3600.0
"""A week: whoever means longer means for ever, and leaves it out."""

LONGEST_MODE_S: Final = 24 * 3600.0
"""A day: whoever forgets that they set a mode shall not find it years later."""

MOST_ENTRIES_SET: Final = 2000
"""What fits the largest message, at some 500 bytes each; more belong into files."""


class Priority(str, Enum):
    """Who goes first. Among equals the first to come is the first to speak.

    critical: interrupts at once what is not critical, is never interrupted, speaks even while paused. important: goes
    first after the current sentence. message: in order. notification: refused while anything else speaks or waits; the
    newest interrupts the one before. progress: the newest replaces the one that waits, so that the last is always said.
    """

    CRITICAL = "critical"
    IMPORTANT = "important"
    MESSAGE = "message"
    NOTIFICATION = "notification"
    PROGRESS = "progress"

    @property
    def rank(self) -> int:
        """0 speaks first."""
        return list(Priority).index(self)


ChimeName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]*$", max_length=64)]


class Chime(BaseModel):
    """Sounds around speech, by name; empty: none there."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    before: ChimeName = ""
    after: ChimeName = ""


class Speak(Command):
    """Say a text: `speak`; or, with `output` `stream`, `file` or `rtp`, `render`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": [field], "properties": {field: {"not": {"type": "null"}}}} for field in ("text", "ssml")
            ]
        }
    )
    shorthand: ClassVar[str] = "text"

    id: Name = Field(default_factory=new_id)
    """The sender's name for this command, in every event about it; made up where it is left out."""
    text: str = ""
    """Plain text: whatever it holds is spoken, nothing in it is a command."""
    ssml: str | None = None
    """Or a document of SSML, from <speak> to </speak>."""
    voice: VoiceName = ""
    """A pack's name; empty: of `language`, or the configured default."""
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{1,8})*$", max_length=35)] | None = None
    """Such as `de` or `en-us`: a voice of this language speaks, the default one where it is of it."""
    speaker: Annotated[int, Field(ge=0, le=10_000)] | VoiceName | None = None
    """Of a voice that has several, by number or name."""
    style: Annotated[Printable, Field(max_length=200)] | None = None
    """A manner of speaking: a name of `[styles]`, a style or speaker of the voice, or a blend of its styles such as
    `af_heart:0.7+bf_emma:0.3`. Left out: as the session's last command, else the usual one, as with ""."""
    style_vector: Annotated[str, Field(max_length=1000)] | None = None
    """In its place, for voices with styles: 256 float16, little-endian, in base64."""
    volume: Volume = 1.0
    """How loud it seems: 1 is the voice's own level, 0.5 half as loud (10 dB less), 2 twice its level (6 dB more)."""
    rate: Rate = 1.0
    """Factor on the speed."""
    # Strict mode would want an enum instance, which JSON has none of.
    priority: Annotated[Priority, Field(strict=False)] = Priority.MESSAGE
    expires_s: Annotated[float, Field(gt=0, le=LONGEST_EXPIRY_S)] | None = None
    """Not begun this long after it came in, it is not spoken any more; MQTT 5's message expiry counts too."""
    supersede: Name | None = None
    """A key: what waits or speaks with the same one is superseded by this."""
    session: Name | None = None
    """A name for all that belongs together, to be cancelled together; each has a rate limit of its own."""
    on_interrupt: Literal["resume", "drop"] | None = None
    """What becomes of it once interrupted: resumed from the word, or superseded. Left out: notification and progress
    are dropped, all else is resumed."""
    output: Literal["speaker", "stream", "file", "rtp"] = "speaker"
    target: Annotated[Printable, Field(max_length=64)] | None = None
    """Of output `rtp`: one of the configured addresses, the first where it is left out."""
    chime: ChimeName | Chime | None = None
    """Sounds around the speech: a name stands for the one before it, empty for none. Left out: as configured for the
    priority."""
    marks: bool = False
    """Whether each word is told as it is heard."""
    cache: bool = True
    """Whether a kept recording may be used, and this one kept if it is said again."""

    @model_validator(mode="after")
    def _has_one_content(self) -> Speak:
        # What the journal wrote down has both fields, one of them empty.
        if ("text" not in self.model_fields_set and self.ssml is None) or (self.text and self.ssml is not None):
            raise ValueError("give exactly one of text and ssml")
        return self

    @property
    def written(self) -> str:
        """What was sent to be said."""
        return self.text if self.ssml is None else self.ssml

    @property
    def script(self) -> Script:
        """What is to be said. SsmlError where its SSML is none."""
        return script_of(self.written, ssml=self.ssml is not None)

    @property
    def resumes(self) -> bool:
        """Tell whether it goes on after an interruption."""
        if self.on_interrupt is not None:
            return self.on_interrupt == "resume"
        return self.priority not in {Priority.NOTIFICATION, Priority.PROGRESS}


class ControlCommand(Command):
    """What is done at once, or refused."""

    request: Name = Field(default_factory=new_id)
    """The sender's name for this request, in its answer; made up where it is left out. Each needs one of its own: the
    same command with the same name again is a repetition, which is answered and not carried out again."""


class Cancel(ControlCommand):
    """End commands, waiting or speaking, by exactly one of four: `cancel`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": [field], "properties": {field: {"not": {"type": "null"}}}}
                for field in ("id", "session", "supersede", "all")
            ]
        }
    )

    id: Name | None = None
    """Of the one command to end."""
    session: Name | None = None
    supersede: Name | None = None
    all: Literal[True] | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Cancel:
        if sum(given is not None for given in (self.id, self.session, self.supersede, self.all)) != 1:
            raise ValueError("give exactly one of id, session, supersede and all")
        return self


class Pause(ControlCommand):
    """Fall silent; what comes from now on waits, except what is critical: `pause`."""


class Resume(ControlCommand):
    """Go on from the word where it stopped: `resume`."""

    repeat_sentences: Annotated[int, Field(ge=0, le=100)] = 0
    """From the beginning of the sentence where it stopped (1), of the one before it (2) and so on."""


class Skip(ControlCommand):
    """End what speaks, or what was paused, and go on with the next: `skip`."""


class VolumeSet(ControlCommand):
    """Set the device's volume, on top of each command's own: `volume/set`."""

    shorthand: ClassVar[str] = "volume"
    volume: Volume


class MuteSet(ControlCommand):
    """Silence the device without stopping it: `mute/set`."""

    shorthand: ClassVar[str] = "muted"
    muted: bool


class VoiceSet(ControlCommand):
    """Choose the voice of commands that name none: `voice/set`."""

    shorthand: ClassVar[str] = "voice"
    voice: VoiceName
    """Empty: as the configuration says."""


class ConfigSet(ControlCommand):
    """Set what may change while it runs; what is left out stays: `config/set`."""

    version: Annotated[int, Field(ge=0, le=2**53)] | None = None
    """The sender's number of this desired state, which `settings` then reports; left out: one more than before."""
    volume: Volume | None = None
    muted: bool | None = None
    voice: VoiceName | None = None
    rate: Rate | None = None


class ModeSet(ControlCommand):
    """Choose how board and voice are run, for a time: `mode/set`. Too hot a board goes on protecting itself."""

    shorthand: ClassVar[str] = "mode"
    mode: Literal["latency", "efficiency", "protect", "auto"]
    """`latency`: as if somebody always waited; `efficiency`: as on a low battery; `protect`: as if it were too hot;
    `auto`: as the governor sees fit."""
    for_s: Annotated[float, Field(gt=0, le=LONGEST_MODE_S)] = 3600.0
    """After so long it is `auto` again; a restart ends it too."""


class LexiconSet(ControlCommand):
    """Replace the readings that were set before, beside those of the device's files: `lexicon/set`."""

    version: Annotated[int, Field(ge=0, le=2**53)] | None = None
    """The sender's number of these, which `lexicon` then reports; left out: one more than before."""
    entries: Annotated[tuple[Entry, ...], Field(strict=False, max_length=MOST_ENTRIES_SET)] = ()
    """All of them. They outlast a restart, and count before those of files."""


class LexiconGet(ControlCommand):
    """Ask which readings were set: `lexicon/get`."""


class QueueGet(ControlCommand):
    """Ask what speaks and what waits: `queue/get`."""


class VoicesGet(ControlCommand):
    """Ask which voices there are: `voices/get`."""


class Ping(ControlCommand):
    """Ask whether anybody is there: `ping`."""


class StreamQuality(ControlCommand):
    """Adapt what is encoded to the listener's link, from the next packet on: `stream/quality`."""

    id: Name | None = None
    """Of the one command to adapt; or"""
    all: Literal[True] | None = None
    """every one that is being encoded, and those to come."""
    bitrate: Annotated[int, Field(ge=6000, le=510_000)] | None = None
    """Bits per second."""
    loss_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """Packets that do not arrive: above 0 each is repeated, coarsely, in the next."""
    frame_ms: Literal[10, 20, 40, 60] | None = None
    """Milliseconds of speech per packet."""

    @model_validator(mode="after")
    def _names_one(self) -> StreamQuality:
        if (self.id is None) == (self.all is None):
            raise ValueError("give exactly one of id and all")
        return self


Control: TypeAlias = (
    Cancel
    | Pause
    | Resume
    | Skip
    | VolumeSet
    | MuteSet
    | VoiceSet
    | ConfigSet
    | ModeSet
    | LexiconSet
    | LexiconGet
    | StreamQuality
    | QueueGet
    | VoicesGet
    | Ping
)
"""Everything but `Speak`."""

AnyCommand: TypeAlias = Speak | Control

COMMANDS: Final[Mapping[str, type[AnyCommand]]] = {
    "speak": Speak,
    "cancel": Cancel,
    "pause": Pause,
    "resume": Resume,
    "skip": Skip,
    "volume/set": VolumeSet,
    "mute/set": MuteSet,
    "voice/set": VoiceSet,
    "config/set": ConfigSet,
    "mode/set": ModeSet,
    "lexicon/set": LexiconSet,
    "lexicon/get": LexiconGet,
    "stream/quality": StreamQuality,
    "queue/get": QueueGet,
    "voices/get": VoicesGet,
    "ping": Ping,
}
"""The end of a command's topic -> its model."""

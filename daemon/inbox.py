"""What the rooms tell the speaker: the one inbox takes these and nothing else.

Everything here is frozen. Times are seconds of `time.monotonic`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from daemon.commands import Control, Speak
from daemon.errors import PayloadError
from daemon.stages import Stages
from daemon.telemetry_messages import SelfCheck
from device.format import Samples
from power.mode import Decision
from power.modes import Applied
from power.reading import Reading


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a command came from, and what its answers carry."""

    reply_to: str = ""
    """MQTT 5's response topic, or the payload's `reply_to`; empty for none."""
    correlation: bytes = b""
    """MQTT 5's correlation data, given back."""
    properties: tuple[tuple[str, str], ...] = ()
    """MQTT 5's user properties, such as trace ids, given back."""
    route: str = ""
    """How a bridge finds back to whom asked: its own notes, empty for what came in no bridge's tongue."""


NOBODY = Origin()
"""Wants no answers but those on the event topic."""


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class SpeakReceived:
    """A speak command came in."""

    command: Speak
    at: float
    origin: Origin = NOBODY
    acknowledge: Callable[[], None] = _nothing
    """Tells the broker that we have it; to be called once it is written down."""
    clip: Samples | None = field(default=None, compare=False)
    """A sound to play in place of the text, which is empty. A crash forgets it."""
    take: Callable[[Samples], None] | None = field(default=None, compare=False)
    """Of a command with output `stream`: takes the samples in this process; see `RenderOrder.take`."""


@dataclass(frozen=True, slots=True)
class ControlReceived:
    """Any other command came in."""

    command: Control
    origin: Origin = NOBODY
    acknowledge: Callable[[], None] = _nothing


@dataclass(frozen=True, slots=True)
class PayloadRefused:
    """Something came in that is no command."""

    error: PayloadError
    origin: Origin = NOBODY
    acknowledge: Callable[[], None] = _nothing


@dataclass(frozen=True, slots=True)
class Told:
    """The broker has taken a final event."""

    id: str


@dataclass(frozen=True, slots=True)
class Published:
    """The broker has the message of this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Steady:
    """The connection has lasted for a while: nobody takes our client id away any more."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: something that waits may have expired."""


@dataclass(frozen=True, slots=True)
class PlaybackStarted:
    """The player hands the first frame of an utterance to the sink; of one that goes on, again."""

    id: str
    at: float
    watermarked: bool = False
    """See `Job`."""


@dataclass(frozen=True, slots=True)
class WordReached:
    """A word will be heard at `at`."""

    id: str
    index: int
    at: float


@dataclass(frozen=True, slots=True)
class MarkReached:
    """A mark will be reached by what is heard at `at`."""

    id: str
    name: str
    frame: int
    """From the utterance's beginning."""
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
    load_s: float = 0.0
    """Time in which voices were loaded for it."""
    stages: Stages | None = None
    """None where it is no speech that began here: a sound, or what goes on after an interruption."""
    mark_s: float | None = None
    """Of `compute_s`, the time that the watermark took: 0 for a kept phrase; None where the speech has none."""

    @property
    def rtf(self) -> float | None:
        """Computing time per time of speech; None where there was none."""
        return self.compute_s / self.audio_s if self.audio_s else None


@dataclass(frozen=True, slots=True)
class PlaybackEnded:
    """The player is done with an utterance."""

    id: str
    at: float
    audio_s: float = 0.0
    """What of it has been heard, over all its parts."""
    error: Exception | None = None
    """What ended it before its end, in synthesis or in the sink."""
    cut_at: int | None = None
    """Where it was told to stop before its end, the frame from which it may go on: a word's first; None: it is over."""


@dataclass(frozen=True, slots=True)
class RenderStarted:
    """The first samples of a command that needs no loudspeaker are there."""

    id: str
    at: float
    location: str = ""
    """Where they are; empty: where was said before."""
    fallback: str = ""
    """Why they are raw PCM, which nobody asked for."""


@dataclass(frozen=True, slots=True)
class AudioPage:
    """A piece of a stream is ready to be sent."""

    id: str
    topic: str
    page: bytes
    content_type: str = "audio/ogg; codecs=opus"


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
    warnings: tuple[str, ...] = ()
    """What could not be said as it was meant."""
    location: str = ""
    """See `RenderStarted`."""
    fallback: str = ""
    mark_s: float | None = None
    """See `SynthesisEnded`."""


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

    problem: str = ""
    """What is worth telling about it: see `Handlers.disconnected`."""


@dataclass(frozen=True, slots=True)
class ProtocolRefused:
    """The broker does not speak the MQTT version that was tried."""


@dataclass(frozen=True, slots=True)
class ThreadDied:
    """A thread ended by an exception that nobody expected. The process must end too, in order."""

    name: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class ReadingTaken:
    """The sensors were read."""

    reading: Reading


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """The governor has decided otherwise than before: on another mode, or on what belongs to it."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class ModeApplied:
    """A decision has reached the board, as far as that lets itself be changed."""

    applied: Applied
    raised: bool = False
    """Whether clocks were raised, and nothing slower was done: what it took is what a raise costs."""


@dataclass(frozen=True, slots=True)
class SelfChecked:
    """The voice has judged itself."""

    check: SelfCheck | None
    """None: a command came first."""
    key: str = ""
    """Of the voice's record."""
    record: str | None = None
    """How it sounds, as JSON, where there was no record yet."""


@dataclass(frozen=True, slots=True)
class BridgeTurn:
    """A bridge has something to do, in the main thread."""

    act: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Stop:
    """Somebody asked for a clean end."""

    reason: str = field(default="asked to stop")


Inbox: TypeAlias = (
    SpeakReceived
    | ControlReceived
    | PayloadRefused
    | Told
    | Published
    | Steady
    | Tick
    | PlaybackStarted
    | WordReached
    | MarkReached
    | SynthesisEnded
    | PlaybackEnded
    | RenderStarted
    | AudioPage
    | RenderEnded
    | AudioState
    | RealtimeAnswer
    | Connected
    | Disconnected
    | Subscribed
    | ProtocolRefused
    | ThreadDied
    | ReadingTaken
    | ModeChanged
    | ModeApplied
    | SelfChecked
    | BridgeTurn
    | Stop
)
